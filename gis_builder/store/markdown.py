"""Where a Markdown text holds fenced code and HTML comments, as GitHub shows them; in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterator

Span = tuple[int, int]

_COMMENT_OR_FENCE = re.compile(r"<!--|^ {0,3}(`{3,}+(?=[^`\n]*$)|~{3,}+)", re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)[ \t]*$", re.MULTILINE)
_FENCE_BEGINS = re.compile(r"^ {0,3}(?:`{3}|~{3})", re.MULTILINE)


def comments(text: str) -> list[Span]:
    """Spans of HTML comments outside fenced code; a comment that is never closed is left alone."""
    if "<!--" not in text:
        return []
    return [span for span, is_fence in _comments_and_fences(text) if not is_fence]


def fences(text: str) -> list[Span]:
    """Spans of fenced code outside HTML comments; an unclosed fence runs to the end."""
    if "```" not in text and "~~~" not in text:
        return []
    return [span for span, is_fence in _comments_and_fences(text) if is_fence]


def _comments_and_fences(text: str) -> Iterator[tuple[Span, bool]]:
    position, last_closing = 0, text.rfind("-->")
    while opening := _COMMENT_OR_FENCE.search(text, position):
        fence = opening[1]
        if fence is not None:
            position = _fence_end(text, opening.end(), fence)
            yield (opening.start(), position), True
        elif opening.end() <= last_closing:
            position = text.index("-->", opening.end()) + len("-->")
            yield (opening.start(), position), False
        else:
            # Past an unclosed comment only fences matter: jump to the next line that may open one.
            fence_line = _FENCE_BEGINS.search(text, opening.end())
            position = fence_line.start() if fence_line else len(text)


def _fence_end(text: str, position: int, fence: str) -> int:
    for closing in _FENCE.finditer(text, position):
        if closing[1][0] == fence[0] and len(closing[1]) >= len(fence):
            return closing.end()
    return len(text)
