"""One spelling of characters: newlines, Unicode composition, nothing invisible, no towers of marks."""

from __future__ import annotations

import re

from pairkit.composing import normalize

_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
# Controls (tab and newline stay), lone surrogates, zero-width marks and non-characters.
_INVISIBLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\u200b\u2060\ufeff\ufffe\uffff\ud800-\udfff]")


def tidy_characters(text: str) -> str:
    """One kind of newline, NFC, nothing invisible or half (lone surrogates), 30 marks on a letter at most."""
    text = _BREAKS.sub("\n", text)
    text = _INVISIBLE.sub("", text)
    return normalize("NFC", text)
