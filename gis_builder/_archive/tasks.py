"""A task: a pure function that makes one file, whole or absent, named by a digest of all that decides it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from pairkit.errors import DataError
from pairkit.files import write_bytes
from pairkit.printable import one_line

_DIGITS = 20


class Task(NamedTuple):
    """What makes a file; "it exists" means that the task is done.

    Attributes:
        out: The file.
        function: A function of a module, so that any process can be told of it.
        arguments: What it is given: paths, numbers and texts.
        needs: Files that other tasks make.
    """

    out: Path
    function: Callable[..., bytes]
    arguments: tuple[Any, ...]
    needs: tuple[Path, ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether the file is there."""
        return self.out.exists()

    @property
    def is_ready(self) -> bool:
        """Whether all that it needs is there."""
        return all(path.exists() for path in self.needs)


def do(task: Task) -> None:
    """Do a task that is not done; the file is readable by its owner alone, as it may hold anybody's words."""
    if not task.is_done:
        write_bytes(task.out, task.function(*task.arguments), private=True)


def damaged(path: Path, error: Exception) -> DataError:
    """What to do where a task's file can't be read: it is made again."""
    return DataError(f"damaged ({one_line(str(error), 200)}); delete it and run again", path=path)


def file_named(folder: Path, stem: str, ending: str, *basis: object) -> Path:
    """The file of a task: `stem.DIGEST.ending`, the digest of `basis`, whose parts JSON can hold."""
    digest = digest_of(json.dumps(basis, sort_keys=True).encode())
    return folder / f"{stem}.{digest[:_DIGITS]}.{ending}"


def digest_of(data: bytes) -> str:
    """The hex SHA-256 of bytes."""
    return hashlib.sha256(data).hexdigest()
