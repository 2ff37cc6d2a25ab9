"""The sentence that was asked about, in the forms in which answers are compared with it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from llm_labeler._scripts import UNSPACED
from pairkit.composing import normalize

_WORD = re.compile(r"\w+")


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
    unspaced = len(UNSPACED.findall(text)) if not text.isascii() else 0
    return unspaced + len(_WORD.findall(UNSPACED.sub(" ", text) if unspaced else text))


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
