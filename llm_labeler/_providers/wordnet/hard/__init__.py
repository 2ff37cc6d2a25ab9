"""Hard negatives by rules: sentences that keep most words of another and say something else, each of a kind.

```
Sentence ──► opposites (negation, antonym), entities, numbers, roles, tenses, modality ──► Turned ──► choice
```
"""

from llm_labeler._providers.wordnet.hard.choice import hard_negatives, same_meaning

__all__ = ["hard_negatives", "same_meaning"]
