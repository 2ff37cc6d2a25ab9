"""Hours of GH Archive: a range of them as a person writes it, and what each is called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from pairkit.errors import ConfigError

_FORM = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:-([0-9]{1,2}))?")
_HOUR = timedelta(hours=1)
_FIRST = datetime(2015, 1, 1, tzinfo=UTC)  # before it events have another schema, and no texts
_LAST_WHOLE = datetime(2025, 5, 23, 23, tzinfo=UTC)  # after it most hours lack events


def hours_between(words: str, *, incomplete: bool = False) -> list[str]:
    """The names of all hours of a range, in order: `2015-01-01-0` and so on.

    Args:
        words: `A..B`, both included, each a day (`2015-01-31`) or an hour of one (`2015-01-31-7`), in UTC; or
            one of them alone.
        incomplete: Allow hours of which the archive holds only a part of what happened.

    Raises:
        ConfigError: It is no such range, or has hours that hold no texts, lack events or are still to come.
    """
    begin, end = _ends(words)
    if end < begin:
        raise ConfigError(f"hours = {words}: ends before it begins; give the earlier first")
    if begin < _FIRST:
        raise ConfigError(
            f"hours = {words}: events before 2015-01-01 hold no texts; begin with 2015-01-01 or later"
        )
    if end.date() > (today := datetime.now(UTC).date()):
        raise ConfigError(f"hours = {words}: end after today; end with {today} or earlier")
    if end > _LAST_WHOLE and not incomplete:
        raise ConfigError(
            f"hours = {words}: after 2025-05-23 the archive lacks most events, and so most duplicates; end"
            " with 2025-05-23, or give --incomplete (incomplete=True)"
        )
    count = (end - begin) // _HOUR + 1
    return [_name(begin + place * _HOUR) for place in range(count)]


def span_of(hours: Sequence[str]) -> str:
    """A range in one way of all in which it can be written, the hours' names of `hours_between`."""
    return f"{hours[0]}..{hours[-1]}"


def lacks_events(words: str) -> bool:
    """Whether a range has hours after the last of which the archive is whole."""
    return _ends(words)[1] > _LAST_WHOLE


def month_of(hour: str) -> str:
    """The month of an hour, `2015-01`."""
    return hour[:7]


def _ends(words: str) -> tuple[datetime, datetime]:
    first, dots, last = words.partition("..")
    return _moment(words, first, 0), _moment(words, last if dots else first, 23)


def _name(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d}-{moment.hour}"


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
