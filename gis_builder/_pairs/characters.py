"""One spelling of characters: newlines, Unicode composition, nothing invisible, no towers of marks."""

from __future__ import annotations

import re
import unicodedata

_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
# Controls (tab and newline stay), lone surrogates, zero-width marks and non-characters.
_INVISIBLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\u200b\u2060\ufeff\ufffe\uffff\ud800-\udfff]")
# Unicode's bound for streams (UAX #15, D3). Composing takes quadratic time in the marks on one letter.
_MOST_MARKS = 30
_PERHAPS_MARKS = re.compile(rf"[^\w\s\x00-\x7f]{{{_MOST_MARKS + 1},}}+")


def tidy_characters(text: str) -> str:
    """One kind of newline, NFC, nothing invisible or half (lone surrogates), 30 marks on a letter at most."""
    text = _BREAKS.sub("\n", text)
    text = _INVISIBLE.sub("", text)
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _PERHAPS_MARKS.sub(_few_marks, text))


def _few_marks(run: re.Match[str]) -> str:
    """The run without the combining marks that follow thirty others."""
    kept, marks = [], 0
    for character in run[0]:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks <= _MOST_MARKS:
            kept.append(character)
    return "".join(kept)
