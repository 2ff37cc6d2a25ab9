"""Judging: every LLM says what it thinks of the others' candidates, not knowing who proposed them as what.

```
candidates ──judge_batches──► batches ──judge_asks──► Ask … raw answer ──read_votes──► Judgement
```
"""

from llm_labeler.judging.asks import judge_asks, judge_batches
from llm_labeler.judging.scales import CANDIDATES, PAIRS, Scale
from llm_labeler.judging.votes import read_votes

__all__ = [
    "CANDIDATES",
    "PAIRS",
    "Scale",
    "judge_asks",
    "judge_batches",
    "read_votes",
]
