"""One spelling of characters: newlines, Unicode composition, nothing invisible."""

from __future__ import annotations

import re
import unicodedata

_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
# Controls (tab and newline stay), lone surrogates, zero-width marks and non-characters.
_INVISIBLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\u200b\u2060\ufeff\ufffe\uffff\ud800-\udfff]")


def tidy_characters(text: str) -> str:
    """One kind of newline, NFC, and no NUL, control, lone surrogate or zero-width character."""
    text = _BREAKS.sub("\n", text)
    text = _INVISIBLE.sub("", text)
    return text if text.isascii() else unicodedata.normalize("NFC", text)
