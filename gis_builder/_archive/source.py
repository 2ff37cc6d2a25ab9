"""Where the hours are: a folder of files as the archive serves them, `YYYY-MM-DD-H.json.gz`."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pairkit.errors import ConfigError, DataError

_TRAILER = 8  # of gzip: a checksum of the text, and its size


class HourFile(NamedTuple):
    """An hour's file.

    Attributes:
        hour: Its name.
        path: Where it is.
        identity: What tells it from another version of the same hour without reading it.
    """

    hour: str
    path: Path
    identity: str


def hours_in(folder: Path, hours: Iterable[str]) -> list[HourFile]:
    """Those of the hours that a folder holds.

    Raises:
        ConfigError: There is no such folder.
        DataError: It holds none of the hours, or one can't be read.
    """
    if not folder.is_dir():
        raise ConfigError(f"source = {folder}: no such folder; give one with hours of GH Archive")
    asked = list(hours)
    found = list(_found(folder, asked))
    if not found:
        raise DataError(f"holds none of the hours, such as {asked[0]}.json.gz; give others", path=folder)
    return found


def _found(folder: Path, hours: Iterable[str]) -> Iterator[HourFile]:
    for hour in hours:
        path = folder / f"{hour}.json.gz"
        try:
            if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
                raise DataError("is not a regular file; take it out of the folder", path=path)
            with path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - _TRAILER))
                yield HourFile(hour, path.resolve(), f"{size} {file.read().hex()}")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise DataError(
                f"can't be read ({error.strerror or error}); fix its permissions, or take the file out",
                path=path,
            ) from error
