"""Finding in an answer which word it claims for which number; what claims are worth is decided elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from llm_labeler.records import VOTES

Claim = tuple[int, str]  # a number and a word, which need not be one of the four

_ODD = ""
_DEEPEST = 4  # of JSON within JSON
_MOST_STARTS = 64  # places tried as the beginning of JSON
_NUMBER_KEYS = ("id", "number", "no", "index", "n", "sentence")
_WORD_KEYS = (*("verdict", "label", "relation", "relationship", "answer", "judgement", "judgment", "word"),)
_OF_THE_QUESTION = ("text", "sentences")  # an answer may give them back

Words = tuple[str, ...]
_LEAD = re.compile(r"[\W_]*")
_NUMBER = re.compile(r"\D{0,12}(\d{1,4})\D{0,3}")


class _Object(list[tuple[str, Any]]):
    """A JSON object with all its keys, repeated ones too."""


_DECODER = json.JSONDecoder(object_pairs_hook=_Object)


def json_claims(text: str, size: int) -> list[Claim]:
    """What the JSON values in a text claim; a plain list of words claims something if it is `size` long."""
    return [claim for value in _json_values(text) for claim in _within(value, size, _DEEPEST)]


def listed_words(text: str, size: int, known: Words = VOTES) -> list[Claim]:
    """What a text claims that is nothing but `size` of the known words."""
    words = re.findall(r"[^\W_]+", text.lower())
    return list(enumerate(words, 1)) if len(words) == size and set(words) <= set(known) else []


def line_claims(text: str, known: Words = VOTES) -> list[Claim]:
    """What the lines of a text claim: all of a line of numbers and words, else what a line begins with."""
    return [claim for line in text.splitlines() for claim in _of_line(line, known)]


def _of_line(line: str, known: Words) -> Iterator[Claim]:
    numbered, one_word = _patterns(known)
    pairs = [(int(number), word.lower()) for number, word in numbered.findall(line)]
    if not re.search(r"[^\W_]", numbered.sub("", line)):
        yield from pairs
    elif begin := numbered.match(line, _LEAD.match(line).end()):  # type: ignore[union-attr]  # matches anything
        words = {word.lower() for word in one_word.findall(line)}
        yield int(begin[1]), words.pop() if len(words) == 1 else _ODD


@cache
def _patterns(known: Words) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A number with one of the words after it, and such a word alone."""
    word = rf"(?:{'|'.join(known)})(?![^\W_])"
    lead = r"(?<![^\W_])(?:(?:sentence|number|item|no)[\W_]{1,3})?"
    numbered = re.compile(rf"{lead}(\d{{1,4}})[\W_]{{1,12}}({word})", re.IGNORECASE)
    return numbered, re.compile(rf"(?<![^\W_])({word})", re.IGNORECASE)


def _json_values(text: str) -> Iterator[Any]:
    at = 0
    for _ in range(_MOST_STARTS):
        start = re.compile(r"[{\[]").search(text, at)
        if start is None:
            return
        try:
            value, at = _DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            at = start.end()
        else:
            yield value


def _within(value: Any, size: int, depth: int) -> Iterator[Claim]:
    if not isinstance(value, list) or not depth:
        return
    if isinstance(value, _Object):
        yield from _of_object(value, size, depth)
    elif value and all(isinstance(word, str) for word in value):
        yield from enumerate(map(_word, value), 1) if len(value) == size else ()
    else:
        for inner in value:
            yield from _within(inner, size, depth - 1)


def _of_object(fields: _Object, size: int, depth: int) -> Iterator[Claim]:
    number, word = _named(fields, _NUMBER_KEYS), _named(fields, _WORD_KEYS)
    if number is not None and word is not None:
        if (read := _number(number)) is not None:
            yield read, _word(word)
        return
    for key, value in fields:
        if (read := _number(key)) is not None:
            yield read, _word(_named(value, _WORD_KEYS) if isinstance(value, _Object) else value)
        elif key.lower() not in _OF_THE_QUESTION:
            yield from _within(value, size, depth - 1)


def _named(fields: _Object, names: tuple[str, ...]) -> Any:
    return next((value for key, value in fields if key.lower() in names), None)


def _number(value: Any) -> int | None:
    found = _NUMBER.fullmatch(str(value)) if isinstance(value, int | str) else None
    return int(found[1]) if found else None


def _word(value: Any) -> str:
    return value.strip(" \t\n.,;:!*_\"'`").lower() if isinstance(value, str) else _ODD
