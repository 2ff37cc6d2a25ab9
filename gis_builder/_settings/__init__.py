"""All settings of a build in one tree; each section belongs to the stage that it is named after."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gis_builder._settings.crawl import CrawlSettings
from gis_builder._settings.pairs import PairSettings, SplitSettings, TextSettings
from pairkit.config import Settings


class DetectSettings(Settings):
    """What counts as a duplicate."""

    # count a duplicate of another repository's issue, which is uncertain by default
    allow_cross_repository: bool = False
    # leave out duplicates below this confidence, and count them
    min_confidence: float = Field(default=0.0, ge=0, le=1)


class PoolSettings(Settings):
    """Issues that are fetched only to serve in negatives; a sweep has them all anyway."""

    per_positive: float = Field(default=1.0, ge=0)  # issues to fetch for each positive of a repository
    at_least: int = Field(default=50, ge=0)  # issues to fetch of each repository at least


class BuildSettings(Settings):
    """A whole build."""

    seed: int = 42  # decides every random choice
    api: Literal["graphql", "rest"] = "graphql"  # REST is for servers without GraphQL
    crawl: CrawlSettings = CrawlSettings()
    detect: DetectSettings = DetectSettings()
    pool: PoolSettings = PoolSettings()
    text: TextSettings = TextSettings()
    pair: PairSettings = PairSettings()
    split: SplitSettings = SplitSettings()
