"""A task: a pure function that makes one file, whole or absent, named by a digest of all that decides it."""

from __future__ import annotations

import hashlib
import json
import re
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from gis_builder._archive.objects import Location, ObjectPath, write
from pairkit.errors import DataError
from pairkit.printable import one_line

_Place = TypeVar("_Place", Path, ObjectPath, Location)
_DIGITS = 20
_OLD_S = 3600.0
# A task's file before it is whole, a table of the driver's, and an hour of which a part was downloaded.
_PASSING = re.compile(
    r"\.(?:[A-Za-z0-9-]+\.[0-9a-f]{20}\.(?:parquet|zlib|json)|(?:dropped|repositories)\.parquet)"
    r"\.[a-z0-9_]{8}"
    r"|\.[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{1,2}\.[0-9a-f]{12}\.json\.gz"
)


class Task(NamedTuple):
    """What makes a file; "it exists" means that the task is done.

    Attributes:
        out: The file.
        function: A function of a module, so that any process can be told of it.
        arguments: What it is given: paths, numbers and texts.
        needs: Files that other tasks make.
    """

    out: Location
    function: Callable[..., bytes]
    arguments: tuple[Any, ...]
    needs: tuple[Location, ...] = ()


def do(task: Task) -> None:
    """Do a task that is not done; the file is readable by its owner alone, as it may hold anybody's words."""
    if not task.out.exists():
        write(task.out, task.function(*task.arguments))


def damaged(path: Location, error: Exception) -> DataError:
    """What to do where a task's file can't be read: it is made again."""
    return DataError(f"damaged ({one_line(str(error), 200)}); delete it and run again", path=str(path))


def file_named(folder: _Place, stem: str, ending: str, *basis: object) -> _Place:
    """The file of a task: `stem.DIGEST.ending`, the digest of `basis`, whose parts JSON can hold."""
    digest = digest_of(json.dumps(basis, sort_keys=True).encode())
    return folder / f"{stem}.{digest[:_DIGITS]}.{ending}"


def remove_left_behind(work: Path) -> None:
    """Remove what killed processes left half written: files of ours with a passing name, an hour old.

    A younger one may be another shard's, which is still at it.
    """
    old = time.time() - _OLD_S
    for path in (*work.glob(".*"), *work.glob("*/.*")):
        with suppress(FileNotFoundError):
            status = path.lstat()
            is_old_file = stat.S_ISREG(status.st_mode) and status.st_mtime < old
            if is_old_file and _PASSING.fullmatch(path.name):
                path.unlink()


def digest_of(data: bytes) -> str:
    """The hex SHA-256 of bytes."""
    return hashlib.sha256(data).hexdigest()
