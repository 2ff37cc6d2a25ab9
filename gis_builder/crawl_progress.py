"""The events of a crawl, and the display of a run's progress."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from pairkit.base.cli.progress import Display, Listener, Progress
from pairkit.base.cli.terminal import say

_STAGES = {
    "check": "looking up",
    "search": "searching",
    "threads": "reading threads",
    "top-ups": "completing threads",
    "sweep": "sweeping",
    "fetch": "canonical issues",
    "pool": "issues for negatives",
    "update": "updating",
}
_MIN_SHOWN_WAIT_S = 5.0
_MAX_UPDATES = 200  # of one progress bar

T = TypeVar("T")


@dataclass(frozen=True)
class Began:
    """A stage of `repos` repositories began."""

    stage: str  # check | search | sweep | update | fetch | pool
    repos: int


@dataclass(frozen=True)
class Waiting:
    """No request is sent for some time."""

    why: str
    seconds: float


@dataclass(frozen=True)
class Advanced:
    """A page was stored."""

    repo: str
    stage: str  # check | search | threads | top-ups | sweep | fetch | pool | update
    done: int
    total: int  # estimate; 0 if unknown
    points_left: int | None = None  # of this worker's token


@dataclass(frozen=True)
class Finished:
    """A repository finished or failed."""

    repo: str
    stage: str
    failure: str = ""  # empty: success


CrawlEvent = Began | Waiting | Advanced | Finished
CrawlListener = Callable[[CrawlEvent], None]


class RunDisplay(Display):
    """Displays the progress of a run; thread-safe for the events of a crawl's workers."""

    def __init__(self, progress: bool | Listener) -> None:
        super().__init__(progress)
        self._is_quiet = progress is not True
        self._events = threading.Lock()
        self._active: dict[str, dict[str, Progress]] = {}  # by repository and stage
        self._repos = Progress("")
        self._points_left = ""

    def say(self, line: str) -> None:
        """Print a line."""
        say(line, quiet=self._is_quiet)

    def counted(self, stage: str, items: Iterable[T], total: int) -> Iterator[T]:
        """Yield items and display their progress."""
        interval = max(1, total // _MAX_UPDATES)
        for done, item in enumerate(items):
            if done % interval == 0:
                self(Progress(stage, done, max(done, total)))
            yield item
        self(Progress(stage, total, total, ended=True))

    def crawling(self, event: CrawlEvent) -> None:
        """Display an event of a crawl."""
        with self._events:
            match event:
                case Began():
                    self._repos = Progress(
                        f"repositories: {_STAGES[event.stage]}", 0, event.repos
                    )
                    self._show_repos()
                case Advanced():
                    self._advance(event)
                case Finished():
                    self._finish(event)
                case Waiting():
                    self._wait(event)

    def _advance(self, event: Advanced) -> None:
        if event.points_left is not None:
            self._points_left = f"{event.points_left:,} points left"
        stage = f"{event.repo or 'all'}: {_STAGES.get(event.stage, event.stage)}"
        now = Progress(stage, event.done, event.total or None, self._points_left)
        self._active.setdefault(event.repo, {})[stage] = now
        self(now)

    def _finish(self, event: Finished) -> None:
        for stage in self._active.pop(event.repo, {}):
            self(Progress(stage, ended=True))
        self._repos = replace(
            self._repos, done=self._repos.done + 1, note=self._points_left
        )
        self._show_repos()
        # The failure of a job for several repositories is raised as an error.
        if event.failure and event.repo:
            self.say(f"{event.repo}: failed, the others continue ({event.failure})")

    def _show_repos(self) -> None:
        """Display how many repositories have finished this stage."""
        repos = self._repos
        if repos.total and repos.total > 1:
            self(replace(repos, ended=repos.done >= repos.total))

    def _wait(self, event: Waiting) -> None:
        end = time.localtime(time.time() + event.seconds)
        until = time.strftime("%H:%M:%S", end)
        for stages in self._active.values():
            for progress in stages.values():
                self(replace(progress, note=f"waiting until {until}: {event.why[:60]}"))
        if event.seconds >= _MIN_SHOWN_WAIT_S:
            self.say(f"waiting {event.seconds:.0f} s, until {until}: {event.why}")
