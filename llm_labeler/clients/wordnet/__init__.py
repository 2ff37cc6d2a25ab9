"""An annotator that is no LLM: rules over WordNet, so that labelling runs with no key and no weights.

```
text ──sentence──► Sentence ──► paraphrases, synonyms, reorder, questions ──► Change ──annotator──► candidates
                               denials, assertions, contrasts, antonyms  ──►
```
Hard negatives are in `hard_negatives`, questions to a passage in `queries`. HanTa tags words, lemminflect
inflects them, `lexicon.tsv` is an extract of WordNet; the `.txt` files are tables of phrases.
The candidates are plain and few: a baseline without an LLM, and no member of `ensemble` unless asked for.
"""

from llm_labeler.clients.wordnet.provider import WordnetProvider

__all__ = ["WordnetProvider"]
