"""Judging: every LLM says what it thinks of the others' candidates, not knowing who proposed them as what.

```
candidates ──judge_batches──► batches ──judge_asks──► Ask … raw answer ──read_verdicts──► Judgement
```
"""

from llm_labeler._judge.asks import judge_asks, judge_batches
from llm_labeler._judge.verdicts import read_verdicts

__all__ = ["judge_asks", "judge_batches", "read_verdicts"]
