"""Build a leak-free dataset of duplicate pairs from GitHub issues (GIS; Li & Li, ACL 2024, sections 4 and B).

A saved tracker needs neither token nor network:

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

`build` runs all stages for repositories on GitHub, with a token from the environment; `plan` estimates the
cost in advance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairkit.base.cli.startup import lazy_names

if TYPE_CHECKING:
    from gis_builder.api import archive as archive
    from gis_builder.api import build as build
    from gis_builder.api import crawl as crawl
    from gis_builder.api import demo as demo
    from gis_builder.api import detect as detect
    from gis_builder.api import explain as explain
    from gis_builder.api import import_tracker as import_tracker
    from gis_builder.api import pair as pair
    from gis_builder.api import plan as plan
    from gis_builder.api import preview_import as preview_import
    from gis_builder.api import render as render
    from gis_builder.api import status as status
    from gis_builder.api import suggest as suggest
    from gis_builder.crawling.crawl_plan import Plan as Plan
    from gis_builder.crawling.status import Crawled as Crawled
    from gis_builder.crawling.status import IncompleteCrawlError as IncompleteCrawlError
    from gis_builder.crawling.status import Status as Status
    from gis_builder.detection.detection_results import Detected as Detected
    from gis_builder.detection.detection_results import Explanation as Explanation
    from gis_builder.pairing.pairing_results import ArchiveBuilt as ArchiveBuilt
    from gis_builder.pairing.pairing_results import Built as Built
    from gis_builder.pairing.pairing_results import HoursRead as HoursRead
    from gis_builder.pairing.pairing_results import Rendered as Rendered
    from gis_builder.pairing.suggest import Suggested as Suggested
    from gis_builder.trackers.preview import ImportPreview as ImportPreview

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "gis_builder.api": (
            "archive build crawl demo detect explain import_tracker pair plan preview_import render status"
            " suggest"
        ),
        "gis_builder.crawling.crawl_plan": "Plan",
        "gis_builder.crawling.status": "Crawled IncompleteCrawlError Status",
        "gis_builder.detection.detection_results": "Detected Explanation",
        "gis_builder.pairing.pairing_results": "ArchiveBuilt Built HoursRead Rendered",
        "gis_builder.pairing.suggest": "Suggested",
        "gis_builder.trackers.preview": "ImportPreview",
    },
)
