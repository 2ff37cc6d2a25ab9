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

from pairkit.base.cli.startup import lazy_names

_PUBLIC_NAMES = {
    "gis_builder.api.crawls": "crawl detect explain import_tracker preview_import render status suggest",
    "gis_builder.api.datasets": "archive build demo pair plan read_hours",
    "gis_builder.crawling.crawl": "Plan",
    "gis_builder.crawling.import_preview": "ImportPreview",
    "gis_builder.crawling.status": "Crawled IncompleteCrawlError Status",
    "gis_builder.detection.explain": "Explanation",
    "gis_builder.detection.verdict_files": "Detected",
    "gis_builder.pairing.pairing_results": "ArchiveBuilt Built HoursRead Rendered",
    "gis_builder.pairing.suggest": "Suggested",
}
__getattr__, __dir__, __all__ = lazy_names(__name__, _PUBLIC_NAMES)
