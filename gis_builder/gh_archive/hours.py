"""Ranges of hours of GH Archive, and their files in a folder."""

from __future__ import annotations

import re
import stat
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pairkit.base.errors import ConfigError, DataError

_DAY_OR_HOUR = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:-([0-9]{1,2}))?")
_HOUR = timedelta(hours=1)
# The first hour of today's schema; earlier events have no texts.
_FIRST = datetime(2015, 1, 1, tzinfo=UTC)
# The last hour with all events; later hours lack most of them.
LAST_COMPLETE = datetime(2025, 5, 23, 23, tzinfo=UTC)
_TRAILER = 8  # bytes at the end of a gzip file: checksum and size


def hours_between(text: str) -> list[str]:
    """The names of all hours of a range, such as `2015-01-01-0`, in order."""
    start, end = _first_and_last(text)
    if end < start:
        raise ConfigError(
            f"hours = {text}: the range ends before it starts; expected the earlier time first"
        )
    if start < _FIRST:
        raise ConfigError(
            f"hours = {text}: events before 2015-01-01 have no texts; start with 2015-01-01"
        )
    today = datetime.now(UTC).date()
    if end.date() > today:
        raise ConfigError(
            f"hours = {text}: the range ends after today; end with {today}"
        )
    count = (end - start) // _HOUR + 1
    moments = [start + index * _HOUR for index in range(count)]
    return [f"{moment:%Y-%m-%d}-{moment.hour}" for moment in moments]


def lacks_events(text: str) -> bool:
    """Whether a range ends after the last hour for which the archive is complete."""
    _, end = _first_and_last(text)
    return end > LAST_COMPLETE


def hour_files(folder: Path, hours: Sequence[str]) -> dict[str, tuple[Path, str]]:
    """The existing files of these hours, with their identities; names may have two digits of the hour."""
    names = _names_in(folder)
    files = {}
    for hour in hours:
        for name in (f"{hour}.json.gz", f"{hour[:11]}{hour[11:]:0>2}.json.gz"):
            path = folder.resolve() / name
            identity = identity_of(path) if name in names else None
            if identity is not None:
                files[hour] = (path, identity)
                break
    return files


def _names_in(folder: Path) -> set[str]:
    try:
        return {path.name for path in folder.iterdir()}
    except FileNotFoundError:  # the rows of its files may have been read before
        return set()
    except OSError as error:
        raise DataError(
            f"not readable as a folder ({error.strerror}); check the path and its permissions",
            path=folder,
        ) from error


def identity_of(path: Path) -> str | None:
    """Size and last bytes of a file, so that it need not be read; None if there is no file."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise DataError(
                "is a folder, pipe or device; remove it, or put the hour's file there",
                path=path,
            )
        with path.open("rb") as file:
            file.seek(max(0, status.st_size - _TRAILER))
            return f"{status.st_size} {file.read().hex()}"
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(
            f"not readable ({error.strerror}); check the path and its permissions",
            path=path,
        ) from error


def _first_and_last(text: str) -> tuple[datetime, datetime]:
    """The first and the last hour of a range."""
    first, dots, last = text.partition("..")
    return _parse(text, first, 0), _parse(text, last if dots else first, 23)


def _parse(text: str, part: str, default_hour: int) -> datetime:
    match = _DAY_OR_HOUR.fullmatch(part.strip())
    if match is None:
        raise ConfigError(
            f"hours = {text}: expected days or hours, such as 2015-01-01..2015-12-31 or"
            " 2015-01-01-0..2015-01-01-5"
        )
    try:
        day = datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
        return day.replace(hour=int(match[2]) if match[2] else default_hour)
    except ValueError as error:
        raise ConfigError(
            f"hours = {text}: {match[0]} doesn't exist; expected a day of the calendar,"
            " and an hour from 0 to 23"
        ) from error
