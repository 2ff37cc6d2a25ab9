"""All settings of a build in one tree, with one section for each stage."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from gis_builder.settings.crawl import CrawlSettings
from gis_builder.settings.pairs import DetectSettings, PairSettings, PoolSettings, SplitSettings, TextSettings
from gis_builder.settings.strategies import STRATEGIES
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


class LimitSettings(Settings):
    """Which repositories contribute, and how much, so that a few large ones do not dominate."""

    min_closed: int = Field(default=1, ge=1)  # minimum number of closed issues of a repository
    per_repo_max: int | None = Field(default=None, ge=1)  # maximum number of positives of a repository


class ArchiveSettings(Settings):
    """A dataset from GH Archive."""

    seed: int = 42  # decides every random choice
    limits: LimitSettings = LimitSettings()
    detect: DetectSettings = DetectSettings()
    pool: PoolSettings = PoolSettings()
    text: TextSettings = TextSettings()
    pair: PairSettings = PairSettings()
    split: SplitSettings = SplitSettings()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.detect.allow_cross_repository:
            raise ValueError(
                "detect.allow_cross_repository: GH Archive judges each repository separately; leave it off"
            )
        if self.pair.negatives not in STRATEGIES:
            raise ValueError("pair.negatives: GH Archive takes no function; give random, hard or mixed")
        return self
