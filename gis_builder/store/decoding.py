"""Decodes untrusted data into types with limits, on which all other code relies.

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
_MAX_COUNT = 2**31 - 1  # GraphQL's Int
MAX_ID = 2**63 - 1  # SQLite's integer

Number = Annotated[int, Meta(ge=1, le=MAX_NUMBER)]
NumberOrNone = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]  # 0 if there are none
Count = Annotated[int, Meta(ge=0, le=_MAX_COUNT)]
Id = Annotated[int, Meta(ge=0, le=MAX_ID)]
# GraphQL encodes large integers as decimal digits.
DecimalId = Annotated[str, Meta(pattern=r"\A[0-9]{1,18}\Z")]
_REPO = (
    r"(?!\.+/)[A-Za-z0-9._-]+/(?!\.+(?:#|\Z))[A-Za-z0-9._-]+"  # without `.` and `..`
)
RepoName = Annotated[str, Meta(pattern=rf"\A{_REPO}\Z", max_length=200)]
# With a number below `MAX_NUMBER`
Reference = Annotated[
    str, Meta(pattern=rf"\A{_REPO}#[1-9][0-9]{{0,6}}\Z", max_length=200)
]
Login = Annotated[str, Meta(pattern=r"\A[^\x00-\x1f\x7f-\x9f\s]+\Z", max_length=200)]
# A name of an enumeration that may grow.
Word = Annotated[str, Meta(pattern=r"\A[A-Za-z_]{1,50}\Z")]
Cursor = Annotated[str, Meta(max_length=2000)]
Time = Annotated[datetime, Meta(tz=True)]

# Any escape: a pair of surrogates, a lone surrogate, or another.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)", re.DOTALL
)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_PATH = re.compile(r"(.*) - at `(?:key in )?\$\.?(.*)`", re.DOTALL)

_REGEX = re.compile(r"str matching regex '(.*)'", re.DOTALL)
# Names of the patterns, by a part of each that the patterns after it lack.
_PATTERNS = {
    "#[1-9]": "owner/name#number",
    "]+/": "owner/name",
    "[0-9]{1,18}": "digits",
    "s]+": "a login",
}

# A date that begins or ends with the year, whose month may be a name; a time with a zone as an offset or UTC.
_TIME = re.compile(
    r"""(?:[^\W\d]{2,10}\.?,?\ +)?  # a weekday
    (?:(?P<year>\d{4})[-/.]\ ?(?P<month>\d{1,2})[-/.]\ ?(?P<day>\d{1,2})\.?
    |(?P<first>\d{1,2}|[^\W\d]{1,9})(?:st|nd|rd|th|er)?(?P<mark>[-/.,\ ]{1,2})(?:de\ )?
    (?P<second>\d{1,2}|[^\W\d]{1,9})(?:st|nd|rd|th|er)?[-/.,\ ]{1,2}(?:de\ )?(?P<last>\d{4}|\d\d))
    (?:(?:T|,?\ +(?:(?:at|um|à|às)\ +)?)(?P<early>[AP]M\ ?)?
    (?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<seconds>\d\d)(?:[.,]\d+)?)?
    (?:\ ?(?P<half>[AaPp])\.?\ ?[Mm]\.?)?(?:\ Uhr)?
    \ ?(?:GMT|UTC|Z)?\ ?(?P<zone>[+-]\d\d:?\d\d)?(?:\ \(.*\))?)?""",
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
        return decoder.decode(
            body if isinstance(body, msgspec.Raw) else replace_surrogates(body)
        )
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Malformed(_explain(error)) from None
    except RecursionError:
        raise Malformed("nested too deep") from None


def convert(value: object, kind: type[T]) -> T:
    """Validate a value that is parsed already."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise Malformed(_explain(error)) from None


def stamp(moment: datetime) -> str:
    """Format a time like `2015-01-31T23:59:59Z`."""
    with suppress(OverflowError):
        moment = moment.astimezone(UTC)
    if not 1970 <= moment.year < 9999:
        raise Malformed("a time outside the years 1970 to 9998")
    return f"{moment.isoformat()[:19]}Z"  # five times as fast as strftime


def parse_time(
    text: str, form: str = "", day_first: Callable[[], bool] | None = None
) -> datetime:
    """Parse a time of ISO 8601, RFC 2822 or JavaScript, in seconds or milliseconds, or as people write it.

    A time without a zone is UTC. `form` is a format of strptime, which is tried first. `day_first` is called
    for dates such as 03/04/2024, for which `date_order` returns None.
    """
    moment = None
    if form:
        with suppress(ValueError):
            moment = datetime.strptime(text, form)
    if moment is None:
        with suppress(ValueError, OverflowError):
            moment = _parse_time(text, day_first)
    if moment is None:
        raise Malformed(
            f"unknown time {one_line(text, 60)!r}; expected 2024-01-31 23:59, or give --date-format"
        )
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def date_order(text: str) -> bool | None:
    """Whether the day comes before the month in a numeric date that ends with the year; None if unknown."""
    match = _match_time(text)
    return _order(match) if match else None


def _match_time(text: str) -> re.Match[str] | None:
    text = text[: _MAX_TIME + 1].translate(_DATE_MARKS)
    for half, words in _HALVES.items():
        text = words.sub(half, text)
    return _TIME.fullmatch(text) if len(text) <= _MAX_TIME else None


def _parse_time(text: str, day_first: Callable[[], bool] | None) -> datetime:
    if _EPOCH.fullmatch(text):
        in_ms = len(text.partition(".")[0]) == 13
        return datetime.fromtimestamp(float(text) / (1000 if in_ms else 1), UTC)
    with suppress(ValueError):
        return datetime.fromisoformat(text)
    match = _match_time(text)
    if match is None:
        raise ValueError
    if match["month"] is not None:
        day = match["day"]
        month = match["month"]
    elif _is_day_first(match, day_first):
        day = match["first"]
        month = match["second"]
    else:
        day = match["second"]
        month = match["first"]
    moment = datetime(
        _year(match["year"] or match["last"]),
        _month_number(month),
        int(day),
        _hour(match),
        int(match["minute"] or 0),
        int(match["seconds"] or 0),
    )
    return datetime.fromisoformat(f"{moment.isoformat()}{match['zone'] or '+00:00'}")


def _is_day_first(match: re.Match[str], day_first: Callable[[], bool] | None) -> bool:
    """Whether the day comes first in a date that ends with the year."""
    order = _order(match)
    if order is not None:
        return order
    is_number = match["first"].isdecimal()
    if not is_number or not match["second"].isdecimal():
        return is_number  # the other one is the name of a month
    return "." in match["mark"] or (day_first is not None and day_first())


def _order(match: re.Match[str]) -> bool | None:
    """Whether the day comes first, according to a number above 12; None if unknown."""
    parts = (match["first"] or "", match["second"] or "")
    if not all(map(str.isdecimal, parts)):
        return None
    is_day_first, is_month_first = (int(part) > 12 for part in parts)
    return None if is_day_first == is_month_first else is_day_first


def _year(text: str) -> int:
    """A year; of two digits, one from 1970 to 2069."""
    if len(text) == 4:
        return int(text)
    return int(text) + (2000 if text < "70" else 1900)


def _hour(match: re.Match[str]) -> int:
    """The hour of the day, 0 if there is none."""
    hour = int(match["hour"] or 0)
    half = match["half"] or match["early"]
    if not half:
        return hour
    return hour % 12 + (12 if half[0] in "Pp" else 0)


def _month_number(text: str) -> int:
    """The number of a month, 0 if its name is unknown."""
    if text.isdecimal():
        return int(text)
    name = text.lower()
    for index, beginnings in enumerate(_MONTHS):
        if name.startswith(beginnings):
            return 12 - index
    return 0


def stamp_or_none(moment: datetime | None) -> str | None:
    """Format a time, see `stamp`; None stays None."""
    return None if moment is None else stamp(moment)


def whole_text(text: str | None) -> str:
    """The text, empty for None; lone surrogates become question marks."""
    return (text or "").encode("utf-8", "replace").decode()


def replace_surrogates(body: bytes) -> bytes:
    """Replace escapes of lone surrogates in a JSON text by question marks."""
    if not _SURROGATE.search(body):
        return body
    return _ESCAPE.sub(lambda match: b"?" if match[1] else match[0], body)


def _explain(error: Exception) -> str:
    """Reword the decoder's message, with the path first; it does not contain the value."""
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    match = _PATH.fullmatch(str(error))
    message, path = match.groups() if match else (str(error), "")
    message = _REGEX.sub(_pattern_name, message.replace("`", ""))
    if not message[:2].isupper():  # such as "JSON"
        message = message[:1].lower() + message[1:]
    return f"{path}: {message}" if path else message


def _pattern_name(expression: re.Match[str]) -> str:
    names = [name for part, name in _PATTERNS.items() if part in expression[1]]
    return names[0] if names else "a word"
