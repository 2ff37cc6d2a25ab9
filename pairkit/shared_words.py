"""Which words of a pair are worth marking because both texts have them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Set

_WORD = re.compile(r"\w+")
_LONG_WORD = re.compile(r"\w{3,}")
COMMON_SHARE = 0.05  # a word in more of the texts than this says little about any two of them
_COMMON_TEXTS = 10  # and in a small dataset at least this many


def distinct_words(text: str) -> set[str]:
    """The different words of three or more letters, in lower case."""
    return set(_LONG_WORD.findall(text.lower()))


def common_words(texts: Iterable[str]) -> frozenset[str]:
    """Words that stand in more than a twentieth of the texts, and in more than ten."""
    total, counts = 0, Counter[str]()
    for text in texts:
        total += 1
        counts.update(distinct_words(text))
    bound = max(_COMMON_TEXTS, COMMON_SHARE * total)
    return frozenset(word for word, count in counts.items() if count > bound)


def split_at_words(text: str, marked: Set[str]) -> list[tuple[str, bool]]:
    """The text in pieces, each with whether it is one of the marked words; the pieces joined are the text."""
    pieces: list[tuple[str, bool]] = []
    end = 0
    for match in _WORD.finditer(text):
        if match[0].lower() in marked:
            if match.start() > end:
                pieces.append((text[end : match.start()], False))
            pieces.append((match[0], True))
            end = match.end()
    return [*pieces, (text[end:], False)] if end < len(text) else pieces
