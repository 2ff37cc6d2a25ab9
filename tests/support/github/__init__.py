"""A local GitHub that serves saved trackers over GraphQL, with its limits and with faults.

```python
with serve(Path("data/sample"), faults=FaultPlan(rules=(Rule(kind="502", probability=0.1),))) as server:
    crawl(server.url)
    print(server.stats)
```

It takes any token; `bad` is refused, and `noaccess` may read no repository. The number of a transferred issue
resolves to the issue in its new repository; a state reason of DUPLICATE reads NOT_PLANNED unless duplicates
are asked for.
"""

from tests.support.github.faults import FaultPlan, Kind, Rule, read_plan
from tests.support.github.server import Server, serve
from tests.support.github.service import Options, Stats

__all__ = ["FaultPlan", "Kind", "Options", "Rule", "Server", "Stats", "read_plan", "serve"]
