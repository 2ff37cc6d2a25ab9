"""The Markdown around the words: code and prose, template checklists, images, blank lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gis_builder._markdown import Span, fences

_CHECKLIST = re.compile(
    r"^[ \t]*[-*+][ \t]+\[[ xX]?\][^\n]*?"
    r"(?:search|duplicat|existing issue|already (?:been )?(?:report|exist|fil)|contribut|code of conduct"
    r"|guideline|\bread the\b|\bhave read\b|\bagree\b|\bconfirm|\bchecked\b"
    r"|latest (?:version|release))[^\n]*$"
    r"|^#{1,6}[ \t][^\n]*?(?:existing issue|duplicat\w{0,12}\??[ \t]*$|\bsearched\b|\bchecklist\b)[^\n]*$",
    re.MULTILINE | re.IGNORECASE,
)
_IMAGE = re.compile(r"!\[([^\[\]\n]{0,300})\]\([^()\s]{0,1500}(?:[ \t]+\"[^\"\n]{0,200}\")?\)")
_IMAGE_TAG = re.compile(r"<img\b[^<>]{0,1500}>", re.IGNORECASE)
_ALT = re.compile(r"\balt=(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
_HOLLOW_LINE = re.compile(r"[ \t]*(?:#{1,6}|[-*+](?:[ \t]+\[[ xX]?\])?|>+|\[[^\[\]\n]{1,40}\]:)")
_LONGEST_HOLLOW = 60
_BLANK_LINES = re.compile(r"\n{3,}")


def segments(text: str) -> Iterator[tuple[str, bool]]:
    """The text in order as (piece, is fenced code); an unclosed fence runs to the end, as GitHub shows it."""
    position = 0
    for start, end in fences(text):
        if start > position:
            yield text[position:start], False
        yield text[start:end], True
        position = end
    if position < len(text) or not text:
        yield text[position:], False


def checklists(text: str) -> list[Span]:
    """Lines of a template's checklist ("I searched …", "I read the …") and the headings over them.

    Other task lists are the issue's own content and stay.
    """
    return [match.span() for match in _CHECKLIST.finditer(text)]


def images_to_words(text: str) -> tuple[str, int]:
    """Put each image's alternative text in its place; the address says nothing to a reader."""
    count = 0
    if "![" in text:
        text, count = _IMAGE.subn(lambda image: image[1], text)
    if "<img" in text or "<IMG" in text:
        text, tags = _IMAGE_TAG.subn(_alternative, text)
        count += tags
    return text, count


def _alternative(image: re.Match[str]) -> str:
    alt = _ALT.search(image[0])
    return (alt[1] or alt[2] or "") if alt else ""


def tidy_blanks(text: str) -> str:
    """No blanks at line ends, one empty line in a row at most, no prose line of bare markup (`###`, `-`)."""
    text = "".join("\n".join(_lines(piece, code)) for piece, code in segments(text))
    return _BLANK_LINES.sub("\n\n", text).strip()


def _lines(text: str, code: bool) -> Iterator[str]:
    for line in text.split("\n"):
        line = line.rstrip(" \t")
        if code or not line or len(line) > _LONGEST_HOLLOW or not _HOLLOW_LINE.fullmatch(line):
            yield line
