"""From a thread to a verdict: was the issue closed as a duplicate, of what, and why.

```
lexicon                      words and phrases, and their codes
└ tokens, rules              references, sentences as strings of codes, and the patterns over them
  └ page, reader, reading    a text's claims
    └ statements             a thread's texts: by whom, and when
      └ claim_tracker        what became of the claims
        └ decision, explain  the verdict, and its reasons
          └ detector         verdicts on a whole store
```
"""

from gis_builder.detection.claim_tracker import DEFAULT_RULES, KindOf, Rules
from gis_builder.detection.decision import decide
from gis_builder.detection.explain import explain
from gis_builder.detection.page import might_matter

__all__ = ["DEFAULT_RULES", "KindOf", "Rules", "decide", "explain", "might_matter"]
