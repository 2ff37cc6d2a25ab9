"""Hard negatives with their kinds: `1. negation: …`, or JSON of objects with kind and sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace

from llm_labeler._parse.answer import MAX_CHARS, parse_answer
from llm_labeler._records import CHANGES, Item

_LABEL = re.compile(
    r"^([ \t]{0,20}(?:\d{1,3}[ \t]?[.):][ \t]{0,9}|[-*•][ \t]{1,9})?)"
    rf"[*_\[(\"']{{0,3}}({'|'.join(CHANGES)})"
    r"(?:[ \t]change)?[*_\])\"']{0,3}[ \t]{0,9}[:：–—-][*_]{0,2}[ \t]{0,9}",
    re.IGNORECASE | re.MULTILINE,
)
_LONGEST = 4000  # characters of a line
_LETTERS = re.compile(r"[^\W_]+")


def with_changes(raw: str, *, text: str, finish: str, size: int | None) -> list[Item]:
    """As `parse_answer` of negatives, each item with the kind that stood before it; None where none did.

    Args:
        raw: What the LLM said.
        text: The sentence it was asked about.
        finish: See `parse_answer`.
        size: See `parse_answer`.
    """
    plain = _from_json(raw[:MAX_CHARS]) or raw
    kinds = dict(_labels(plain))
    bare = _LABEL.sub(r"\1", plain)
    items = parse_answer(bare, text=text, finish=finish, size=size, polarity="negative")
    return [replace(item, change=kinds.get(_letters(item.text))) for item in items]


def _from_json(raw: str) -> str | None:
    """An answer in the schema's shape as a list of lines; None of any other."""
    try:
        found = json.loads(raw)
        lines = [f"{one['kind']}: {' '.join(one['sentence'].split())}" for one in found["sentences"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))


def _labels(plain: str) -> Iterator[tuple[tuple[str, ...], str]]:
    for match in _LABEL.finditer(plain):
        line = plain[match.end() : match.end() + _LONGEST].partition("\n")[0]
        yield _letters(line), match[2].lower()


def _letters(sentence: str) -> tuple[str, ...]:
    return tuple(_LETTERS.findall(sentence.lower()))
