"""The JSON rung: JSON, lines of JSON, nearly-JSON, alone or with prose around it."""

from __future__ import annotations

import ast
import json
import re
import warnings
from dataclasses import dataclass
from typing import Any

from llm_labeler._parse.literals import read_code
from llm_labeler._parse.source import Source

# An opening bracket that begins a line or follows a colon, and has a string, a name or a bracket after it.
_OPEN = re.compile(
    r"(?:^|(?<=[:：=]))[ \t]*(?P<open>[\[{(](?=[\s\[{(]{0,200}[\"'“‘”\]}]|(?<=\{)\s{0,200}\w{1,40}\s?:))",
    re.MULTILINE,
)
_JSON = re.compile(r"[\[{] ?[\"']")
_QUOTE = re.compile('["`]')
_BETWEEN = re.compile(r"[\s,;]*")
_DELIMITER = re.compile(r"(?<=[\"'])\s{0,200},\s{0,200}(?=[\"'])")
_QUOTED = re.compile(r"([\"']).*\1")
_ENDS = ("]", "}", ")", '"', "'", "”")
_FENCE = "`jsonJSON \t\n"
_CLOSERS = {"[": "]", "{": "}", "(": ")"}
_DECODER = json.JSONDecoder(strict=False)
# The time of json_repair grows with the square of the signs it has to guess about; 500 of them take 60 ms.
_MAX_CHARS, _MAX_SIGNS = 20_000, 500
_SIGN = re.compile(r"[\[\]{}\"'“”‘’\\]")


@dataclass(frozen=True, slots=True)
class Found:
    """Decoded JSON and the text around it."""

    before: str
    values: list[Any]
    after: str
    is_closed: bool = True  # False: it breaks off within a string or a bracket


def read_data(text: str, source: Source) -> Found | None:
    """The first JSON in `text` with what follows it at once, or the strings of code; None without either.

    Where the sentence asked about has JSON in it, only JSON at the beginning counts: sentences may have some.
    """
    match = _OPEN.search(text)
    if match is not None and not source.lacks(_JSON) and text[: match.start("open")].strip(_FENCE):
        return None
    start = match.start("open") if match is not None else len(text)
    values, end = _decoded(text, start)
    is_closed = True
    if not any(values) and source.lacks(_QUOTE) and (strings := read_code(text, source)) is not None:
        return Found("", [strings], "")
    if match is None:
        return None
    if not values:
        end = max(text.rfind(_CLOSERS[text[start]]) + 1, 0)
        closed = end if end > start else len(text)
        value = (
            _quoted_list(text[start:closed]) or _python(text[start:closed]) or _repaired(text[start:closed])
        )
        values, is_closed = (
            ([] if value is None else [value]),
            text[start:closed].rstrip(_FENCE)[-1:] in _ENDS,
        )
        end = closed
    return Found(text[:start], values, text[end:], is_closed) if values else None


def unwrapped(text: str) -> str:
    """An answer that was encoded as a JSON string, decoded once."""
    bare = text.strip()
    if len(bare) < 2 or bare[0] != '"' or bare[-1] != '"' or "\\" not in bare:
        return text
    try:
        value = _DECODER.decode(bare)
    except ValueError:
        return text
    return str(value)


def _decoded(text: str, start: int) -> tuple[list[Any], int]:
    """Values of JSON one after the other, as in JSON lines, and where they end."""
    values: list[Any] = []
    end = start
    while start < len(text) and text[start] in "[{":
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            break
        values.append(value)
        between = _BETWEEN.match(text, end)
        start = between.end() if between else end
    return values, end


def _quoted_list(text: str) -> list[str] | None:
    """Strings of a list whose quotes are wrong for JSON: single ones, or some within that are not escaped."""
    if text[0] not in "[(" or text[-1] not in "])":
        return None
    parts = _DELIMITER.split(text[1:-1].strip().rstrip(","))
    if not all(_QUOTED.fullmatch(part) for part in parts):
        return None
    return [part[1:-1].replace("\\'", "'").replace('\\"', '"').replace("\\n", "\n") for part in parts]


def _python(text: str) -> Any:
    """Python's lists, tuples and dictionaries, with comments; None where it is none."""
    if len(text) > _MAX_CHARS or len(_SIGN.findall(text)) > _MAX_SIGNS:
        return None
    try:
        with warnings.catch_warnings(action="ignore"):  # of escapes that Python doesn't know
            body = ast.parse(text.strip(), mode="eval").body
            # What is a set to Python is a list in other languages, and has an order.
            value = (
                [*map(ast.literal_eval, body.elts)] if isinstance(body, ast.Set) else ast.literal_eval(body)
            )
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return _plain(value)


def _plain(value: Any) -> Any:
    """A value of JSON's kinds alone."""
    if isinstance(value, list | tuple | set):
        return [_plain(element) for element in value]
    if isinstance(value, dict):
        return {str(name): _plain(element) for name, element in value.items()}
    return value


def _repaired(text: str) -> Any:
    """What json_repair makes of nearly-JSON; None where it can't, or would take too long."""
    if text[0] == "(" or len(text) > _MAX_CHARS or len(_SIGN.findall(text)) > _MAX_SIGNS:
        return None
    import json_repair  # only broken JSON needs it

    try:
        value = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None  # it guesses; a guess that goes wrong shows as any of these
    return value if isinstance(value, list | dict) and value else None
