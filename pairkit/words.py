"""The words of a text, as an index counts them: words, names and numbers, in small letters."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]+|[^\W\d_]+|[0-9]{2,}")


def words(text: str) -> list[str]:
    """Each word as often as it stands there."""
    return _WORD.findall(text.lower())
