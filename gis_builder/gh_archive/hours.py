"""Ranges of hours of GH Archive, and their files in a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from pairkit.app.errors import ConfigError, DataError

_DAY_OR_HOUR = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:-([0-9]{1,2}))?")
_HOUR = timedelta(hours=1)
_FIRST = datetime(2015, 1, 1, tzinfo=UTC)  # earlier events have another schema without texts
_LAST_COMPLETE = datetime(2025, 5, 23, 23, tzinfo=UTC)  # most hours after it lack events
_TRAILER = 8  # bytes at the end of a gzip file: checksum and size


class HourFile(NamedTuple):
    """The file of an hour; `identity` depends on its content."""

    hour: str
    path: Path
    identity: str


def hours_between(text: str) -> list[str]:
    """The names of all hours of a range, such as `2015-01-01-0`, in order."""
    start, end = _ends(text)
    if end < start:
        raise ConfigError(f"hours = {text}: the range ends before it starts; expected the earlier time first")
    if start < _FIRST:
        raise ConfigError(f"hours = {text}: events before 2015-01-01 have no texts; start with 2015-01-01")
    if end.date() > (today := datetime.now(UTC).date()):
        raise ConfigError(f"hours = {text}: the range ends after today; end with {today}")
    moments = (start + index * _HOUR for index in range((end - start) // _HOUR + 1))
    return [f"{moment:%Y-%m-%d}-{moment.hour}" for moment in moments]


def span_of(hours: Sequence[str]) -> str:
    """The range as written to run.json and the card."""
    return f"{hours[0]}..{hours[-1]}"


def lacks_events(text: str) -> bool:
    """Whether a range ends after the last hour for which the archive is complete."""
    return _ends(text)[1] > _LAST_COMPLETE


def hour_files(folder: Path, hours: Sequence[str]) -> list[HourFile]:
    """The existing files of these hours in a folder."""
    if not folder.is_dir():
        raise ConfigError(f"source = {folder}: no such folder; expected one with hours of GH Archive")
    paths = {hour: folder.resolve() / f"{hour}.json.gz" for hour in hours}
    files = [
        HourFile(hour, path, identity)
        for hour, path in paths.items()
        if (identity := _identity(path)) is not None
    ]
    if not files:
        raise DataError(f"no files of these hours, such as {hours[0]}.json.gz; check hours", path=folder)
    return files


def _identity(path: Path) -> str | None:
    """Size and last bytes of a file, so that it need not be read; None if there is no file."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TRAILER))
            return f"{size} {file.read().hex()}"
    except FileNotFoundError:
        return None


def _ends(text: str) -> tuple[datetime, datetime]:
    first, dots, last = text.partition("..")
    return _parse(text, first, 0), _parse(text, last if dots else first, 23)


def _parse(text: str, part: str, default_hour: int) -> datetime:
    match = _DAY_OR_HOUR.fullmatch(part.strip())
    if match is not None:
        try:
            day = datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
            return day.replace(hour=int(match[2]) if match[2] else default_hour)
        except ValueError:
            pass
    raise ConfigError(
        f"hours = {text}: expected days or hours, such as 2015-01-01..2015-12-31 or"
        " 2015-01-01-0..2015-01-01-5"
    )
