"""Settings of a dataset from GH Archive: those of a build without its crawl, and limits on the long tail."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from gis_builder._settings.pairs import PairSettings, SplitSettings, TextSettings
from gis_builder._settings.stages import DetectSettings, PoolSettings
from gis_builder._strategies import STRATEGIES
from pairkit.config import Settings


def _names(value: object) -> object:
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError("expected names with commas between them, such as Rust,C++")
    return tuple(sorted({name.strip().casefold() for name in names} - {""}))


class LimitSettings(Settings):
    """Which repositories give how much, so that a few, or many tiny ones, do not drown the rest."""

    min_closed: int = Field(default=1, ge=1)  # closed issues that a repository has at least
    # repositories mostly written in one of these, as their pull requests say; empty takes all repositories
    languages: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()
    # issues from which on an author counts as a bot in a repository, if nearly all are alike; 0: nobody does
    template_bots: int = Field(default=10, ge=0)
    per_repo_max: int | None = Field(default=None, ge=1)  # most positives of a repository


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
                "detect.allow_cross_repository: repositories are judged one by one; leave it off"
            )
        if self.pair.negatives not in STRATEGIES:
            raise ValueError("pair.negatives: other processes draw them; give random, hard or mixed")
        return self
