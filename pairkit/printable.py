"""Words that others wrote, made fit to be printed: they must neither command a terminal nor pass for ours."""

from __future__ import annotations

import re

MAX_QUOTED = 300  # characters of a server's or a file's words in a message

# All but tab and newline; the marks that turn the direction of what follows; half characters.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_HALF = re.compile("[\ud800-\udfff]")


def printable(text: str) -> str:
    """`text` with its control characters made visible; line breaks and tabs stay."""
    return _CONTROL.sub("\ufffd", text)


def holds_no_text(text: str) -> bool:
    """Whether there is in it what no text holds: control characters, or halves of characters.

    Tab, line feed and carriage return aside, a control character is no part of a sentence; half a surrogate
    pair, which a JSON escape can smuggle in, is no character at all.
    """
    return _NO_TEXT.search(text) is not None


def one_line(text: str, limit: int | None = MAX_QUOTED) -> str:
    """`text` on one line without control characters, for a message that quotes a server, a file or a name.

    Args:
        text: What somebody else wrote.
        limit: Most characters, of which the last is an ellipsis where some were left out; None for all.
    """
    if limit is not None:
        text = text[: 4 * limit]  # blanks may go, but nothing of gigabytes is worked through
    line = printable(" ".join(text.split()))
    return line if limit is None or len(line) <= limit else line[: limit - 1] + "…"


def half_escaped(json_text: str) -> str:
    """A JSON text with lone surrogates, as of odd file names, as escapes: it has to be UTF-8."""
    return _HALF.sub(lambda found: f"\\u{ord(found[0]):04x}", json_text)
