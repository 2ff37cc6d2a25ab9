"""GitHub issues to a leak-free dataset of duplicate pairs (GIS; Li & Li, ACL 2024, sections 4 and B).

A tracker that was saved to disk needs neither token nor network:

>>> import gis_builder
>>> crawled = gis_builder.import_tracker("tracker", work="gis.work", progress=False)
>>> gis_builder.detect("gis.work", progress=False).duplicates
23
>>> why = gis_builder.explain("gis.work", "quarryhq/quarry#58")
>>> why.outcome, why.targets
('duplicate', ('quarryhq/quarry#41',))
>>> built = gis_builder.pair("gis.work", out="gis", progress=False)
>>> built.positives == sum((rows["label"] == 1).sum() for rows in built.pairs.splits.values())
True

`build` does all of it for repositories on GitHub, with a token from the environment; `plan` says before what
that will cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairkit.face import lazy_names

if TYPE_CHECKING:
    from gis_builder._face import archive as archive
    from gis_builder._face import backtest as backtest
    from gis_builder._face import build as build
    from gis_builder._face import crawl as crawl
    from gis_builder._face import demo as demo
    from gis_builder._face import detect as detect
    from gis_builder._face import explain as explain
    from gis_builder._face import import_tracker as import_tracker
    from gis_builder._face import pair as pair
    from gis_builder._face import plan as plan
    from gis_builder._face import render as render
    from gis_builder._face import status as status
    from gis_builder._face import suggest as suggest
    from gis_builder._plan import Plan as Plan
    from gis_builder._results import ArchiveBuilt as ArchiveBuilt
    from gis_builder._results import Built as Built
    from gis_builder._results import Crawled as Crawled
    from gis_builder._results import Detected as Detected
    from gis_builder._results import Explanation as Explanation
    from gis_builder._results import IncompleteCrawlError as IncompleteCrawlError
    from gis_builder._results import Rendered as Rendered
    from gis_builder._status import Status as Status
    from gis_builder._suggest import Backtested as Backtested
    from gis_builder._suggest import Suggested as Suggested

_FUNCTIONS = (
    *(
        "archive",
        "backtest",
        "build",
        "crawl",
        "demo",
        "detect",
        "explain",
        "import_tracker",
        "pair",
        "plan",
        "render",
        "status",
        "suggest",
    ),
)
_PLACES = {
    **dict.fromkeys(_FUNCTIONS, "gis_builder._face"),
    **dict.fromkeys(
        ("ArchiveBuilt", "Built", "Crawled", "Detected", "Explanation", "Rendered"),
        "gis_builder._results",
    ),
    "IncompleteCrawlError": "gis_builder._results",
    "Backtested": "gis_builder._suggest",
    "Plan": "gis_builder._plan",
    "Status": "gis_builder._status",
    "Suggested": "gis_builder._suggest",
}
__all__ = list(_PLACES)
__getattr__, __dir__ = lazy_names(__name__, _PLACES)
