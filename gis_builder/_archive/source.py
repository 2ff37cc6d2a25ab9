"""Where the hours are: a folder of files as the archive serves them, `YYYY-MM-DD-H.json.gz`, or a server."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from gis_builder._archive.extract import extract_hour
from gis_builder._archive.tasks import Task
from pairkit.errors import ConfigError, DataError

TRAILER = 8  # bytes at the end of a gzip: a checksum of the text, and its size


class HourFile(NamedTuple):
    """An hour's file.

    Attributes:
        hour: Its name.
        identity: What tells it from another version of the same hour without reading it.
        function: Makes its rows.
        arguments: Of the function.
    """

    hour: str
    identity: str
    function: Callable[..., bytes]
    arguments: tuple[Any, ...]


class Source(Protocol):
    """Has hours."""

    def tasks(self, hours: Sequence[str], /) -> list[Task]:
        """What has to be done before it is known which of the hours it has."""

    def find(self, hours: Sequence[str], /) -> list[HourFile]:
        """Those of the hours that it has.

        Raises:
            ConfigError: There is no such source.
            DataError: It has none of the hours, or one can't be read.
        """

    def forget(self, hour: str, hours: Sequence[str], /) -> None:
        """Look anew next time, as an hour is another than it was."""


class Folder:
    """See `Source`.

    Args:
        path: The folder.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def tasks(self, _hours: Sequence[str], /) -> list[Task]:
        """None: a look into the folder says it."""
        return []

    def find(self, hours: Sequence[str], /) -> list[HourFile]:
        """See `Source`."""
        folder = self._path
        if not folder.is_dir():
            raise ConfigError(f"source = {folder}: no such folder; give one with hours of GH Archive")
        paths = {hour: folder / f"{hour}.json.gz" for hour in hours}
        return at_least_one(
            (
                HourFile(hour, known, extract_hour, (path.resolve(), hour))
                for hour, path in paths.items()
                if (known := identity_of(path)) is not None
            ),
            hours,
            folder,
        )

    def forget(self, _hour: str, _hours: Sequence[str], /) -> None:
        """Nothing is remembered."""


def at_least_one(found: Iterable[HourFile], hours: Sequence[str], where: Path | str) -> list[HourFile]:
    """The hours of a source.

    Raises:
        DataError: There are none.
    """
    hour_files = list(found)
    if not hour_files:
        raise DataError(f"holds none of the hours, such as {hours[0]}.json.gz; give others", path=where)
    return hour_files


def identity(size: int, trailer: bytes) -> str:
    """What tells a file of so many bytes that ends so from others."""
    return f"{size} {trailer.hex()}"


def identity_of(path: Path) -> str | None:
    """See `identity`; None where there is no file.

    Raises:
        DataError: It can't be read.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
            raise DataError("is not a regular file; take it out of the folder", path=path)
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TRAILER))
            return identity(size, file.read())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(
            f"can't be read ({error.strerror or error}); fix its permissions, or take the file out",
            path=path,
        ) from error
