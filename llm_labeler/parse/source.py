"""The sentence that was asked about, in the forms in which answers are compared with it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from unicodedata import normalize

_WORD = re.compile(r"\w+")


def tidy(text: str) -> str:
    """`text` in NFKC with every run of white space as one space, none at its ends."""
    return " ".join((text if text.isascii() else normalize("NFKC", text)).split())


def fold(text: str) -> str:
    """The letters and digits of `text`, without case: what is left when only the look differs."""
    return "".join(_words(text))


def _words(text: str) -> list[str]:
    return _WORD.findall(tidy(text).casefold())


@dataclass(frozen=True, slots=True)
class Source:
    """The sentence asked about."""

    text: str
    folded: str
    words: frozenset[str]

    @classmethod
    def of(cls, text: str) -> Source:
        """The source with what is compared worked out once."""
        words = _words(text)
        return cls(tidy(text), "".join(words), frozenset(words))

    def is_said_by(self, piece: str) -> bool:
        """Whether `piece` is this sentence, looks aside."""
        return bool(self.folded) and fold(piece) == self.folded

    def is_like(self, piece: str) -> bool:
        """Whether at least half of the words of `piece` are this sentence's: then it speaks of the same."""
        words = set(_words(piece))
        return bool(words) and 2 * len(words & self.words) >= len(words)
