"""Hours of GH Archive: ranges of them, and their files in a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from pairkit.app.errors import ConfigError, DataError

_FORM = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:-([0-9]{1,2}))?")
_HOUR = timedelta(hours=1)
_FIRST = datetime(2015, 1, 1, tzinfo=UTC)  # events before it have another schema, and no texts
_LAST_WHOLE = datetime(2025, 5, 23, 23, tzinfo=UTC)  # most hours after it lack events
_TRAILER = 8  # bytes at the end of a gzip: the text's checksum and size


class HourFile(NamedTuple):
    """The file of an hour; a file with other contents has another identity."""

    hour: str
    path: Path
    identity: str


def hours_between(words: str) -> list[str]:
    """The names of all hours of a range, in order: `2015-01-01-0` and so on."""
    begin, end = _ends(words)
    if end < begin:
        raise ConfigError(f"hours = {words}: ends before it begins; give the earlier first")
    if begin < _FIRST:
        raise ConfigError(
            f"hours = {words}: events before 2015-01-01 hold no texts; begin with 2015-01-01 or later"
        )
    if end.date() > (today := datetime.now(UTC).date()):
        raise ConfigError(f"hours = {words}: end after today; end with {today} or earlier")
    moments = (begin + place * _HOUR for place in range((end - begin) // _HOUR + 1))
    return [f"{moment:%Y-%m-%d}-{moment.hour}" for moment in moments]


def span_of(hours: Sequence[str]) -> str:
    """A range in the one form that run.json and the card have."""
    return f"{hours[0]}..{hours[-1]}"


def lacks_events(words: str) -> bool:
    """Whether a range goes beyond the last hour for which the archive is complete."""
    return _ends(words)[1] > _LAST_WHOLE


def hour_files(folder: Path, hours: Sequence[str]) -> list[HourFile]:
    """The files of those hours that a folder has."""
    if not folder.is_dir():
        raise ConfigError(f"source = {folder}: no such folder; give one with hours of GH Archive")
    paths = {hour: folder.resolve() / f"{hour}.json.gz" for hour in hours}
    found = [
        HourFile(hour, path, identity)
        for hour, path in paths.items()
        if (identity := _identity(path)) is not None
    ]
    if not found:
        raise DataError(f"holds none of the hours, such as {hours[0]}.json.gz; give others", path=folder)
    return found


def _identity(path: Path) -> str | None:
    """Size and last bytes of a file, which need no reading of the rest; None if there is no file."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TRAILER))
            return f"{size} {file.read().hex()}"
    except FileNotFoundError:
        return None


def _ends(words: str) -> tuple[datetime, datetime]:
    first, dots, last = words.partition("..")
    return _moment(words, first, 0), _moment(words, last if dots else first, 23)


def _moment(words: str, part: str, hour_of_a_day: int) -> datetime:
    match = _FORM.fullmatch(part.strip())
    if match is not None:
        try:
            day = datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
            return day.replace(hour=int(match[2]) if match[2] else hour_of_a_day)
        except ValueError:
            pass
    raise ConfigError(
        f"hours = {words}: expected days or hours, such as 2015-01-01..2015-12-31 or"
        " 2015-01-01-0..2015-01-01-5"
    )
