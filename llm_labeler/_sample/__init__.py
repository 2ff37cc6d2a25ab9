"""Samples for people to label: pairs of all kinds, as a page or a sheet that shows nothing of who made them.

```
WORK/candidates.parquet ──draw──► pairs, stratum by stratum ──page──► page or sheet ──people──► label score
```
"""

from llm_labeler._sample.draw import draw
from llm_labeler._sample.sampled import Sampled, sample

__all__ = ["Sampled", "draw", "sample"]
