"""The text that was asked about, and the measures that pieces of answers are compared by."""

from __future__ import annotations

import re
from dataclasses import dataclass

from llm_labeler.parsing.phrases import META
from llm_labeler.parsing.scripts import UNSPACED, fold, words
from llm_labeler.records import Polarity

ENDED = re.compile(r"[.!?。！？…][\"”’'»」』*_)]*$")
STOP = re.compile(
    r"(?<!\bMr)(?<!\bDr)(?<!\bMrs)(?<!\bfig)(?<!\b[A-Za-z])(?<![.!?。])"
    r"[.!?。！？]++[\"”’'»」』)]*+(?:\s++(?=[^a-z])|$)"
    r"|[。！？](?![\"”’」』)])"
)


def tidy(piece: str) -> str:
    """Collapse white space."""
    return " ".join(piece.split())


def has_words(piece: str) -> bool:
    """Whether a piece has a letter or a digit."""
    return any(map(str.isalnum, piece))


def size_of(piece: str) -> int:
    """Length in words, or in characters for scripts without spaces."""
    if piece.isascii():
        return len(piece.split())
    spaced, unspaced = UNSPACED.subn(" ", piece)
    return len(spaced.split()) + unspaced


@dataclass(frozen=True, slots=True)
class SourceText:
    """The text asked about, and the number and polarity of the requested sentences."""

    text: str
    folded: str
    words: frozenset[str]
    size: int
    wanted: int | None
    polarity: Polarity | None

    @classmethod
    def of(
        cls, text: str, wanted: int | None = None, polarity: Polarity | None = None
    ) -> SourceText:
        """Compute the features of a text once."""
        text = tidy(text)
        return cls(
            text, fold(text), frozenset(words(text)), size_of(text), wanted, polarity
        )

    def equals(self, piece: str) -> bool:
        """Whether a piece equals this text but for case, spaces and punctuation."""
        is_far_longer = len(piece) >= 3 * len(self.text) + 50
        return self.folded != "" and not is_far_longer and fold(piece) == self.folded

    def resembles(self, piece: str) -> bool:
        """Whether at least half of the words of a piece are in this text."""
        piece_words = {*words(piece[:2000])}
        return bool(piece_words) and 2 * len(piece_words & self.words) >= len(
            piece_words
        )

    def is_as_long_as(self, piece: str) -> bool:
        """Whether a piece is long enough for a rewrite."""
        return 5 * size_of(piece) >= 2 * self.size

    def begins(self, pattern: re.Pattern[str], piece: str) -> re.Match[str] | None:
        """The match at the beginning of a piece, unless this text has one, too."""
        match = pattern.match(piece)
        if match and pattern.match(self.text):
            return None
        return match

    def lacks(self, characters: str | re.Pattern[str]) -> bool:
        """Whether this text has none of these characters or matches."""
        if isinstance(characters, str):
            return set(characters).isdisjoint(self.text)
        return characters.search(self.text) is None

    def is_remark(self, piece: str) -> bool:
        """Whether a piece, unlike this text, is about words or sentences."""
        if META.search(piece[:500]) is None:
            return False
        return self.lacks(META) and not self.resembles(piece)
