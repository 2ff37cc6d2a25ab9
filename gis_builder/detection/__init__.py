"""From a thread to a verdict: whether its issue was closed as a duplicate, of which issues, and why.

```
lexicon, languages/*.toml    words and phrases, and their codes
└ tokens, rules              references, sentences as strings of codes, and patterns over these
  └ page, reader, reading    the claims of a text
    └ statements             the texts of a thread with speakers and times
      └ claim_tracker        claims confirmed, disputed or revoked
        └ decision, explain  the verdict and its explanation
          └ detector         the verdicts of a store
```
"""

from gis_builder.detection.claim_tracker import DEFAULT_RULES, KindOf, Rules
from gis_builder.detection.decision import decide
from gis_builder.detection.explain import explain
from gis_builder.detection.page import might_matter

__all__ = ["DEFAULT_RULES", "KindOf", "Rules", "decide", "explain", "might_matter"]
