"""The terms of a text: words, or character bigrams in scripts without blanks between words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

from pairkit.base.printable import INVISIBLE, comparable

UNSPACED = (
    "\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa"
    "\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff"
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\u1780-\u17d3\uaa60-\uaa7f"
)
"""Characters of scripts without blanks (Han, Kana, Thai, Lao, Myanmar, Khmer), for a class of a pattern."""

_CANDIDATES = map(chr, range(0x300, 0x3100))
MARKS = "".join(
    sign for sign in _CANDIDATES if unicodedata.category(sign).startswith("M")
)
"""Marks, such as the vowel signs of Hindi, which belong to their word but are not in `\\w`."""

_RUN = re.compile(f"[{UNSPACED}]+")
_ASCII_WORD = re.compile(r"\w+")
_WORD = re.compile(rf"[\w{UNSPACED}{MARKS}]+")
_LETTER = rf"(?![{UNSPACED}])[\w{MARKS}]"
_PLACE = re.compile(
    rf"(?P<run>[{UNSPACED}](?:[{UNSPACED}]|{INVISIBLE})*)|{_LETTER}(?:{_LETTER}|{INVISIBLE})*"
)


def terms(text: str) -> list[str]:
    """The terms in order, in lower case, with repetitions."""
    text = comparable(text).lower()
    return (
        _ASCII_WORD.findall(text) if text.isascii() else _WORD.findall(segmented(text))
    )


def segmented(text: str) -> str:
    """The text with its character bigrams separated by blanks, if it has scripts without blanks."""
    return text if text.isascii() else _RUN.sub(_bigrams, text)


def _bigrams(run: re.Match[str]) -> str:
    return f" {' '.join(map(''.join, pairwise(run[0]))) or run[0]} "


def is_unspaced(term: str) -> bool:
    """Whether a term is of a script without blanks between words."""
    return _RUN.match(term) is not None


def places(text: str) -> Iterator[tuple[str, int, int]]:
    """Each of the `terms` with its start and end in the text; bigrams overlap."""
    for match in _PLACE.finditer(text):
        start, end = match.span()
        letters = []
        if match["run"] is not None:
            letters = [place for place in range(start, end) if is_unspaced(text[place])]
        if len(letters) < 2:
            yield comparable(match[0]).lower(), start, end
        for first, last in pairwise(letters):
            yield comparable(text[first] + text[last]), first, last + 1
