"""Read sentences from JSON, malformed or truncated JSON, and Markdown tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from llm_labeler.parsing.phrases import polarity_of, side_of
from llm_labeler.parsing.source_text import SourceText, has_words
from llm_labeler.records import CHANGES, Item, Polarity

_DECODER = json.JSONDecoder(strict=False)
# An opening bracket at the start of a line or after a colon, followed by a string, a key or a bracket.
_OPEN = re.compile(
    r"(?:^|(?<=[:：=]))[ \t]*(?P<open>[\[{](?=[\s\[{]{0,200}[\"'“‘”\]}]|(?<=\{)\s{0,200}\w{1,40}\s?:))",
    re.MULTILINE,
)
_JSON = re.compile(r"[\[{] ?[\"']")
_BETWEEN = re.compile(r"[\s,;]*")
_FENCE = "`jsonJSON \t\n"
_CLOSERS = ("]", "}", '"', "'", "”")
# json_repair takes quadratic time in the number of brackets and quotes: 60 ms for 500.
_MAX_CHARS = 20_000
_MAX_SIGNS = 500
_SIGN = re.compile(r"[\[\]{}\"'“”‘’\\]")
_STRING = re.compile(r"\"([^\"\\\n]{2,4000})\"\s{0,99}[,\]}]")
# Possessive quantifiers, as backtracking over a run of dashes would be exponential.
_RULE = re.compile(r"\|?(?:\s{0,9}+:?+-{2,10000}+:?+\s{0,9}+\|?+){1,50}+")
_DELIMITER = re.compile(r"(?<=[\"'])\s{0,200},\s{0,200}(?=[\"'])")
_QUOTED = re.compile(r"([\"']).*\1", re.DOTALL)
# Full-width punctuation between JSON values.
_FULL_WIDTH = re.compile(r"(?<=[\"\]}])\s{0,99}([：，、])\s{0,99}(?=[\"\[{])")
_MAX_DEPTH = 8  # of nested values


@dataclass(frozen=True, slots=True)
class ParsedData:
    """Decoded data and the text around it."""

    before: str
    values: list[Any]
    after: str
    is_closed: bool = True  # False: it ends within a string or a bracket
    is_valid: bool = False  # valid JSON, so that its strings are complete


def read_data(text: str, source: SourceText) -> ParsedData | None:
    """The first JSON values in a text, or its Markdown table; None without either."""
    match = _OPEN.search(text)
    if match is None:
        return _table(text, source)
    start = match.start("open")
    before = text[:start]
    # A source text with JSON may be quoted within a sentence.
    if before.strip(_FENCE) and not source.lacks(_JSON):
        return _table(text, source)

    values, end = _decoded(text, start)
    if not values:
        return _broken_data(before, text[start:])
    if has_words(text[end:]) and not any(values):
        return None  # code such as `[]string{ "…" }`
    return ParsedData(before, values, text[end:], is_valid=True)


def _broken_data(before: str, text: str) -> ParsedData | None:
    """The value at the beginning of a text, which ends at the last bracket of its kind."""
    closer = "]" if text[0] == "[" else "}"
    end = text.rfind(closer) + 1 or len(text)
    broken = text[:end]
    plain = _FULL_WIDTH.sub(lambda sign: ":" if sign[1] == "：" else ",", broken)
    value = _quoted_list(plain) or _repaired(plain)
    if value is None:
        return None
    is_closed = broken.rstrip(_FENCE).endswith(_CLOSERS)
    return ParsedData(before, [value], text[end:], is_closed)


def _decoded(text: str, start: int) -> tuple[list[object], int]:
    """Consecutive JSON values, as in JSON lines, and their end index."""
    values = []
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
    """The strings of a list with single quotes or unescaped inner quotes."""
    if text[0] + text[-1] != "[]":
        return None
    strings = _DELIMITER.split(text[1:-1].strip().rstrip(","))
    if not all(map(_QUOTED.fullmatch, strings)):
        return None
    return [re.sub(r"\\([\"'])", r"\1", quoted[1:-1]) for quoted in strings]


def _repaired(text: str) -> object:
    """Repair malformed JSON; only extract its strings if that would take too long."""
    if len(text) > _MAX_CHARS or len(_SIGN.findall(text)) > _MAX_SIGNS:
        return _STRING.findall(text) or None
    import json_repair  # only broken JSON needs it

    try:
        value = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None  # json_repair raises any of these
    return value if isinstance(value, list | dict) and value else None


def _table(text: str, source: SourceText) -> ParsedData | None:
    """The rows of a Markdown table, if a cell is as long as a sentence."""
    lines = text.split("\n")
    # The line of dashes below the names of the columns.
    rules = (n for n, line in enumerate(lines) if n and _RULE.fullmatch(line.strip()))
    rule = next((n for n in rules if "|" in lines[n]), None)
    if rule is None or not source.lacks("|"):
        return None

    names = [name or str(number) for number, name in enumerate(_cells(lines[rule - 1]))]
    cells = map(_cells, takewhile(lambda line: "|" in line, lines[rule + 1 :]))
    rows = [dict(zip(names, row, strict=False)) for row in cells]
    if not any(source.is_as_long_as(cell) for row in rows for cell in row.values()):
        return None

    end = rule + 1 + len(rows)
    before = "\n".join(lines[: rule - 1])
    after = "\n".join(lines[end:])
    has_bars = lines[rule].rstrip().endswith("|")
    is_closed = end < len(lines) or not has_bars or lines[-1].rstrip().endswith("|")
    return ParsedData(before, [rows], after, is_closed)


def _cells(row: str) -> list[str]:
    return [
        cell.strip()
        for cell in row.strip().removeprefix("|").removesuffix("|").split("|")
    ]


def items_of(value: object, source: SourceText, depth: int = 0) -> Iterator[Item]:
    """Every string in a value, with a reason if it is not a sentence."""
    if isinstance(value, str):
        yield Item(value)
    elif depth > _MAX_DEPTH:
        yield Item(type(value).__name__, "unparsable")
    elif isinstance(value, list):
        for element in value:
            yield from items_of(element, source, depth + 1)
    elif isinstance(value, dict):
        yield from _items_of_fields(value, source, depth)
    else:
        yield Item(str(value), "not_text")


def _items_of_fields(
    fields: dict[str, Any], source: SourceText, depth: int
) -> Iterator[Item]:
    has_sentence = any(
        value and side_of(name) == "sentence" for name, value in fields.items()
    )
    has_list = any(
        value and isinstance(value, list | dict) for value in fields.values()
    )
    polarity = source.polarity
    has_requested = polarity in map(polarity_of, fields)
    stated = _stated_polarity(fields)
    for name, value in fields.items():
        side = side_of(name)
        is_text = isinstance(value, str)
        if is_text and name.lower() in CHANGES and source.is_as_long_as(value):
            side = "sentence"
        of_field = polarity_of(name) if has_requested else None
        reason = None
        if polarity and not {stated, of_field} <= {None, polarity}:
            reason = "other_polarity"
        elif is_text and len(fields) > 1 and source.equals(value):
            reason = "echo"
        elif is_text and side is None:
            # An unknown name beside sentences; a name that is the source text has its rewrite.
            if (has_sentence or has_list) and not source.equals(name):
                reason = "side_field"
        elif side != "sentence" and (
            is_text or (side == "side_field" and has_sentence)
        ):
            reason = side
        for item in items_of(value, source, depth + 1):
            yield Item(item.text, item.reason or reason)


def _stated_polarity(fields: dict[str, object]) -> Polarity | None:
    """The polarity that a short value states: `{"type": "antonym", "text": …}`."""
    for value in fields.values():
        if isinstance(value, str) and value.count(" ") < 2:
            polarity = polarity_of(value)
            if polarity:
                return polarity
    return None
