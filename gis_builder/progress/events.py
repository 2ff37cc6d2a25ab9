"""What a crawl tells whoever watches it. Plain events; how they are shown is not decided here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Began:
    """So many repositories are next, for one stage."""

    stage: str  # check | search | sweep | update | fetch | pool
    repos: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """Nothing is asked for a while."""

    why: str
    seconds: float
    until: float  # this machine's clock, epoch seconds, for showing only


@dataclass(frozen=True, slots=True)
class Advanced:
    """A page was stored."""

    repo: str
    stage: str  # check | discover | threads | top-ups | sweep | issues | pool | update
    done: int
    total: int  # the best guess so far; 0 where there is none
    points_left: int | None = None  # of this worker's token, as the server said last


@dataclass(frozen=True, slots=True)
class Finished:
    """A repository is done with, well or not."""

    repo: str
    stage: str
    failure: str = ""  # empty: it went well


CrawlEvent = Began | Waiting | Advanced | Finished
Listener = Callable[[CrawlEvent], None]


def ignore(event: CrawlEvent) -> None:
    """Watch nothing."""
