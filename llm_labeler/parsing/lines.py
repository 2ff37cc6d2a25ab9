"""Lists, headings and plain lines."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from itertools import islice

from llm_labeler.parsing.phrases import HEAD, LABEL
from llm_labeler.parsing.sentence import (
    ENDED,
    STOP,
    SourceText,
    has_words,
    is_heading,
    lead_end,
    offered,
    polarity_of,
    refine,
    side_of,
    size_of,
    tidy,
    unquoted,
    why_no_sentence,
    without_emphasis,
    without_label,
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
# A label or an ordinal in front, if all sentences have one: `Idiomatic: …`, `V2: …`, `Second, …`.
_PREFIX = re.compile(
    r"(?:[^\W\d][^:：.!?。\"“「]{0,40}(?:\([^()\n]{1,30}\) ?)?[:：](?![/\d])|(?:first|second|third|fourth"
    r"|fifth|final)(?:ly)?,"
    r"|(?:\d{1,2}(?:st|nd|rd|th)|one|two|three|four|five)[.:]|(?:首先|其次|最后)，)\s*",
    re.IGNORECASE,
)


@dataclass(slots=True)
class _Line:
    """A line, or one of several items in it, with its mark."""

    text: str
    indent: int = 0
    mark: str = ""  # number, bullet or none


def read_lines(text: str, source: SourceText, size: int | None, polarity: Polarity | None) -> list[Item]:
    """The items of a list, or of lines without marks if the marked ones hold no sentence."""
    lines = _lines(text, source)
    items = _read(lines, source, size, polarity)
    if any(line.mark for line in lines) and not any(item.reason in (None, "refusal") for item in items):
        found = _read([_Line(line.text) for line in lines], source, size, polarity)
        items = found if any(item.reason is None for item in found) else items
    return items


def _lines(text: str, source: SourceText) -> list[_Line]:
    """The lines of a text with their marks; a mark alone stays, as what is below may be its sentence."""
    if source.lacks("<") and "<" in text:
        text = html.unescape(_TAG.sub("\n", _INLINE_TAG.sub("", text)))
    text = text.replace("\\n", "\n") if source.lacks("\\") else text
    found: list[_Line] = []
    last, only = 0, ""
    for line in _opened(text, source).split("\n"):
        if not has_words(line):
            continue
        for piece in _split_inline(line, source):
            mark = _MARK.match(piece)
            kind, ordinal = _kind(mark, piece, last) if mark else ("", 0)
            indent = len(piece[: len(piece) - len(piece.lstrip(" \t>"))].expandtabs(4))
            found.append(_Line(piece[mark.end() :] if mark and kind else piece.lstrip("> \t"), indent, kind))
            last, only = ordinal or last, piece
    if len(found) == 1 and (_INITIAL.match(only) or _INLINE.search(source.text)):
        return [_Line(only)]  # `A. fumigatus …`, `1) time and 2) money …`
    return found


def _kind(match: re.Match[str], line: str, last: int) -> tuple[str, int]:
    """What the mark of a line is, and what it counts; a number or letter of the sentence itself is none."""
    if match["bullet"]:
        return "bullet", 0
    if match["letter"]:
        letter = match["letter"].lower()
        counts = last + 1 in (
            _ROMAN.index(letter) if letter in _ROMAN else 0,
            ord(letter[0]) - 96 if len(letter) == 1 else 0,
        )
        return ("number", last + 1) if counts else ("", 0)
    ordinal = int(match["n"]) if match["n"] and match["n"].isdigit() else last + 1
    is_within = line[match.end() : match.end() + 1].islower() and ordinal != last + 1
    return ("", 0) if is_within else ("number", ordinal)


def _opened(text: str, source: SourceText) -> str:
    """A text with introductions on lines of their own, and without labels such as `Output:`."""
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
    """A line of several marked items as one each: `1. A. 2. B.`; other lines as they are."""
    found: list[re.Match[str]] = []
    for match in islice(_INLINE.finditer(line), 200):
        sign = match["circled"] or match["letter"]
        ordinal = int(match["n"]) if not sign else ord(sign) - (0x60 if match["letter"] else 0x245F)
        is_same = not found or match.group("sign", "end", "end2") == found[0].group("sign", "end", "end2")
        if found and ordinal == 1 and is_same:
            return [line]  # the mark of the line, and a count within its sentence
        if ordinal == len(found) + 1 and is_same:
            found.append(match)
    before = line[: found[0].start()].strip(" *_#>") if found else ""
    if (
        len(found) < 2
        or (before and not before.endswith((":", "：", ".", "。")))
        or _INLINE.search(source.text)
    ):
        return [line]
    starts = [match.start() for match in found]
    pieces = [line[start:end] for start, end in zip(starts, [*starts[1:], len(line)], strict=True)]
    return [*([before] if before else []), *pieces] if all(size_of(piece) > 2 for piece in pieces) else [line]


def _read(lines: list[_Line], source: SourceText, size: int | None, polarity: Polarity | None) -> list[Item]:
    """Lines with the reasons why they are no sentences, and the sentences of the others."""
    pieces: list[tuple[str, str | None]] = []
    marked = [line for line in lines if line.mark]
    numbers = [line for line in marked if line.mark == "number"]
    is_labelled = source.lacks(":：") and _have_prefix([line.text for line in marked or lines], source)
    spoken = [polarity_of(label.group()) for line in lines if (label := LABEL.match(tidy(line.text)))]
    section: str | None = None
    is_title = False  # the line above is a heading, or a mark alone
    for n, line in enumerate(lines):
        said = tidy(line.text)
        if not has_words(said):
            is_title = True
            continue
        reason = why_no_sentence(said, source, in_list=bool(line.mark))
        label = LABEL.match(said) if polarity in spoken else None
        if label and polarity_of(label.group()) not in (None, polarity):
            reason = "other_polarity"
        prefix = _PREFIX.match(said) if is_labelled and reason in (None, "preamble") else None
        if prefix and prefix.end() < len(said) and polarity_of(prefix.group()) in (None, polarity):
            said = said[prefix.end() :]
            reason = why_no_sentence(said, source, in_list=True)
        may_head = reason in ("preamble", "closing_note") or (line.mark and said.endswith((":", "：")))
        if may_head and is_heading(said, source):
            section, is_title = _section(said, section, polarity), True
            pieces.append((said, section or "preamble"))
            continue
        if section is not None:
            reason = section
        elif line.mark:
            is_below = bool(numbers) and line.mark == "bullet" and not is_title
            is_deeper = is_below and line.indent > numbers[0].indent
            if is_deeper or (is_below and (len(numbers) >= (size or len(lines)) or source.is_remark(said))):
                reason = reason or "sub_item"
            is_title = is_title and line.mark == "bullet"
        elif reason is None and pieces and _goes_on(said, pieces[-1], source):
            pieces[-1] = (f"{pieces[-1][0]} {said}", pieces[-1][1])
            continue
        elif marked and reason is None:
            leads = lines[n + 1].mark if n + 1 < len(lines) and not (n and lines[n - 1].mark) else ""
            reason, is_title = None if is_title and not leads else "outside_list", False
        elif reason is None and any(why is None for _, why in pieces):
            bare = without_label(without_emphasis(said, source), source)
            reason = "closing_note" if source.is_remark(bare) else None
        pieces.append((said, reason))
    if not marked:
        pieces = _without_titles(pieces, source)
        if sum(reason is None for _, reason in pieces) == 1:
            pieces = [
                part
                for said, why in pieces
                for part in ([(said, why)] if why else _divided(said, source, size))
            ]
    return [
        item
        for said, why in pieces
        for item in (refine(said, source) if why in (None, "echo") else [Item(said, why)])
    ]


def _goes_on(said: str, above: tuple[str, str | None], source: SourceText) -> bool:
    """Whether a line is the rest of the broken sentence, or of the refusal, above it."""
    is_broken = said[:1].islower() and not ENDED.search(above[0]) and ENDED.search(source.text) is not None
    return above[1] == "refusal" or (above[1] is None and is_broken and not above[0].endswith((",", ";")))


def _have_prefix(lines: list[str], source: SourceText) -> bool:
    """Whether all lines that are as long as sentences begin with a label, and there are several."""
    long = [
        said
        for said in map(tidy, lines)
        if source.is_as_long_as(said) and not why_no_sentence(said, source, in_list=True)
    ]
    matches = [_PREFIX.match(said) for said in long]
    if len({match.group().split()[-1] for match in matches if match}) < 2:
        return False
    return all(match and source.is_as_long_as(match.string[match.end() :]) for match in matches)


def _section(heading: str, section: str | None, polarity: Polarity | None) -> str | None:
    """Why what is below a heading is not a sentence; None if it may be one."""
    spoken = polarity_of(heading)
    if polarity is not None and spoken is not None:
        return None if spoken == polarity else "other_polarity"
    name = heading.strip("#*_ :：")
    if side_of(name) == "side_field" and size_of(name) < 4:
        return "closing_note"
    return None if section == "closing_note" else section


def _without_titles(pieces: list[tuple[str, str | None]], source: SourceText) -> list[tuple[str, str | None]]:
    """Plain lines without those far shorter than the text, if others are as long as sentences."""
    whole = [said for said, reason in pieces if reason is None and source.is_as_long_as(said)]
    if len(whole) < 2:
        return pieces
    are_ended = bool(ENDED.search(source.text)) and sum(bool(ENDED.search(said)) for said in whole) > 1
    found = []
    for said, reason in pieces:
        least = 2 * source.size + 2 if are_ended and not ENDED.search(said) else source.size
        found.append((said, "outside_list" if reason is None and 3 * size_of(said) < least else reason))
    return found


def _divided(said: str, source: SourceText, size: int | None) -> list[tuple[str, str | None]]:
    """A paragraph as several answers: parted by signs, or each of as many sentences as the text has."""
    parts = [part.strip() for part in _SEPARATORS.split(said)] if source.lacks(_SEPARATORS) else []
    if len(parts) > 1 and size in (None, len(parts)) and all(source.is_as_long_as(part) for part in parts):
        return [(part, None) for part in parts]
    width, found = max(len(_sentences(source.text)), 1), _sentences(said)
    if source.text.endswith(("?", "？")) and not {"?", "？"} & {*said} and len(found) > 1:
        return [(said, "refusal")]  # an answer to the question
    is_even = len(found) > width and len(found) % width == 0 and size != 1
    if (
        not is_even
        or (width > 1 and len(found) // width != size)
        or unquoted(said) != said
        or offered(said, source)
    ):
        return [(said, None)]
    return [(" ".join(found[n : n + width]), None) for n in range(0, len(found), width)]


def _sentences(text: str) -> list[str]:
    ends = [match.end() for match in STOP.finditer(text)]
    pieces = [text[start:end].strip() for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]
    return [piece for piece in pieces if piece]
