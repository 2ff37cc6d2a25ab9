"""Decode untrusted data once, at the boundary, into types with limits that all other code relies on.

Decoders skip what no type names without building it and stop at the first fault, so a hostile answer takes no
more memory than an honest one of its size.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta

MAX_NUMBER = 10_000_000  # ten times what any tracker has; a list of all numbers has to fit into memory
_MAX_COUNT = 2**31 - 1  # GraphQL's Int
MAX_ID = 2**63 - 1  # SQLite's integer

Number = Annotated[int, Meta(ge=1, le=MAX_NUMBER)]
NumberOrNone = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]  # 0 if a tracker has none yet
Count = Annotated[int, Meta(ge=0, le=_MAX_COUNT)]
Id = Annotated[int, Meta(ge=0, le=MAX_ID)]
DecimalId = Annotated[str, Meta(pattern=r"\A[0-9]{1,18}\Z")]  # how GraphQL writes what is beyond its Int
_REPO = r"(?!\.+/)[A-Za-z0-9._-]+/(?!\.+(?:#|\Z))[A-Za-z0-9._-]+"  # `../..` leads elsewhere
RepoName = Annotated[str, Meta(pattern=rf"\A{_REPO}\Z", max_length=200)]
Reference = Annotated[str, Meta(pattern=rf"\A{_REPO}#[0-9]{{1,8}}\Z", max_length=200)]
Login = Annotated[str, Meta(pattern=r"\A[^\x00-\x1f\x7f-\x9f\s]+\Z", max_length=200)]
Word = Annotated[str, Meta(pattern=r"\A[A-Za-z_]{1,50}\Z")]  # of an enumeration that may grow
Cursor = Annotated[str, Meta(max_length=2000)]
Time = Annotated[datetime, Meta(tz=True)]

# Every escape in turn: a pair of surrogates, one without its other half, anything else.
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)", re.DOTALL)
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_PLACE = re.compile(r"(.*) - at `(?:key in )?\$\.?(.*)`", re.DOTALL)

_REGEX = re.compile(r"str matching regex '(.*)'", re.DOTALL)
# What people call a form, by what its expression has and those further down have not.
_FORMS = {"#[0-9]": "owner/name#number", "]+/": "owner/name", "[0-9]{1,18}": "digits", "s]+": "a login"}

EventKind = Literal["closed", "reopened", "marked_as_duplicate", "unmarked_as_duplicate"]
EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)

T = TypeVar("T")


class Malformed(ValueError):  # noqa: N818 - what it says of a value
    """The fault of a value and its position, without the value itself."""


class Node(msgspec.Struct, frozen=True):
    """Base of all that is decoded; keys that it does not name are passed over."""


def decode(body: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T]) -> T:
    """The value of a JSON text; half a surrogate pair, which UTF-8 can't hold, becomes a question mark."""
    try:
        return decoder.decode(body if isinstance(body, msgspec.Raw) else whole_characters(body))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Malformed(_explain(error)) from None
    except RecursionError:
        raise Malformed("nested too deep") from None


def convert(value: Any, kind: type[T]) -> T:
    """The same of a value that was read already."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise Malformed(_explain(error)) from None


def stamp(moment: datetime) -> str:
    """A time as the records hold it, `2015-01-31T23:59:59Z`."""
    if 1970 <= moment.year < 9999:
        moment = moment.astimezone(UTC)
    if not 1970 <= moment.year < 9999:  # in this zone, too
        raise Malformed("a time in a year that no tracker has seen")
    return f"{moment.isoformat()[:19]}Z"  # a fifth of strftime's time


def stamp_or_none(moment: datetime | None) -> str | None:
    """See `stamp`."""
    return None if moment is None else stamp(moment)


def whole_text(text: str | None) -> str:
    """The text; null is empty, and half a surrogate pair becomes a question mark."""
    if not text:
        return ""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def whole_characters(body: bytes) -> bytes:
    """A JSON text in which an escape of half a surrogate pair is a question mark."""
    if not _HALF.search(body):
        return body
    return _ESCAPE.sub(lambda match: b"?" if match[1] else match[0], body)


def _explain(error: Exception) -> str:
    """The decoder's words, which quote none of the value; the place first."""
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    match = _PLACE.fullmatch(str(error))
    words, place = match.groups() if match else (str(error), "")
    words = words.replace("`", "")
    words = _REGEX.sub(_form, words)
    if not words[:2].isupper():  # "JSON" stays
        words = words[:1].lower() + words[1:]
    return f"{place}: {words}" if place else words


def _form(expression: re.Match[str]) -> str:
    return next((name for part, name in _FORMS.items() if part in expression[1]), "a word")
