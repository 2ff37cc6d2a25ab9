"""From a raw answer to its sentences: thoughts and made-up turns off, then JSON, a list or lines.

```
answer    thoughts, chat marks, made-up turns; how the answer ended, what the items say of each other
data      JSON, nearly-JSON, cut-off JSON, Markdown tables
lines     lists, headings, plain lines
sentence  one sentence without label, markup, quotes and remarks
phrases   how models introduce, comment on and refuse what they write
```
Everything in an answer that is not a sentence is an item with one of `answer.REASONS`.
"""
