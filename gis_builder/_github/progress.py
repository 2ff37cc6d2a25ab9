"""What a crawl tells whoever watches it. Plain events; how they are shown is not decided here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


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


@dataclass(frozen=True, slots=True)
class Finished:
    """A repository is done with, well or not."""

    repo: str
    stage: str
    failure: str = ""  # empty: it went well


Progress = Waiting | Advanced | Finished
Listener = Callable[[Progress], None]


def ignore(event: Progress) -> None:
    """Watch nothing."""
