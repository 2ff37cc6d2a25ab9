"""Decodes untrusted data into types with limits, on which all other code relies, and times of any form.

Decoders skip unknown keys without building their values and stop at the first error, so a hostile response
takes no more memory than a valid one of the same size.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta

from pairkit.base.printable import one_line

MAX_NUMBER = 10_000_000  # ten times the largest tracker; a list of all numbers must fit into memory
MAX_ID = 2**63 - 1  # SQLite's integer

_REPO = (
    r"(?!\.+/)[A-Za-z0-9._-]+/(?!\.+(?:#|\Z))[A-Za-z0-9._-]+"  # without `.` and `..`
)
_REPO_NAME = rf"\A{_REPO}\Z"
_REFERENCE = rf"\A{_REPO}#[1-9][0-9]{{0,6}}\Z"  # with a number below `MAX_NUMBER`
_DIGITS = r"\A[0-9]{1,18}\Z"
_LOGIN = r"\A[^\x00-\x1f\x7f-\x9f\s]+\Z"
_WORD = r"\A[A-Za-z_]{1,50}\Z"
# What a message calls them
_PATTERNS = {
    _REPO_NAME: "owner/name",
    _REFERENCE: "owner/name#number",
    _DIGITS: "digits",
    _LOGIN: "a login",
    _WORD: "a word",
}

Number = Annotated[int, Meta(ge=1, le=MAX_NUMBER)]
NumberOrNone = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]  # 0 if there are none
Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]  # GraphQL's Int
Id = Annotated[int, Meta(ge=0, le=MAX_ID)]
# GraphQL encodes large integers as decimal digits.
DecimalId = Annotated[str, Meta(pattern=_DIGITS)]
RepoName = Annotated[str, Meta(pattern=_REPO_NAME, max_length=200)]
Reference = Annotated[str, Meta(pattern=_REFERENCE, max_length=200)]
Login = Annotated[str, Meta(pattern=_LOGIN, max_length=200)]
Word = Annotated[str, Meta(pattern=_WORD)]  # of an enumeration that may grow
Cursor = Annotated[str, Meta(max_length=2000)]
Time = Annotated[datetime, Meta(tz=True)]

# Any escape: a pair of surrogates, a lone surrogate, or another.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|(u[dD][89a-fA-F]\w\w)|.)", re.DOTALL
)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
# What a message of the decoder need not have: the value of an enumeration, the root of a path, quotes.
_NOISE = re.compile(r"(?<= value) .*(?= - at `)|`\$\.?|`", re.DOTALL)

# A date whose month may be a name; a time with a zone as an offset or UTC.
_TIME = re.compile(
    r"""(?:[^\W\d]{2,10}\.?,?\ +)?  # a weekday
    (?:(?P<year>\d{4})[-/.]\ ?(?P<month>\d{1,2})[-/.]\ ?(?P<day>\d{1,2})\.?  # 2024-01-31, 2024. 1. 31.
    # 31.01.2024, 1/31/24, 1er janvier 2024, January 31st, 2024
    |(?P<first>\d{1,2}|[^\W\d]{1,9})(?:st|nd|rd|th|er)?(?P<mark>[-/.,\ ]{1,2})(?:de\ )?
    (?P<second>\d{1,2}|[^\W\d]{1,9})(?:st|nd|rd|th|er)?[-/.,\ ]{1,2}(?:de\ )?(?P<last>\d{4}|\d\d))
    (?:(?:T|,?\ +(?:(?:at|um|à|às)\ +)?)(?P<early>[AP]M\ ?)?  # `early` in East Asia
    (?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<seconds>\d\d)(?:[.,]\d+)?)?  # 23:59:59.999
    (?:\ ?(?P<half>[AaPp])\.?\ ?[Mm]\.?)?(?:\ Uhr)?  # PM, p.m.
    \ ?(?:GMT|UTC|Z)?\ ?(?P<zone>[+-]\d\d:?\d\d)?(?:\ \(.*\))?)?""",  # GMT+0100 (CET)
    re.VERBOSE,
)
_EPOCH = re.compile(r"\d{9,10}(?:\.\d+)?|\d{13}(?:\.0)?")  # in seconds or milliseconds
# How the names of months begin in the languages of the detector, from December: 十二 begins like 十.
_MONTHS = tuple(tuple(names.split()) for names in (
    "dec dez déc dic gru ara дек 十二", "nov lis kas ноя 十一", "oct okt out ott paź eki окт 十",
    "sep set wrz eyl сен 九", "aug aoû ago sie ağu авг 八", "jul juil lug lip tem июл 七",
    "jun juin giu cze haz июн 六", "may mai mag maj mei май мая 五", "apr avr abr kwi nis апр 四",
    "mar mär mrz mrt maa мар 三", "feb fév fev lut şub фев 二", "jan ene gen sty oca янв 一",
))  # fmt: skip
_DATE_MARKS = str.maketrans("年月년월\xa0\u202f", "----  ", "日일")
_HALVES = {"AM": re.compile("上午|午前|오전"), "PM": re.compile("下午|午後|오후")}
_MAX_TIME = 100  # characters

EventKind = Literal[
    "closed", "reopened", "marked_as_duplicate", "unmarked_as_duplicate"
]
EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)

T = TypeVar("T")


class Malformed(ValueError):  # noqa: N818
    """An invalid value. The message has the fault and its path but not the value."""


class Node(msgspec.Struct):
    """Base of all decoded types; unknown keys are ignored."""


def decode(body: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode JSON; lone surrogates, which UTF-8 can't represent, become question marks."""
    try:
        if isinstance(body, bytes):
            body = replace_surrogates(body)
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise Malformed(_explain(error)) from None
    except RecursionError:
        raise Malformed("nested too deep") from None


def convert(value: object, kind: type[T]) -> T:
    """Validate a value that is parsed already."""
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, UnicodeError) as error:
        raise Malformed(_explain(error)) from None


def _explain(error: Exception) -> str:
    """Reword the decoder's message, with the path first and without the value."""
    if isinstance(error, UnicodeError):
        return "not UTF-8"
    text = str(error)
    for pattern, name in _PATTERNS.items():
        text = text.replace(f"`str` matching regex {pattern!r}", name)
    message, _, path = _NOISE.sub("", text).partition(" - at ")
    if not message[:2].isupper():  # such as "JSON"
        message = message[:1].lower() + message[1:]
    return f"{path}: {message}" if path else message


def replace_surrogates(body: bytes) -> bytes:
    """Replace escapes of lone surrogates in a JSON text by question marks."""
    if not _SURROGATE.search(body):
        return body
    return _ESCAPE.sub(lambda match: b"?" if match[1] else match[0], body)


def whole_text(text: str | None) -> str:
    """The text, empty for None; lone surrogates become question marks."""
    return (text or "").encode("utf-8", "replace").decode()


def stamp(moment: datetime) -> str:
    """Format a time like `2015-01-31T23:59:59Z`."""
    with suppress(OverflowError):  # its year is refused below
        moment = moment.astimezone(UTC)
    if not 1970 <= moment.year < 9999:
        raise Malformed("a time outside the years 1970 to 9998")
    return f"{moment.isoformat()[:19]}Z"  # five times as fast as strftime


def stamp_or_none(moment: datetime | None) -> str | None:
    """Format a time, see `stamp`; None stays None."""
    return None if moment is None else stamp(moment)


def parse_time(
    text: str, form: str = "", day_first: Callable[[], bool] = lambda: False
) -> datetime:
    """Parse a time of ISO 8601, RFC 2822 or JavaScript, in seconds or milliseconds, or as people write it.

    A time without a zone is UTC. `form` is a format of strptime, which is tried first. `day_first` is called
    for dates such as 03/04/2024, for which `date_order` returns None.
    """
    try:
        moment = _parse_time(text, form, day_first)
    except (ValueError, OverflowError):
        raise Malformed(
            f"unknown time {one_line(text, 60)!r}; expected 2024-01-31 23:59, or give --date-format"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def date_order(text: str) -> bool | None:
    """Whether the day comes before the month in a numeric date that ends with the year; None if unknown."""
    match = _match_time(text)
    return _order(match) if match else None


def _match_time(text: str) -> re.Match[str] | None:
    if len(text) > _MAX_TIME:
        return None
    text = text.translate(_DATE_MARKS)
    for half, words in _HALVES.items():
        text = words.sub(half, text)
    return _TIME.fullmatch(text)


def _parse_time(text: str, form: str, day_first: Callable[[], bool]) -> datetime:
    """As `parse_time`, but without a zone if there is none; raises ValueError or OverflowError."""
    if form:
        with suppress(ValueError):
            return datetime.strptime(text, form)
    if _EPOCH.fullmatch(text):
        seconds = float(text)
        if seconds >= 1e12:  # milliseconds
            seconds /= 1000
        return datetime.fromtimestamp(seconds, UTC)
    with suppress(ValueError):
        return datetime.fromisoformat(text)
    match = _match_time(text)
    if match is None:
        raise ValueError
    return _moment(match, day_first)


def _moment(match: re.Match[str], day_first: Callable[[], bool]) -> datetime:
    """The time of a match; raises ValueError if the calendar lacks it."""
    if match["month"] is not None:
        day = match["day"]
        month = match["month"]
    elif _is_day_first(match, day_first):
        day = match["first"]
        month = match["second"]
    else:
        day = match["second"]
        month = match["first"]
    local = datetime(
        _year(match["year"] or match["last"]),
        _month_number(month),
        int(day),
        _hour(match),
        int(match["minute"] or 0),
        int(match["seconds"] or 0),
    )
    return datetime.fromisoformat(f"{local.isoformat()}{match['zone'] or '+00:00'}")


def _is_day_first(match: re.Match[str], day_first: Callable[[], bool]) -> bool:
    """Whether the day comes first in a date that ends with the year."""
    order = _order(match)
    if order is not None:
        return order
    is_number = match["first"].isdecimal()
    if not is_number or not match["second"].isdecimal():
        return is_number  # the other one is the name of a month
    return "." in match["mark"] or day_first()


def _order(match: re.Match[str]) -> bool | None:
    """Whether the day comes first, according to a number above 12; None if unknown."""
    first = match["first"] or ""
    second = match["second"] or ""
    if not first.isdecimal() or not second.isdecimal():
        return None
    is_day_first = int(first) > 12
    is_month_first = int(second) > 12
    return None if is_day_first == is_month_first else is_day_first


def _year(text: str) -> int:
    """A year; of two digits, one from 1970 to 2069."""
    year = int(text)
    if len(text) == 4:
        return year
    return year + (2000 if year < 70 else 1900)


def _hour(match: re.Match[str]) -> int:
    """The hour of the day, 0 if there is none."""
    hour = int(match["hour"] or 0)
    half = match["half"] or match["early"]
    if not half:
        return hour
    is_afternoon = half[0] in "Pp"
    return hour % 12 + 12 * is_afternoon


def _month_number(text: str) -> int:
    """The number of a month, 0 if its name is unknown."""
    if text.isdecimal():
        return int(text)
    name = text.lower()
    for index, beginnings in enumerate(_MONTHS):
        if name.startswith(beginnings):
            return 12 - index
    return 0
