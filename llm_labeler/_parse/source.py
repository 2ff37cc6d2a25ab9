"""The sentence that was asked about, in the forms in which answers are compared with it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass

from pairkit.composing import normalize

_FOREIGN = 0.7
_WORD = re.compile(r"\w+")
# Where Unicode's blocks of one script after the other begin; Chinese and Japanese share their signs.
_SCRIPTS = (
    (0x0000, "Latin"),
    (0x0370, "Greek"),
    (0x0400, "Cyrillic"),
    (0x0530, "Armenian"),
    (0x0590, "Hebrew"),
    (0x0600, "Arabic"),
    (0x0900, "Indic"),
    (0x0E00, "Thai"),
    (0x0F00, "other"),
    (0x10A0, "Georgian"),
    (0x1100, "Hangul"),
    (0x1200, "other"),
    (0x1E00, "Latin"),
    (0x1F00, "Greek"),
    (0x2000, "other"),
    (0x2E80, "Han"),
    (0xAC00, "Hangul"),
    (0xD7B0, "other"),
    (0xF900, "Han"),
    (0xFB50, "Arabic"),
    (0xFF00, "Han"),
)
_STARTS = [start for start, _ in _SCRIPTS]
# Scripts without spaces: each character is as much as a word.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


def tidy(text: str) -> str:
    """`text` with every run of white space as one space, none at its ends."""
    return " ".join(text.split())


def fold(text: str) -> str:
    """The letters and digits of `text`, without case: what is left when only the look differs."""
    return "".join(_words(text))


def _words(text: str) -> list[str]:
    return _WORD.findall(normalize("NFKC", text).casefold())


def size_of(text: str) -> int:
    """How long a text is in words, or in characters where words aren't spaced."""
    unspaced = len(_UNSPACED.findall(text)) if not text.isascii() else 0
    return unspaced + len(_WORD.findall(_UNSPACED.sub(" ", text) if unspaced else text))


def is_foreign(one: str, other: str) -> bool:
    """Whether two texts are in different scripts: then one is a translation, or a rendering of its sounds."""
    if len(one) <= 3:
        return False
    if one.isascii() and other.isascii():
        return False
    ours, theirs = _shares(one), _shares(other)
    return bool(ours) and any(share - ours.get(script, 0) > _FOREIGN for script, share in theirs.items())


def _shares(text: str) -> dict[str, float]:
    """Share of each script among the letters of `text`; nothing where there are no letters."""
    counts: Counter[str] = Counter()
    for character, count in Counter(text).items():
        if character.isalpha():
            counts[_SCRIPTS[bisect_right(_STARTS, ord(character)) - 1][1]] += count
    total = counts.total()
    return {script: count / total for script, count in counts.items()}


@dataclass(frozen=True, slots=True)
class Source:
    """The sentence asked about."""

    text: str
    folded: str
    words: frozenset[str]
    size: int  # see `size_of`

    @classmethod
    def of(cls, text: str) -> Source:
        """The source with what is compared worked out once."""
        words = _words(text)
        return cls(tidy(text), "".join(words), frozenset(words), size_of(text))

    def is_said_by(self, piece: str) -> bool:
        """Whether `piece` is this sentence, looks aside."""
        return bool(self.folded) and fold(piece) == self.folded

    def is_like(self, piece: str) -> bool:
        """Whether at least half of the words of `piece` are this sentence's: then it speaks of the same."""
        words = set(_words(piece))
        return bool(words) and 2 * len(words & self.words) >= len(words)

    def is_as_long_as(self, piece: str) -> bool:
        """Whether `piece` is long enough for a sentence that says the same or the opposite."""
        return 5 * size_of(piece) >= 2 * self.size

    def lacks(self, pattern: re.Pattern[str]) -> bool:
        """Whether this sentence has nothing of a kind, so that its rewrites need not have it either."""
        return pattern.search(self.text) is None
