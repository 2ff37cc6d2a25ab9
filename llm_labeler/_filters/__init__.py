"""From the items of all answers about one text to its candidates.

```
words            what two sentences share
kinship          whether it can speak of the same
└ rules          one candidate against its text
  └ screening    all of them: repeats, several sources, both polarities
```
"""

from llm_labeler._filters.rules import BESIDE, REASONS, turned_down
from llm_labeler._filters.screening import Screened, screen

__all__ = ["BESIDE", "REASONS", "Screened", "screen", "turned_down"]
