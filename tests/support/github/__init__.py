"""A test server that serves saved trackers as GitHub's GraphQL API, with rate limits and faults.

```python
with serve(Path("data/sample"), faults=FaultPlan(rules=(Rule(kind="502", probability=0.1),))) as server:
    crawl(server.url)
    print(server.stats)
```

Any token is valid except `bad`; `noaccess` can't read any repository. The number of a transferred issue
resolves to the issue in its new repository. The state reason DUPLICATE is shown as NOT_PLANNED unless the
query enables duplicates.
"""

from tests.support.github.faults import FaultPlan, Kind, Rule, read_plan
from tests.support.github.server import Server, serve
from tests.support.github.service import Options, Stats

__all__ = [
    "FaultPlan",
    "Kind",
    "Options",
    "Rule",
    "Server",
    "Stats",
    "read_plan",
    "serve",
]
