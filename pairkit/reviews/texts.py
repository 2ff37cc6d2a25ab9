"""A text for the page: lines of pieces with names for their looks. Nothing is taken out, and nothing can act.

A few marks of Markdown are understood, a line at a time, in one pass: headings, quotes, lists, code, bold.
The marks themselves stay, as pieces of the look `syntax`, so that all characters joined are the text. HTML is
no markup here: it is shown as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from typing import NamedTuple

from pairkit.app.printable import printable
from pairkit.similarity.measures import distinct_words, split_at_words

Piece = tuple[str, str]  # what is written, and its looks, with blanks between them
MOST_CHARS = 200_000  # of a text
_SHOWN_CHARS = 1500  # of a text, before somebody unfolds it
_REST_CHARS = 500  # that are not worth folding
_LINE_CHARS = 2000  # a longer line is divided, so that it can be folded
_SHORT_CHARS = 500  # of texts of which it says more where they differ than where they don't
_LEAD_CHARS = 200  # that both texts begin with, before the first difference
_LONGEST_TITLE = 200
_WORD = re.compile(r"\w+")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+")
_QUOTE = re.compile(r" {0,3}>[> ]*")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+")
_INDENTED = re.compile(r"(?: {4}|\t)")
_INLINE = re.compile(r"(?<!`)`+([^`\n]+)`+|\*\*([^*\n]+)\*\*")


class TextLine(NamedTuple):
    """A line, or a part of a long one."""

    kind: str
    pieces: list[Piece]

    @property
    def text(self) -> str:
        """What is written on it."""
        return "".join(text for text, _ in self.pieces)


class ShownText(NamedTuple):
    """A text in three parts, of which the middle one is in view from the beginning."""

    before: list[TextLine]
    shown: list[TextLine]
    after: list[TextLine]
    left_out: int


def shown_pair(one: str, other: str, common: Set[str]) -> tuple[ShownText, ShownText, str]:
    """Both texts for the page, and which words to mark: `shared`, or `own` of short similar ones."""
    one, other = _clean(one), _clean(other)
    texts = [text[:MOST_CHARS] for text in (one, other)]
    words = [{word.lower() for word in _WORD.findall(text)} for text in texts]
    shared = (distinct_words(texts[0]) & distinct_words(texts[1])) - common
    begins = _first_difference(*texts)
    sides = [
        _folded(text, begin, shared, own=words[side] - words[1 - side], left_out=len(whole) - len(text))
        for side, (text, whole, begin) in enumerate(zip(texts, (one, other), begins, strict=True))
    ]
    alike = len(words[0] & words[1]) >= len(words[0] | words[1]) / 3
    is_short = max(map(len, texts)) <= _SHORT_CHARS
    return sides[0], sides[1], "own" if alike and is_short else "shared"


def _clean(text: str) -> str:
    return printable(text.replace("\r\n", "\n"))


def _first_difference(one: str, other: str) -> tuple[int, int]:
    """Where in each text the first word stands that is another in the other; their ends if none is."""
    for left, right in zip(_WORD.finditer(one), _WORD.finditer(other), strict=False):
        if left[0] != right[0]:
            return left.start(), right.start()
    return (0, 0) if one == other else (_end(other, one), _end(one, other))


def _end(one: str, other: str) -> int:
    """Where the words of a shorter text end in the longer one."""
    count = sum(1 for _ in _WORD.finditer(one))
    for number, match in enumerate(_WORD.finditer(other)):
        if number == count:
            return match.start()
    return len(other)


def _folded(text: str, begin: int, shared: Set[str], *, own: Set[str], left_out: int) -> ShownText:
    before, shown, after = list[TextLine](), list[TextLine](), list[TextLine]()
    place, either = 0, shared | own
    for line in lines_of(text):
        end = place + len(line.text)
        marked = TextLine(
            line.kind, [piece for part in line.pieces for piece in _marked(part, shared, either)]
        )
        if end <= begin - _LEAD_CHARS:
            before.append(marked)
        elif place <= max(0, begin - _LEAD_CHARS) + _SHOWN_CHARS:
            shown.append(marked)
        else:
            after.append(marked)
        place = end
    if sum(len(line.text) for line in after) <= _REST_CHARS:
        shown, after = shown + after, []
    return ShownText(before, shown, after, left_out)


def lines_of(text: str) -> Iterator[TextLine]:
    """The lines of a text; their characters joined are the text."""
    fence, is_code, was_blank = "", False, True
    for number, whole in enumerate(text.splitlines(keepends=True)):
        for line in _parts(whole):
            opened = _FENCE.match(line)
            if fence:
                closes = (
                    opened is not None and opened[1].startswith(fence) and not line[opened.end() :].strip()
                )
                yield TextLine("code", [(line, "syntax" if closes else "")])
                fence = "" if closes else fence
            elif opened:
                fence = opened[1]
                yield TextLine("code", [(line, "syntax")])
            elif not line.strip():
                yield TextLine("code" if is_code else "blank", [(line, "")])
                was_blank = True
                continue
            elif _INDENTED.match(line) and (was_blank or is_code) and not _ITEM.match(line):
                is_code = True
                yield TextLine("code", [(line, "")])
                was_blank = False
                continue
            else:
                yield _plain(
                    line, is_title=number == 0 and len(whole) <= _LONGEST_TITLE and len(text) > len(whole)
                )
            is_code = was_blank = False


def _parts(line: str) -> Iterator[str]:
    for start in range(0, len(line), _LINE_CHARS):
        yield line[start : start + _LINE_CHARS]


def _plain(line: str, *, is_title: bool) -> TextLine:
    if is_title:
        return TextLine("title", [*_inline(line)])
    if (found := _HEADING.match(line)) or (found := _QUOTE.match(line)):
        kind = "heading" if "#" in found[0] else "quote"
        return TextLine(kind, [(found[0], "syntax"), *_inline(line[found.end() :])])
    return TextLine("item" if _ITEM.match(line) else "text", [*_inline(line)])


def _inline(text: str) -> Iterator[Piece]:
    end = 0
    for match in _INLINE.finditer(text):
        if match.start() > end:
            yield text[end : match.start()], ""
        group, looks = (1, "inline") if match[1] is not None else (2, "strong")
        yield text[match.start() : match.start(group)], "syntax"
        yield match[group], looks
        yield text[match.end(group) : match.end()], "syntax"
        end = match.end()
    if end < len(text):
        yield text[end:], ""


def _marked(piece: Piece, shared: Set[str], marked: Set[str]) -> Iterator[Piece]:
    text, looks = piece
    for part, is_marked in split_at_words(text, marked):
        look = "" if not is_marked else "shared" if part.lower() in shared else "own"
        yield part, f"{looks} {look}".strip()
