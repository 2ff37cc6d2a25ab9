"""Take spans out of a text and close the gap, so that what is left reads as if they had never been there."""

from __future__ import annotations

import re
from collections.abc import Iterable

Span = tuple[int, int]

_BETWEEN = re.compile(r"[ \t]*(?:,|/|&|\band\b|\bor\b)?[ \t]*(?:\band\b|\bor\b)?[ \t]*")
_LONGEST_BETWEEN = 10
_WRAPPERS = {"(": ")", "[": "]", "<": ">", "*": "*", "_": "_", "~": "~", '"': '"'}


def cut(text: str, spans: Iterable[Span]) -> str:
    """Remove `spans`, what only joins two of them, brackets that only hold them, and the blank before."""
    pieces: list[str] = []
    position = 0
    for start, end in _merge(text, spans):
        start, end = _widen(text, max(start, position), end)
        pieces.append(text[position:start])
        position = max(position, end)
    pieces.append(text[position:])
    return "".join(pieces)


def _merge(text: str, spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and (start <= merged[-1][1] or _only_joins(text, merged[-1][1], start)):
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _only_joins(text: str, start: int, end: int) -> bool:
    return end - start <= _LONGEST_BETWEEN and _BETWEEN.fullmatch(text, start, end) is not None


def _widen(text: str, start: int, end: int) -> Span:
    while start > 0 and end < len(text) and _WRAPPERS.get(text[start - 1]) == text[end]:
        start, end = start - 1, end + 1
    follows = text[end] if end < len(text) else "\n"
    if follows in " \t" and (start == 0 or text[start - 1] == "\n"):
        return start, end + 1
    if start > 0 and text[start - 1] in " \t" and follows in " \t\n.,;:!?)]}":
        return start - 1, end
    return start, end
