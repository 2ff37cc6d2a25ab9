"""All settings of a build in one tree; each section belongs to the stage that it is named after."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gis_builder._config import PairSettings, SplitSettings, TextSettings
from gis_builder._github.settings import CrawlSettings
from pairkit.config import Settings


class DetectSettings(Settings):
    """What counts as a duplicate."""

    allow_cross_repository: bool = False  # a target in another repository, which is else `uncertain`
    min_confidence: float = Field(default=0.0, ge=0, le=1)  # less sure duplicates are left out, and counted


class PoolSettings(Settings):
    """Issues that are fetched only to serve in negatives; a sweep has them all anyway."""

    per_positive: float = Field(default=1.0, ge=0)
    at_least: int = Field(default=50, ge=0)


class BuildSettings(Settings):
    """A whole build."""

    seed: int = 42
    api: Literal["graphql", "rest"] = "graphql"
    crawl: CrawlSettings = CrawlSettings()
    detect: DetectSettings = DetectSettings()
    pool: PoolSettings = PoolSettings()
    text: TextSettings = TextSettings()
    pair: PairSettings = PairSettings()
    split: SplitSettings = SplitSettings()
