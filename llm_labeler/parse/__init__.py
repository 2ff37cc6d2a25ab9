"""From a raw answer to its sentences, whatever shape the answer has.

```
turns        thoughts, echoed prompts and made-up turns stand around the answer
markup       line ends, HTML, fences
└ structured, fields     JSON, nearly-JSON: which of its strings are sentences
  tables                 the sentences' column
  listed ─ marks ─ labels     lines that begin with a mark
  prose                  blocks, lines, the sentences of one paragraph
  └ sentence ─ quotes    one sentence without label, markup and quotes
wording, phrases      introductions, notes, refusals, echoes by their words
```
Nothing is dropped in silence: what is no candidate is an item with one of `REASONS`.
"""

from llm_labeler.parse.answer import MAX_CHARS, parse_answer
from llm_labeler.parse.reasons import REASONS

__all__ = ["MAX_CHARS", "REASONS", "parse_answer"]
