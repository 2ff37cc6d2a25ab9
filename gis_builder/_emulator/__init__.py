"""A local GitHub that serves a saved tracker over GraphQL and REST, with its limits and with faults.

```python
with serve(Path("data/sample"), faults=FaultPlan(rules=(Rule(kind="502", probability=0.1),))) as server:
    crawl(server.url)
    print(server.stats)
```

It takes any token; `bad` is refused, `noaccess` may read no repository, and `readonly` may not write. Over
REST, comments are written and removed and labels added, in memory alone. Where GitHub's own behaviour is not
documented, it does this: a dry run costs nothing; the number of a transferred issue resolves to the issue
in its new repository, unless `Options.follows_transfers` is false; a state reason of DUPLICATE reads
NOT_PLANNED to who did not ask for duplicates; `OR` in a search is refused.
"""

from gis_builder._emulator.faults import FaultPlan, Kind, Rule, read_plan
from gis_builder._emulator.server import Server, serve
from gis_builder._emulator.service import Options
from gis_builder._emulator.stats import Stats

__all__ = ["FaultPlan", "Kind", "Options", "Rule", "Server", "Stats", "read_plan", "serve"]
