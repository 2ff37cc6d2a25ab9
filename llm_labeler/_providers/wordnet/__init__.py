"""An annotator that is no LLM: rules over WordNet, so that labelling runs with no key and no weights.

```
text ──tagging──► Sentence ──► paraphrases, synonyms, reorder, questions ──► Change ──annotator──► candidates
                               denials, assertions, contrasts, antonyms  ──►
```
Hard negatives of all kinds are made in `hard`, questions to a passage in `queries`. HanTa says what part each
word plays, lemminflect what its forms are, `lexicon.tsv` what WordNet says of it; the `.txt` files are tables
of phrases.
Its candidates are plain and few. It is a baseline to see a run work with, and takes no part in `ensemble`
unless asked to.
"""

from llm_labeler._providers.wordnet.provider import WordnetProvider

__all__ = ["WordnetProvider"]
