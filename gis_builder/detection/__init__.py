"""From a thread to a verdict: was the issue closed as a duplicate, of what, and why.

```
masking, references, lexicon, phrases   what a text says, word by word
└ tokens, rules, grammar                sentences as strings of codes, and the patterns over them
  └ page, reader, markers               a text's claims (claims, address, prefilter)
    └ statements, ledger, weight        a thread's claims: by whom, when, what became of them
      └ decision, targets, explain      the verdict, and its reasons
        relations                       what the closing words say of the two
        └ clusters                      what the decisions add up to
```
"""

from gis_builder.detection.clusters import clusters
from gis_builder.detection.decision import decide
from gis_builder.detection.explain import explain
from gis_builder.detection.prefilter import might_matter
from gis_builder.detection.targets import DEFAULT_RULES, KindOf, Rules

__all__ = ["DEFAULT_RULES", "KindOf", "Rules", "clusters", "decide", "explain", "might_matter"]
