"""The settings of a build and of an archive, with a section for each stage."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from gis_builder.settings.crawl_settings import CrawlSettings
from gis_builder.settings.negative_strategies import STRATEGIES
from gis_builder.settings.pair_settings import (
    DetectSettings,
    PairSettings,
    PoolSettings,
    SplitSettings,
    TextSettings,
)
from pairkit.base.settings import Settings, setting

__all__ = [
    "ArchiveSettings", "BuildSettings", "CrawlSettings", "DetectSettings", "LimitSettings", "PairSettings",
    "PoolSettings", "SplitSettings", "TextSettings",
]  # fmt: skip


class _DatasetSettings(Settings):
    """The settings that builds and archives share."""

    seed: int = setting(42, "Seed of every random choice.")
    detect: DetectSettings = DetectSettings()
    pool: PoolSettings = PoolSettings()
    text: TextSettings = TextSettings()
    pair: PairSettings = PairSettings()
    split: SplitSettings = SplitSettings()


class BuildSettings(_DatasetSettings):
    """A dataset from a crawl."""

    crawl: CrawlSettings = CrawlSettings()


class LimitSettings(Settings):
    """Limits on repositories, so that a few large ones don't dominate."""

    min_closed: int = setting(1, "Minimum number of closed issues of a repository.", ge=1)
    per_repo_max: int | None = setting(None, "Maximum number of positives of a repository.", ge=1)


class ArchiveSettings(_DatasetSettings):
    """A dataset from GH Archive."""

    limits: LimitSettings = LimitSettings()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.detect.allow_cross_repository:
            raise ValueError(
                "detect.allow_cross_repository: not available, because GH Archive is judged by repository"
            )
        if self.pair.negatives not in STRATEGIES:
            raise ValueError("pair.negatives: expected random, hard or mixed; GH Archive takes no function")
        return self
