"""From the items of all answers about one text to its candidates.

```
scripts, words   what a sentence is written in, what two sentences share
└ rules          one candidate against its text
  └ screening    all of them: repeats, several sources, both polarities
```
"""

from llm_labeler.filters.reasons import REASONS
from llm_labeler.filters.rules import turned_down
from llm_labeler.filters.screening import Screened, screen

__all__ = ["REASONS", "Screened", "screen", "turned_down"]
