"""Take spans out of a text and close the gap, so that what is left reads as if they had never been there."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gis_builder._markdown import Span

_BETWEEN = re.compile(r"[ \t]*(?:,|/|&|\band\b|\bor\b)?[ \t]*(?:\band\b|\bor\b)?[ \t]*")
_LONGEST_BETWEEN = 10
_WRAPPERS = {"(": ")", "[": "]", "<": ">", "*": "*", "_": "_", "~": "~", '"': '"'}


def cut(text: str, spans: Iterable[Span]) -> str:
    """Remove `spans`, what only joins two of them, brackets that only hold them, and the blank before."""
    pieces: list[str] = []
    position = 0
    for start, end in merge(text, spans):
        start, end = _widen(text, max(start, position), end)
        pieces.append(text[position:start])
        position = max(position, end)
    pieces.append(text[position:])
    return "".join(pieces)


def merge(text: str, spans: Iterable[Span]) -> list[Span]:
    """`spans` in order, those that overlap made one, and those that only a comma or an "and" keeps apart."""
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
    blank = int(text[max(0, start - 1) : start] == " " == text[end : end + 1])  # as in "( #12 )"
    opening, closing = start - 1 - blank, end + blank
    while opening >= 0 and closing < len(text) and _WRAPPERS.get(text[opening]) == text[closing]:
        start, end = opening, closing + 1
        opening, closing = start - 1, end
    follows = text[end] if end < len(text) else "\n"
    if follows in " \t" and (start == 0 or text[start - 1] == "\n"):
        return start, end + 1
    if start > 0 and text[start - 1] in " \t" and follows in " \t\n.,;:!?)]}":
        return start - 1, end
    return start, end
