"""No more connections at once than were allowed, over all processes that share a working folder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pairkit.files import open_own, write_errors


@contextmanager
def connection(folder: Path, most: int) -> Iterator[None]:
    """Hold one of so many places; a place whose holder is killed is free again.

    Args:
        folder: Where the places are, a file each.
        most: How many there are.

    Raises:
        ConfigError: The folder can't be written, or its file system has no locks.
    """
    with ExitStack() as stack:
        with write_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            _hold(folder, most, stack)
        yield


def _hold(folder: Path, most: int, stack: ExitStack) -> None:
    first = os.getpid() % most
    for place in range(first, first + most):
        with ExitStack() as own:
            file = own.enter_context(open_own(folder / str(place % most), private=True))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            stack.push(own.pop_all())
            return
    file = stack.enter_context(open_own(folder / str(first), private=True))
    fcntl.flock(file, fcntl.LOCK_EX)
