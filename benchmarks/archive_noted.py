"""`gis archive FLAGS` with a note of each task's beginning and end: `archive_noted.py LOG FLAGS…`.

Notes are lines in LOG, `SECONDS begin|end FOLDER/NAME CPU`, whoever does the task: the name of its file, and
the CPU seconds of the process so far. So a task that was done twice has begun twice.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

from gis_builder._archive import engine as engines
from gis_builder._archive.tasks import Task

_choose = engines.engine_of


def noted(log: str, name: str, function: Callable[..., bytes], arguments: tuple[Any, ...]) -> bytes:
    """Do what a task does, between two notes."""
    _note(log, "begin", name)
    made = function(*arguments)
    _note(log, "end", name)
    return made


def name_of(task: Task) -> str:
    """The stage and the file."""
    return f"{task.out.parent.name}/{task.out.name}"


def _note(log: str, what: str, name: str) -> None:
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, f"{time.time():.3f} {what} {name} {time.process_time():.3f}\n".encode())
    finally:
        os.close(file)


class Noting:
    """An engine whose tasks are noted."""

    def __init__(self, engine: engines.Engine, log: str) -> None:
        self._engine, self._log = engine, log

    def __enter__(self) -> Self:
        self._engine.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._engine.__exit__(*error)

    def run(self, tasks: Sequence[Task]) -> Iterator[None]:
        """See `Engine`."""
        yield from self._engine.run(
            [
                Task(task.out, noted, (self._log, name_of(task), task.function, task.arguments), task.needs)
                for task in tasks
            ]
        )


if __name__ == "__main__":
    # Workers know this module by its name.
    import archive_noted

    from gis_builder.__main__ import main

    log = sys.argv.pop(1)
    engines.engine_of = lambda *given: archive_noted.Noting(_choose(*given), log)
    sys.argv.insert(1, "archive")
    sys.exit(main())
