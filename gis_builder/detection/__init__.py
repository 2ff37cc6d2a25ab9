"""From a thread to a verdict: was the issue closed as a duplicate, of what, and why.

```
lexicon, phrases                     what a text says, word by word
└ tokens, rules                      references, sentences as strings of codes, and the patterns over them
  └ page, reader, reading            a text's claims (claims)
    └ statements, claim_tracker      a thread's claims: by whom, when, what became of them
      └ decision, explain            the verdict, and its reasons
        └ clusters                   what the verdicts add up to
```
"""

from gis_builder.detection.claims import DEFAULT_RULES, KindOf, Rules
from gis_builder.detection.clusters import clusters
from gis_builder.detection.decision import decide
from gis_builder.detection.explain import explain
from gis_builder.detection.page import might_matter

__all__ = ["DEFAULT_RULES", "KindOf", "Rules", "clusters", "decide", "explain", "might_matter"]
