"""A sentence as tokens with codes, and edits of it that leave all else as it was."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from llm_labeler._providers.wordnet.morphology import with_article_for

_TOKEN = re.compile(r"(?:https?://|www\.)\S+|(?:[A-Za-z]\.){2,}|[^\W_]+(?:[-'’./_@][^\W_]+)*|\S")
_ARTICLE = re.compile(r"\b([Aa]n?)(\s+)$")


@dataclass(frozen=True, slots=True)
class Edit:
    """Tokens `start` to before `end` are replaced by `text`."""

    start: int
    end: int
    text: str

    def meets(self, other: Edit) -> bool:
        """Whether both touch the same tokens."""
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True)
class Sentence:
    """A sentence whose words are known."""

    text: str
    spans: tuple[tuple[int, int], ...]
    words: tuple[str, ...]
    codes: str

    @cached_property
    def low(self) -> tuple[str, ...]:
        """The words in small letters, with straight apostrophes."""
        return tuple(word.lower().replace("’", "'") for word in self.words)

    @property
    def is_question(self) -> bool:
        """Whether it asks, or is a heading that does."""
        return "?" in self.words or self.codes[:1] in ("W", "M", "O") or self.low[:1] in (("is",), ("are",))

    def slice(self, start: int, end: int) -> str:
        """The text of tokens `start` to before `end`, as it stands."""
        return self.text[self.spans[start][0] : self.spans[end - 1][1]] if start < end else ""

    def apply(self, edits: Iterable[Edit]) -> str:
        """The text with edits made, and with capitals and articles that fit what they brought."""
        text = self.text
        for edit in sorted(edits, key=lambda each: -each.start):
            start = self.spans[edit.start][0] if edit.start < len(self.spans) else len(text)
            end = self.spans[edit.end - 1][1] if edit.end > edit.start else start
            before, after, new = text[:start], text[end:], edit.text
            if edit.start < edit.end and self.words[edit.start][:1].isupper() and self.low[edit.start] != "i":
                new = new[:1].upper() + new[1:]
            if not new:  # a word is left out, and one of the blanks around it
                before, after = before.rstrip(), after if after[:1] in ".,;:?!)" else " " + after.lstrip()
            elif edit.end == edit.start:
                new += " "
            text = _fit_article(before, new) + new + after
        text = text.strip()
        return text[:1].upper() + text[1:] if self.text[:1].isupper() else text


def tokens(text: str) -> list[tuple[int, int]]:
    """Where words, numbers and marks stand."""
    return [match.span() for match in _TOKEN.finditer(text)]


def _fit_article(before: str, new: str) -> str:
    article = _ARTICLE.search(before)
    word = re.match(r"[\w-]+", new)
    if not article or not word:
        return before
    fit = with_article_for(word[0])
    fit = fit.capitalize() if article[1][0] == "A" else fit
    return before[: article.start()] + fit + article[2]
