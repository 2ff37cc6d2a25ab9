"""Blank what a comment's writer doesn't say: quotes, code, hidden, folded or struck text, checklists.

Every masked character becomes a space and every line break stays, so positions keep their meaning.
Delimiters are found first and paired afterwards, so that many of them take no longer than other text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gis_builder.store.markdown import Span, comments, fences

_INDENT = ("    ", "\t")
_LIST_ITEM = re.compile(r"[ \t]{0,3}(?:[-*+]|\d{1,9}[.)])[ \t]")
_TICKS_OR_BREAK = re.compile(r"`++|\n")
_TILDES_OR_BREAK = re.compile(r"~~|\n")
_TAG = re.compile(r"<(/?)(pre|code|blockquote|details)\b[^<>]*+>", re.IGNORECASE)
_QUOTE = re.compile(r"^[ \t]*+>[^\n]*$", re.MULTILINE)
_CHECKBOX = re.compile(r"^[ \t]*+[-*+][ \t]++\[[ xX]\][^\n]*$", re.MULTILINE)
_MAIL_HEADER = re.compile(r"^On [^\n]{8,120}(?:\n[^\n]{1,80})?wrote:[ \t]*+$", re.MULTILINE)
_UNPRINTED = re.compile(r"[^\n]")
# So that lines end in one way only, and lower case is as long as the text: İ alone becomes two characters.
_ONE_FOR_ONE = str.maketrans("\rİ", " I")


def mask(text: str) -> str:
    """Return `text` with quotes, code, hidden comments and checklists blanked, at the same length."""
    text = text.translate(_ONE_FOR_ONE) if "\r" in text or "İ" in text else text
    text = _blank(text, fences(text))
    if "    " in text or "\t" in text:
        # Before anything else leaves blanks at the beginning of a line.
        text = _mask_indented(text)
    if "<" in text:
        text = _blank(text, _hidden(text))
        text = _blank(text, _tagged(text))
    if "`" in text:
        text = _blank(text, _inline_code(text))
    if "~~" in text:
        text = _blank(text, _struck(text))
    if ">" in text:
        text = _QUOTE.sub(_blanks, text)
    if "[" in text:
        text = _CHECKBOX.sub(_blanks, text)
    if "wrote:" in text:
        text = _MAIL_HEADER.sub(_blanks, text)
    return text


def _blank(text: str, spans: Iterable[Span]) -> str:
    pieces, place = [], 0
    for start, end in spans:
        pieces += [text[place:start], _UNPRINTED.sub(" ", text[start:end])]
        place = end
    return "".join([*pieces, text[place:]]) if pieces else text


def _blanks(match: re.Match[str]) -> str:
    return _UNPRINTED.sub(" ", match.group())


def _hidden(text: str) -> list[Span]:
    """HTML comments; one that is never closed hides the rest of the text."""
    found = comments(text)
    unclosed = text.find("<!--", found[-1][1] if found else 0)
    return [*found, (unclosed, len(text))] if unclosed >= 0 else found


def _tagged(text: str) -> Iterator[Span]:
    """What stands in `<pre>`, `<details>` and the like, with all that is nested; unclosed, to the end."""
    name, start, depth = "", 0, 0
    for tag in _TAG.finditer(text):
        if not depth and not tag[1]:
            name, start, depth = tag[2].lower(), tag.start(), 1
        elif depth and tag[2].lower() == name:
            depth += -1 if tag[1] else 1
            if not depth:
                yield start, tag.end()
    if depth:
        yield start, len(text)


def _inline_code(text: str) -> Iterator[Span]:
    """From each run of backticks to the next as long on its line; one without a partner stands for itself."""
    runs = [match.span() for match in _TICKS_OR_BREAK.finditer(text)]
    partners: list[int | None] = []
    later: dict[int, int] = {}  # the nearest run of each length, seen from the right
    for place in range(len(runs) - 1, -1, -1):
        start, end = runs[place]
        if text[start] == "\n":
            later = {}
            partners.append(None)
        else:
            partners.append(later.get(end - start))
            later[end - start] = place
    partners.reverse()
    place = 0
    while place < len(runs):
        partner = partners[place]
        if partner is not None:
            yield runs[place][0], runs[partner][1]
        place = 1 + (place if partner is None else partner)


def _struck(text: str) -> Iterator[Span]:
    """From a `~~` before a word to the first on its line after one."""
    opened: int | None = None
    for match in _TILDES_OR_BREAK.finditer(text):
        start, end = match.span()
        if text[start] == "\n":
            opened = None
        elif opened is None:
            opened = start if end < len(text) and not text[end].isspace() else None
        elif start > opened + 2 and not text[start - 1].isspace():
            yield opened, end
            opened = None


def _mask_indented(text: str) -> str:
    """Blank code that is marked by indentation; indented text below a list item is the item's, not code."""
    lines = text.split("\n")
    after_blank, in_list, in_code = True, False, False
    for place, line in enumerate(lines):
        if not line.strip():
            after_blank = True
            continue
        is_indented = line.startswith(_INDENT)
        in_code = is_indented and not in_list and (after_blank or in_code)
        if in_code:
            lines[place] = " " * len(line)
        elif not is_indented:
            in_list = _LIST_ITEM.match(line) is not None or (in_list and not after_blank)
        after_blank = False
    return "\n".join(lines)
