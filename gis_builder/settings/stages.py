"""Settings of detection and of the pool, which whatever makes a dataset has."""

from __future__ import annotations

from pydantic import Field

from pairkit.app.settings import Settings


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
