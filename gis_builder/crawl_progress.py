"""The display of a run's progress."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
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


class RunDisplay(Display):
    """Displays the progress of a run; a crawl's workers may call it from their threads."""

    def __init__(self, progress: bool | Listener) -> None:
        super().__init__(progress)
        self._is_quiet = progress is not True
        self._crawling = threading.Lock()
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

    def began(self, stage: str, repos: int) -> None:
        """Display that a stage of a crawl began: check, search, sweep, update, fetch or pool."""
        with self._crawling:
            self._repos = Progress(f"repositories: {_STAGES[stage]}", 0, repos)
            self._show_repos()

    def advanced(
        self, repo: str, stage: str, done: int, total: int, points_left: int | None
    ) -> None:
        """Display that a page was stored; `total` is an estimate, and 0 if it is unknown."""
        with self._crawling:
            if points_left is not None:
                self._points_left = f"{points_left:,} points left"
            name = f"{repo or 'all'}: {_STAGES.get(stage, stage)}"
            now = Progress(name, done, total or None, self._points_left)
            self._active.setdefault(repo, {})[name] = now
            self(now)

    def finished(self, repo: str, failure: str) -> None:
        """Display that a repository finished, or failed."""
        with self._crawling:
            for stage in self._active.pop(repo, {}):
                self(Progress(stage, ended=True))
            done = self._repos.done + 1
            self._repos = replace(self._repos, done=done, note=self._points_left)
            self._show_repos()
        # The failure of a job for several repositories is raised as an error.
        if failure and repo:
            self.say(f"{repo}: failed, the others continue ({failure})")

    def waiting(self, why: str, seconds: float) -> None:
        """Display that no request is sent for some time."""
        end = time.localtime(time.time() + seconds)
        until = time.strftime("%H:%M:%S", end)
        with self._crawling:
            for stages in self._active.values():
                for progress in stages.values():
                    self(replace(progress, note=f"waiting until {until}: {why[:60]}"))
        if seconds >= _MIN_SHOWN_WAIT_S:
            self.say(f"waiting {seconds:.0f} s, until {until}: {why}")

    def _show_repos(self) -> None:
        """Display how many repositories have finished this stage."""
        repos = self._repos
        if repos.total and repos.total > 1:
            self(replace(repos, ended=repos.done >= repos.total))
