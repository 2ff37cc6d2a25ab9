"""A sentence as tokens with codes, and changes of it that leave all else as it was."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from llm_labeler._providers.wordnet import tagging
from llm_labeler._providers.wordnet.morphology import with_article_for

_TOKEN = re.compile(r"(?:https?://|www\.)\S+|(?:[A-Za-z]\.){2,}|[^\W_]+(?:[-'’./_@][^\W_]+)*|\S")
_ARTICLE = re.compile(r"\b([Aa]n?)(\s+)$")


def word_set(text: str) -> frozenset[str]:
    """The words of a text, to be looked up in."""
    return frozenset(text.split())


_NEGATORS = word_set(
    """
    not no never cannot neither nor none nothing nobody without hardly barely rarely seldom few little
    unable unless until lack lacks nowhere dont doesnt didnt isnt arent cant wont
    """
)


@dataclass(frozen=True, slots=True)
class Edit:
    """Tokens `start` to before `end` are replaced by `text`."""

    start: int
    end: int
    text: str

    def meets(self, other: Edit) -> bool:
        """Whether both touch the same tokens."""
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class Change:
    """Edits that together make one candidate, and how sure the rule is that it says what it should."""

    confidence: float  # in [0, 1]
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class Sentence:
    """A sentence whose words are known."""

    text: str

    @cached_property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """Where words, numbers and marks stand."""
        return tuple(match.span() for match in _TOKEN.finditer(self.text))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The tokens as they are written."""
        return tuple(self.text[start:end] for start, end in self.spans)

    @cached_property
    def low(self) -> tuple[str, ...]:
        """The words in small letters, with straight apostrophes."""
        return tuple(word.lower().replace("’", "'") for word in self.words)

    @cached_property
    def codes(self) -> str:
        """What each token is, one letter each; see `tagging`."""
        return tagging.codes(self.words)

    @property
    def is_question(self) -> bool:
        """Whether it asks, or is a heading that does."""
        return "?" in self.words or self.codes[:1] in ("W", "M", "O") or self.low[:1] in (("is",), ("are",))

    @property
    def is_negative(self) -> bool:
        """Whether it says no anywhere."""
        return any(word in _NEGATORS or word.endswith("n't") for word in self.low)

    def slice(self, start: int, end: int) -> str:
        """The text of tokens `start` to before `end`, as it stands."""
        return self.text[self.spans[start][0] : self.spans[end - 1][1]] if start < end else ""

    def opening(self, end: int) -> str:
        """The text before token `end`, fit to stand within a sentence."""
        text = self.slice(0, end)
        keeps = tagging.is_name(self.words, 0) or (self.low[0] != "a" and not text[1:2].islower())
        return text if keeps else text[:1].lower() + text[1:]

    def apply(self, edits: Iterable[Edit]) -> str:
        """The text with edits made, and with capitals and articles that fit what they brought."""
        text = self.text
        for edit in sorted(edits, key=lambda each: -each.start):
            start = self.spans[edit.start][0] if edit.start < len(self.spans) else len(text)
            end = self.spans[edit.end - 1][1] if edit.end > edit.start else start
            before, after, new = text[:start], text[end:], edit.text
            if edit.start < edit.end and self.words[edit.start][:1].isupper() and self.low[edit.start] != "i":
                new = capital(new)
            if not new:  # a word is left out, and one of the blanks around it
                before, after = before.rstrip(), after if after[:1] in ".,;:?!)" else " " + after.lstrip()
            elif edit.end == edit.start:
                new += " "
            text = _fit_article(before, new) + new + after
        text = text.strip()
        return capital(text) if self.text[:1].isupper() else text


def capital(text: str) -> str:
    """The text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def _fit_article(before: str, new: str) -> str:
    article = _ARTICLE.search(before)
    word = re.match(r"[\w-]+", new)
    if not article or not word:
        return before
    fit = with_article_for(word[0])
    return before[: article.start()] + (fit.capitalize() if article[1][0] == "A" else fit) + article[2]
