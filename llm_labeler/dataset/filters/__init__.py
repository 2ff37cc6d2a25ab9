"""From the items of all answers about one text to its candidates.

```
rules        one candidate against its text, by task
└ screening  all of them: repeats, several sources, both polarities
```
"""

from llm_labeler.dataset.filters.rules import (
    BESIDE,
    REASONS,
    TASK_REASONS,
    hard_turned_down,
    query_turned_down,
    turned_down,
)
from llm_labeler.dataset.filters.screening import Screened, rewritten, screen

__all__ = [
    "BESIDE",
    "REASONS",
    "TASK_REASONS",
    "Screened",
    "hard_turned_down",
    "query_turned_down",
    "rewritten",
    "screen",
    "turned_down",
]
