"""Questions, and the first sentences of a text, in any script."""

from __future__ import annotations

import re

_QUESTION_CHARS = 300
_QUESTION_MARKS = ("?", "？", "؟", "՞", "\u037e")
# Followed by a letter, which must not be in lower case; in Chinese and Japanese without a blank.
_SENTENCE_END = re.compile(
    r"[.!?؟۔।][\"'”’»)]*(?=\s[\"'(«„“‘¿¡]*(\w))|[。！？][”’」』）]*(?=[^\s。！？”’」』）])"
)


def is_question(text: str) -> bool:
    """Whether a text is a single question."""
    line = collapse_spaces(text)
    is_short = len(line) <= _QUESTION_CHARS
    return line.endswith(_QUESTION_MARKS) and is_short and not sentence_ends(line)


def collapse_spaces(text: str) -> str:
    """The text on one line."""
    return " ".join(text.split())


def sentence_ends(line: str) -> list[int]:
    """Where a sentence ends before another one."""
    ends = []
    for match in _SENTENCE_END.finditer(line):
        next_letter = match[1] or ""
        if not next_letter.islower():
            ends.append(match.end())
    return ends


def opening_text(text: str, max_chars: int) -> str:
    """The first sentences, or else words, of a text up to a number of characters."""
    line = collapse_spaces(text)
    if len(line) <= max_chars:
        return line
    ends = [end for end in sentence_ends(line[: 2 * max_chars]) if end <= max_chars]
    if ends:
        return line[: ends[-1]]
    head, space, _ = line[: max_chars + 1].rpartition(" ")
    return head if space else line[:max_chars]
