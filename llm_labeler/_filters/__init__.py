"""From the items of all answers about one text to its candidates.

```
words            what two sentences share
kinship          whether it can speak of the same
└ rules          one candidate against its text
  │ tasks        the same where a task asks for other things than rewrites
  └ screening    all of them: repeats, several sources, both polarities
```
"""

from llm_labeler._filters.rules import BESIDE, REASONS, turned_down
from llm_labeler._filters.screening import Screened, rewritten, screen
from llm_labeler._filters.tasks import (
    TASK_REASONS,
    answer_turned_down,
    hard_turned_down,
    query_turned_down,
)

__all__ = [
    "BESIDE",
    "REASONS",
    "TASK_REASONS",
    "Screened",
    "answer_turned_down",
    "hard_turned_down",
    "query_turned_down",
    "rewritten",
    "screen",
    "turned_down",
]
