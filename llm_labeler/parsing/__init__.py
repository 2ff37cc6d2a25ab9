"""Parse raw answers into sentences, and filter the sentences.

```
answer       parses an answer; marks the end of incomplete ones
turns        removes reasoning, special tokens of chat templates, and invented turns
data         JSON, malformed or truncated JSON, Markdown tables
lines        lists, headings, plain lines
sentence     removes label, markup, quotes and remarks of one sentence
phrases      recognises introductions, headings, remarks and refusals by patterns
source_text  compares sentences with their text
filters      decides which sentences become candidates
```
Every other part of an answer becomes an item with one of `answer.REASONS`.
"""
