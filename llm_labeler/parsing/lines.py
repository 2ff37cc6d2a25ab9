"""Read lists, headings and plain lines."""

from __future__ import annotations

import html
import re
from itertools import islice

from llm_labeler.parsing.line_rules import Line, LineReader
from llm_labeler.parsing.phrases import HEAD
from llm_labeler.parsing.sentence import (
    ENDED,
    STOP,
    SourceText,
    has_words,
    lead_end,
    quoted_sentences,
    refine,
    size_of,
    unquoted,
)
from llm_labeler.records import Item, Polarity

_MARK = re.compile(
    r"(?P<indent>[ \t>]*)(?:#{1,6}[ \t]+)?(?:\*\*|__)?(?:"
    r"(?:[(（\[【{#]|no\.? ?|v)?(?P<n>\d{1,3}"
    r"|[一二三四五六七八九十]{1,3}(?=[、)）]))(?:[ \t]?(?:\\?[.．]{1,9}[)）]?|[)）:：\]】、}°/]"
    r"|\ufe0f?\u20e3|[-–](?=\s)|\t|[;,](?=\")|(?<=#\d)(?=\s))(?!\d)|[ \t][-–—](?=[ \t]))|(?P<circled>[①-⑳])"
    r"|\(?(?P<letter>[a-j]|[ivx]{1,4})[.)）](?=[ \t])"
    r"|(?P<bullet>(?:[-*+–—→✓✔✅☑❖~]|[-=]>)(?=[ \t])|[•‣◦▪●○■□◆◇►▶➤➢·・](?=\S|[ \t]))"
    r")(?:\*\*|__)?:?[ \t]*(?:\[[ xX]\][ \t]+)?",
    re.IGNORECASE,
)
_INITIAL = re.compile(r"[A-Z]\. [a-z]")
_ROMAN = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x")
_INLINE = re.compile(
    r"(?:^|(?<=[\s.!?。；;:：”\"]))(?:(?P<sign>[(（#]?)(?P<n>\d{1,2})(?P<end>[.)）、:：/]|\ufe0f?\u20e3"
    r"|(?<=#\d)(?=\s))(?!\d)"
    r"|(?P<letter>[a-h])(?P<end2>[.)])(?=\s)|(?P<circled>[①-⑳]))\s?"
)
_SEPARATORS = re.compile(r"\s+(?:[|/]|--)\s+|\s*[;；、]\s*|\s+OR\s+|\t+|(?<=[.!?]),\s*")
_INLINE_TAG = re.compile(r"</?(?:b|i|u|em|strong|code|span|a|mark)(?:\s[^<>]{0,200})?>", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][\w-]{0,30}(?:\s[^<>]{0,200})?/?>|<[?!][^<>]{0,200}>")


def read_lines(text: str, source: SourceText, size: int | None, polarity: Polarity | None) -> list[Item]:
    """The items of a list; of plain lines if no item of the list is a sentence."""
    lines = _lines(text, source)
    items = _read(lines, source, size, polarity)
    if any(line.mark for line in lines) and not any(item.reason in (None, "refusal") for item in items):
        unmarked = _read([Line(line.text) for line in lines], source, size, polarity)
        items = unmarked if any(item.reason is None for item in unmarked) else items
    return items


def _lines(text: str, source: SourceText) -> list[Line]:
    """The lines of a text; a line with only a mark is kept, as its sentence may be below."""
    if source.lacks("<") and "<" in text:
        text = html.unescape(_TAG.sub("\n", _INLINE_TAG.sub("", text)))
    text = text.replace("\\n", "\n") if source.lacks("\\") else text
    lines: list[Line] = []
    last, only = 0, ""
    for line in _split_introductions(text, source).split("\n"):
        if not has_words(line):
            continue
        for piece in _split_inline(line, source):
            mark = _MARK.match(piece)
            kind, ordinal = _kind(mark, piece, last) if mark else ("", 0)
            indent = len(piece[: len(piece) - len(piece.lstrip(" \t>"))].expandtabs(4))
            lines.append(Line(piece[mark.end() :] if mark and kind else piece.lstrip("> \t"), indent, kind))
            last, only = ordinal or last, piece
    if len(lines) == 1 and (_INITIAL.match(only) or _INLINE.search(source.text)):
        return [Line(only)]  # `A. fumigatus …`, `1) time and 2) money …`
    return lines


def _kind(match: re.Match[str], line: str, last: int) -> tuple[str, int]:
    """The kind of a mark and its ordinal; empty for a number or letter that belongs to the sentence."""
    if match["bullet"]:
        return "bullet", 0
    if match["letter"]:
        letter = match["letter"].lower()
        is_next = last + 1 in (
            _ROMAN.index(letter) if letter in _ROMAN else 0,
            ord(letter[0]) - 96 if len(letter) == 1 else 0,
        )
        return ("number", last + 1) if is_next else ("", 0)
    ordinal = int(match["n"]) if match["n"] and match["n"].isdigit() else last + 1
    is_within = line[match.end() : match.end() + 1].islower() and ordinal != last + 1
    return ("", 0) if is_within else ("number", ordinal)


def _split_introductions(text: str, source: SourceText) -> str:
    """Put introductions on lines of their own, and remove labels such as `Output:`."""
    introductions: list[str] = []
    for _ in range(4):
        text = text.lstrip()
        first = text.partition("\n")[0]
        bare = first.lstrip("*_# ")
        if (head := source.begins(HEAD, bare)) is not None:
            text = bare[head.end() :].lstrip("*_ ") + text[len(first) :]
        elif 0 < (end := lead_end(first, source)) < len(first):
            introductions.append(first[:end])
            text = text[end:].lstrip("*_")
        else:
            break
    return "\n".join((*introductions, text))


def _split_inline(line: str, source: SourceText) -> list[str]:
    """Split a line of several marked items: `1. A. 2. B.`."""
    marks: list[re.Match[str]] = []
    for match in islice(_INLINE.finditer(line), 200):
        sign = match["circled"] or match["letter"]
        ordinal = int(match["n"]) if not sign else ord(sign) - (0x60 if match["letter"] else 0x245F)
        is_same = not marks or match.group("sign", "end", "end2") == marks[0].group("sign", "end", "end2")
        if marks and ordinal == 1 and is_same:
            return [line]  # the mark of the line, and an enumeration within its sentence
        if ordinal == len(marks) + 1 and is_same:
            marks.append(match)
    before = line[: marks[0].start()].strip(" *_#>") if marks else ""
    if (
        len(marks) < 2
        or (before and not before.endswith((":", "：", ".", "。")))
        or _INLINE.search(source.text)
    ):
        return [line]
    starts = [match.start() for match in marks]
    pieces = [line[start:end] for start, end in zip(starts, [*starts[1:], len(line)], strict=True)]
    return [*([before] if before else []), *pieces] if all(size_of(piece) > 2 for piece in pieces) else [line]


def _read(lines: list[Line], source: SourceText, size: int | None, polarity: Polarity | None) -> list[Item]:
    """The items of all lines."""
    pieces = LineReader(lines, source, size, polarity).read()
    if not any(line.mark for line in lines):
        pieces = _without_titles(pieces, source)
        if sum(reason is None for _, reason in pieces) == 1:
            pieces = [
                part
                for text, reason in pieces
                for part in ([(text, reason)] if reason else _split_paragraph(text, source, size))
            ]
    return [
        item
        for text, reason in pieces
        for item in (refine(text, source) if reason in (None, "echo") else [Item(text, reason)])
    ]


def _without_titles(pieces: list[tuple[str, str | None]], source: SourceText) -> list[tuple[str, str | None]]:
    """Drop plain lines that are far shorter than the text, if others are as long as sentences."""
    long = [text for text, reason in pieces if reason is None and source.is_as_long_as(text)]
    if len(long) < 2:
        return pieces
    are_ended = bool(ENDED.search(source.text)) and sum(bool(ENDED.search(text)) for text in long) > 1
    kept = []
    for text, reason in pieces:
        minimum = 2 * source.size + 2 if are_ended and not ENDED.search(text) else source.size
        kept.append((text, "outside_list" if reason is None and 3 * size_of(text) < minimum else reason))
    return kept


def _split_paragraph(text: str, source: SourceText, size: int | None) -> list[tuple[str, str | None]]:
    """Split a paragraph into answers at separators, or after as many sentences as the source has."""
    parts = [part.strip() for part in _SEPARATORS.split(text)] if source.lacks(_SEPARATORS) else []
    if len(parts) > 1 and size in (None, len(parts)) and all(source.is_as_long_as(part) for part in parts):
        return [(part, None) for part in parts]
    width, sentences = max(len(_sentences(source.text)), 1), _sentences(text)
    if source.text.endswith(("?", "？")) and not {"?", "？"} & {*text} and len(sentences) > 1:
        return [(text, "refusal")]  # an answer to the question
    is_even = len(sentences) > width and len(sentences) % width == 0 and size != 1
    if (
        not is_even
        or (width > 1 and len(sentences) // width != size)
        or unquoted(text) != text
        or quoted_sentences(text, source)
    ):
        return [(text, None)]
    return [(" ".join(sentences[n : n + width]), None) for n in range(0, len(sentences), width)]


def _sentences(text: str) -> list[str]:
    ends = [match.end() for match in STOP.finditer(text)]
    pieces = [text[start:end].strip() for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]
    return [piece for piece in pieces if piece]
