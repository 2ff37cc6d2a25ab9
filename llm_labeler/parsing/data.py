"""Read sentences from JSON, malformed or truncated JSON, and Markdown tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from llm_labeler.parsing.sentence import SourceText, has_words, polarity_of, side_of
from llm_labeler.records import Item, Polarity

# An opening bracket at the start of a line or after a colon, followed by a string, a key or a bracket.
_OPEN = re.compile(
    r"(?:^|(?<=[:：=]))[ \t]*(?P<open>[\[{](?=[\s\[{]{0,200}[\"'“‘”\]}]|(?<=\{)\s{0,200}\w{1,40}\s?:))",
    re.MULTILINE,
)
_JSON = re.compile(r"[\[{] ?[\"']")
_BETWEEN = re.compile(r"[\s,;]*")
_FENCE = "`jsonJSON \t\n"
_DECODER = json.JSONDecoder(strict=False)
# json_repair takes quadratic time in the number of brackets and quotes: 60 ms for 500.
_MAX_CHARS, _MAX_SIGNS = 20_000, 500
_SIGN = re.compile(r"[\[\]{}\"'“”‘’\\]")
_STRING = re.compile(r"\"([^\"\\\n]{2,4000})\"\s{0,99}[,\]}]")
# Possessive quantifiers, as backtracking over a run of dashes would be exponential.
_RULE = re.compile(r"\|?(?:\s{0,9}+:?+-{2,10000}+:?+\s{0,9}+\|?+){1,50}+")
_DELIMITER = re.compile(r"(?<=[\"'])\s{0,200},\s{0,200}(?=[\"'])")
_QUOTED = re.compile(r"([\"']).*\1", re.DOTALL)
_FULL_WIDTH = re.compile(r"(?<=[\"\]}])\s{0,99}([：，、])\s{0,99}(?=[\"\[{])")  # between JSON values
_DEPTH = 8


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
    if match is None or (not source.lacks(_JSON) and text[: match.start("open")].strip(_FENCE)):
        return _table(text, source)
    start = match.start("open")
    values, end = _decoded(text, start)
    if values:
        is_code = not any(values) and has_words(text[end:])  # such as `[]string{ "…" }`
        return None if is_code else ParsedData(text[:start], values, text[end:], is_valid=True)
    end = max(text.rfind("]" if text[start] == "[" else "}") + 1, 0)
    broken = text[start : end if end > start else len(text)]
    plain = _FULL_WIDTH.sub(lambda match: ":" if match[1] == "：" else ",", broken)
    value = _quoted_list(plain) or _repaired(plain)
    is_closed = broken.rstrip(_FENCE)[-1:] in tuple("]}\"'”")
    return (
        None if value is None else ParsedData(text[:start], [value], text[start + len(broken) :], is_closed)
    )


def _decoded(text: str, start: int) -> tuple[list[Any], int]:
    """Consecutive JSON values, as in JSON lines, and their end index."""
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
    """The strings of a list with single quotes or unescaped inner quotes."""
    parts = _DELIMITER.split(text[1:-1].strip().rstrip(",")) if text[0] == "[" and text[-1] == "]" else [""]
    if not all(map(_QUOTED.fullmatch, parts)):
        return None
    return [part[1:-1].replace('\\"', '"').replace("\\'", "'") for part in parts]


def _repaired(text: str) -> Any:
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
    rule = next(
        (n for n, line in enumerate(lines) if n and "|" in line and _RULE.fullmatch(line.strip())), None
    )
    if rule is None or not source.lacks("|"):
        return None
    end = next((n for n in range(rule + 1, len(lines)) if "|" not in lines[n]), len(lines))
    names = [name or str(n) for n, name in enumerate(_cells(lines[rule - 1]))]
    rows = [dict(zip(names, _cells(line), strict=False)) for line in lines[rule + 1 : end]]
    if not any(source.is_as_long_as(cell) for row in rows for cell in row.values()):
        return None
    is_closed = end < len(lines) or lines[-1].rstrip()[-1:] == lines[rule].rstrip()[-1:]
    return ParsedData("\n".join(lines[: rule - 1]), [rows], "\n".join(lines[end:]), is_closed)


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().removeprefix("|").removesuffix("|").split("|")]


def items_of(value: Any, source: SourceText, polarity: Polarity | None, depth: int = 0) -> Iterator[Item]:
    """Every string in a value, with a reason if it is not a sentence."""
    if isinstance(value, str):
        yield Item(value)
    elif depth > _DEPTH:
        yield Item(type(value).__name__, "unparsable")
    elif isinstance(value, list):
        for element in value:
            yield from items_of(element, source, polarity, depth + 1)
    elif isinstance(value, dict):
        yield from _items_of_fields(value, source, polarity, depth)
    else:
        yield Item(str(value), "not_text")


def _items_of_fields(
    fields: dict[str, Any], source: SourceText, polarity: Polarity | None, depth: int
) -> Iterator[Item]:
    sides = {name: side_of(name) for name in fields}
    has_named = any(value and sides[name] == "" for name, value in fields.items())
    has_values = has_named or any(isinstance(value, list | dict) and value for value in fields.values())
    has_requested = polarity is not None and any(polarity_of(name) == polarity for name in fields)
    short = (value for value in fields.values() if isinstance(value, str) and value.count(" ") < 2)
    stated = next(filter(None, map(polarity_of, short)), None)  # {"type": "antonym", "text": …}
    for name, value in fields.items():
        reason: str | None = None
        if polarity and (
            (has_requested and polarity_of(name) not in (None, polarity)) or stated not in (None, polarity)
        ):
            reason = "other_polarity"
        elif isinstance(value, str) and len(fields) > 1 and source.equals(value):
            reason = "echo"
        elif isinstance(value, str) and sides[name] is None:
            reason = "side_field" if has_values and not source.equals(name) else None
        elif isinstance(value, str) or (sides[name] == "side_field" and has_named):
            reason = sides[name] or None
        for item in items_of(value, source, polarity, depth + 1):
            yield item if reason is None else Item(item.text, item.reason or reason)
