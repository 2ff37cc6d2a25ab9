"""Show a crawl's progress on the terminal: one line for each stage of a repository that is under way."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.progress import TaskID

from gis_builder._github import Advanced, Finished, Progress, Waiting
from pairkit.terminal import progress, say

_WORDS = {
    "check": "looking up",
    "discover": "searching",
    "threads": "reading threads",
    "top-ups": "completing threads",
    "sweep": "sweeping",
    "issues": "canonical issues",
    "pool": "issues for negatives",
    "update": "updating",
}
_WORTH_SAYING_S = 5.0


class CrawlWatch:
    """Listens to a crawl, event by event. Where stderr is no terminal only waits and failures show."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._display = progress(quiet=quiet)
        self._tasks: dict[tuple[str, str], TaskID] = {}

    def __enter__(self) -> Self:
        self._display.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._display.stop()

    def __call__(self, event: Progress) -> None:
        """Show one event; called from the workers' threads."""
        match event:
            case Advanced():
                self._advance(event)
            case Finished():
                self._finish(event)
            case Waiting():
                self._wait(event)

    def _advance(self, event: Advanced) -> None:
        key = (event.repo, event.stage)
        if key not in self._tasks:
            words = _WORDS.get(event.stage, event.stage)
            self._tasks[key] = self._display.add_task(f"{event.repo or 'all'}: {words}", note="")
        self._display.update(self._tasks[key], completed=event.done, total=event.total or None, note="")

    def _finish(self, event: Finished) -> None:
        for key in [key for key in self._tasks if key[0] == event.repo]:
            self._display.remove_task(self._tasks.pop(key))
        if event.failure and event.repo:  # what failed for all is the command's own error
            say(f"{event.repo}: failed, the others go on ({event.failure})", quiet=self._quiet)

    def _wait(self, event: Waiting) -> None:
        until = time.strftime("%H:%M:%S", time.localtime(event.until))
        for task in self._tasks.values():
            self._display.update(task, note=f"waiting until {until}: {event.why[:60]}")
        if event.seconds >= _WORTH_SAYING_S:
            say(f"waiting {event.seconds:.0f} s, until {until}: {event.why}", quiet=self._quiet)
