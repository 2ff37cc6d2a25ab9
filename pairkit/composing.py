"""Unicode's normal forms of texts that others wrote, in linear time."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

# Unicode's bound for streams (UAX #15, D3). To put the marks of one letter in order takes quadratic time.
_MOST_MARKS = 30
_PERHAPS_MARKS = re.compile(rf"[^\w\s\x00-\x7f]{{{_MOST_MARKS + 1},}}+")


def normalize(form: Literal["NFC", "NFKC"], text: str) -> str:
    """The text in a normal form, with 30 combining marks on a letter at most."""
    if text.isascii():
        return text
    return unicodedata.normalize(form, _PERHAPS_MARKS.sub(_few_marks, text))


def _few_marks(run: re.Match[str]) -> str:
    """The run without the combining marks that follow thirty others."""
    kept, marks = [], 0
    for character in run[0]:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks <= _MOST_MARKS:
            kept.append(character)
    return "".join(kept)
