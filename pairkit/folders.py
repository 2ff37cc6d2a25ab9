"""A folder that one process works in at a time."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pairkit.errors import ConfigError
from pairkit.files import write_errors

LOCK_FILE = "lock"


@contextmanager
def held_folder(folder: Path, remedy: str) -> Iterator[None]:
    """Make the folder and hold it for this process alone; the lock ends with the process, however it ends.

    Args:
        folder: The working folder.
        remedy: Who else may be there and what to do: "another gis process works in it; wait for it".

    Raises:
        ConfigError: the folder can't be written, or another process holds it.
    """
    with write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK_FILE).open("w")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConfigError(f"{folder}: {remedy}") from error
        yield
