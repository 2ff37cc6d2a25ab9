"""All settings of a build in one tree; each section belongs to the stage that it is named after."""

from __future__ import annotations

from gis_builder.settings.archive import ArchiveSettings, LimitSettings
from gis_builder.settings.crawl import CrawlSettings
from gis_builder.settings.pairs import DetectSettings, PairSettings, PoolSettings, SplitSettings, TextSettings
from pairkit.app.settings import Settings

__all__ = [
    "ArchiveSettings",
    "BuildSettings",
    "CrawlSettings",
    "DetectSettings",
    "LimitSettings",
    "PairSettings",
    "PoolSettings",
    "SplitSettings",
    "TextSettings",
]


class BuildSettings(Settings):
    """A whole build."""

    seed: int = 42  # decides every random choice
    crawl: CrawlSettings = CrawlSettings()
    detect: DetectSettings = DetectSettings()
    pool: PoolSettings = PoolSettings()
    text: TextSettings = TextSettings()
    pair: PairSettings = PairSettings()
    split: SplitSettings = SplitSettings()
