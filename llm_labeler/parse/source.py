"""The sentence that was asked about, in the forms in which answers are compared with it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from unicodedata import normalize

_LETTERS = re.compile(r"[^\W\d_]")
_FOREIGN = 0.7
_WORD = re.compile(r"\w+")
# Scripts without spaces: each character is as much as a word.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


def tidy(text: str) -> str:
    """`text` with every run of white space as one space, none at its ends."""
    return " ".join(text.split())


def fold(text: str) -> str:
    """The letters and digits of `text`, without case: what is left when only the look differs."""
    return "".join(_words(text))


def _words(text: str) -> list[str]:
    return _WORD.findall((text if text.isascii() else normalize("NFKC", text)).casefold())


def size_of(text: str) -> int:
    """How long a text is in words, or in characters where words aren't spaced."""
    unspaced = len(_UNSPACED.findall(text)) if not text.isascii() else 0
    return unspaced + len(_WORD.findall(_UNSPACED.sub(" ", text) if unspaced else text))


def is_foreign(one: str, other: str) -> bool:
    """Whether one of two texts is in Latin letters and the other isn't: then it is a translation."""
    return len(one) > 3 and abs(_latin(one) - _latin(other)) > _FOREIGN


def _latin(text: str) -> float:
    """Share of Latin letters; a half where there are no letters."""
    letters = _LETTERS.findall(text)
    return sum(letter < "\u0250" for letter in letters) / len(letters) if letters else 0.5


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
