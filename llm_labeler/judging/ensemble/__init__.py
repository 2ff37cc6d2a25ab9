"""Ensembles: from several LLMs' proposals and judgements to labels.

```
Judgement … ──fit_judges──► Judges ─┐
Candidate …, their votes ───────────┴─label──► Pair …, with a reason where turned down
```
"""

from llm_labeler.judging.ensemble.ballots import CLASSES, cast_votes
from llm_labeler.judging.ensemble.judges import Agreement, Judge, Judges, fit_judges
from llm_labeler.judging.ensemble.strategies import Proposed, StrategyFunction, label, own_strategy

__all__ = [
    "CLASSES",
    "Agreement",
    "Judge",
    "Judges",
    "Proposed",
    "StrategyFunction",
    "cast_votes",
    "fit_judges",
    "label",
    "own_strategy",
]
