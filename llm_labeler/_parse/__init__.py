"""From a raw answer to its sentences, whatever shape the answer has.

```
widths       full-width signs are read as narrow ones, and kept
turns        thoughts and chat marks ─ runaway   drafts, the prompt said again, made-up turns, by their words
markup       line ends, HTML and XML, LaTeX, headings, fences
└ structured, fields     JSON, nearly-JSON: which of its strings are sentences
  literals               code of any language: its strings
  keyed                  YAML, TOML, INI: lines `name: value`
  sections               headings of both polarities
  └ tables               Markdown, CSV, TSV: the columns of sentences
    listed ─ marks ─ labels ─ inline     lines that begin with a mark, or have several
      titles, usual      marked lines that are titles; unusual marks
    prose                blocks, lines, the sentences of one paragraph
    └ sentence ─ remarks ─ quotes    one sentence without label, markup, remarks and quotes
damage                words without order, bold type left open: a broken model, a cut answer
items                 what the items say of each other: taken back, translated, said again, parted by signs
names                 what keys, columns, tags, labels and headings say of what they name
changes               of hard negatives: the kind that each says it is of
wording, phrases, commentary     introductions, notes, refusals, echoes, reasoning by their words
```
Nothing is dropped in silence: what is no candidate is an item with one of `REASONS`.
"""

from llm_labeler._parse.answer import MAX_CHARS, parse_answer
from llm_labeler._parse.changes import with_changes
from llm_labeler._parse.reasons import REASONS

__all__ = ["MAX_CHARS", "REASONS", "parse_answer", "with_changes"]
