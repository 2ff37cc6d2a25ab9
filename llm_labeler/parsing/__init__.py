"""Parse raw answers into sentences, and filter the sentences.

```
answer          removes invented turns; marks the end of incomplete answers
special_tokens  removes reasoning, and tokens of chat templates by their form
data            JSON, malformed or truncated JSON, Markdown tables
lines           lists, headings, plain lines
sentence        removes label, markup, quotes and remarks of one sentence
wording         recognises headings, remarks and refusals by their words
phrases         patterns of introductions, comments and refusals
filters         compares sentences with their texts
```
Every other part of an answer becomes an item with one of `answer.REASONS`.
"""
