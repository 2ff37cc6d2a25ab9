"""Read lists, headings and plain lines."""

from __future__ import annotations

import re
from itertools import islice, pairwise

from llm_labeler.parsing.line_rules import Line, LineReader, Piece
from llm_labeler.parsing.phrases import HEAD
from llm_labeler.parsing.sentence import quoted_sentences, refine, split_echo, unquoted
from llm_labeler.parsing.source_text import ENDED, STOP, SourceText, has_words, size_of
from llm_labeler.parsing.wording import lead_end, why_no_sentence
from llm_labeler.records import Item

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
_MAX_MARKS = 200  # in one line
_ROMAN = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x")
_INLINE = re.compile(
    r"(?:^|(?<=[\s.!?。；;:：”\"]))(?:(?P<sign>[(（#]?)(?P<n>\d{1,2})(?P<end>[.)）、:：/]|\ufe0f?\u20e3"
    r"|(?<=#\d)(?=\s))(?!\d)"
    r"|(?P<letter>[a-h])(?P<end2>[.)])(?=\s)|(?P<circled>[①-⑳]))\s?"
)
_SEPARATORS = re.compile(r"\s+(?:[|/]|--)\s+|\s*[;；、]\s*|\s+OR\s+|\t+|(?<=[.!?]),\s*")
_INLINE_TAG = re.compile(
    r"</?(?:b|i|u|em|strong|code|span|a|mark)(?:\s[^<>]{0,200})?>", re.IGNORECASE
)
# Not the parameter of a type: `List<String>`.
_TAG = re.compile(
    r"(?:</?[a-z]|(?<!\w)</?[A-Z])[\w-]{0,30}(?:\s[^<>]{0,200})?/?>|</?\d{1,2}>|<[?!][^<>]{0,200}>"
)


def read_lines(text: str, source: SourceText) -> list[Item]:
    """The items of a list; of plain lines if no item of the list is a sentence."""
    lines = _lines(text, source)
    items = _read(lines, source)
    reasons = {item.reason for item in items}
    if any(line.mark for line in lines) and reasons.isdisjoint((None, "refusal")):
        unmarked = _read([Line(line.text) for line in lines], source)
        if any(item.reason is None for item in unmarked):
            return unmarked
    return items


def _lines(text: str, source: SourceText) -> list[Line]:
    """The lines of a text; a line with only a mark is kept, as its sentence may be below."""
    if source.lacks("<") and "<" in text:
        text = _TAG.sub("\n", _INLINE_TAG.sub("", text))
    if source.lacks("\\"):
        text = text.replace("\\n", "\n")
    pieces = []
    for line in _split_introductions(text, source).split("\n"):
        if has_words(line):
            pieces += _split_inline(line, source)
    if len(pieces) == 1 and (_INITIAL.match(pieces[0]) or _INLINE.search(source.text)):
        return [Line(pieces[0])]  # `A. fumigatus …`, `1) time and 2) money …`

    lines = []
    last = 0
    for piece in pieces:
        plain = piece.lstrip("> \t")
        indent = len(piece.removesuffix(plain).expandtabs(4))
        mark = _MARK.match(piece)
        ordinal = None
        if mark and not mark["bullet"]:
            ordinal = _ordinal(mark, last)
        if mark and mark["bullet"]:
            lines.append(Line(piece[mark.end() :], indent, "bullet"))
        elif mark and ordinal is not None:
            last = ordinal or last
            lines.append(Line(piece[mark.end() :], indent, "number"))
        else:
            lines.append(Line(plain, indent))
    return lines


def _ordinal(mark: re.Match[str], last: int) -> int | None:
    """The ordinal of a mark; None for a number or letter that belongs to the sentence."""
    following = last + 1
    if mark["letter"]:
        letter = mark["letter"].lower()
        is_roman = _ROMAN[following : following + 1] == (letter,)
        is_next_letter = letter == chr(ord("a") + last)
        return following if is_roman or is_next_letter else None
    ordinal = following
    if mark["n"] and mark["n"].isdigit():
        ordinal = int(mark["n"])
    is_within = mark.string[mark.end() :][:1].islower()
    return None if is_within and ordinal != following else ordinal


def _split_introductions(text: str, source: SourceText) -> str:
    """Put introductions on lines of their own, and remove labels such as `Output:`."""
    introductions = []
    for _ in range(4):
        text = text.lstrip()
        first, _, _ = text.partition("\n")
        bare = first.lstrip("*_# ")
        head = source.begins(HEAD, bare)
        if head is not None:
            text = bare[head.end() :].lstrip("*_ ") + text[len(first) :]
            continue
        end = lead_end(first, source)
        if end in (0, len(first)):
            break
        introductions.append(first[:end])
        text = text[end:].lstrip("*_")
    return "\n".join((*introductions, text))


def _split_inline(line: str, source: SourceText) -> list[str]:
    """Split a line of several marked items: `1. A. 2. B.`."""
    starts: list[int] = []
    form: tuple[str | None, ...] = ()
    for match in islice(_INLINE.finditer(line), _MAX_MARKS):
        form_of_match = match.group("sign", "end", "end2")
        if not starts:
            form = form_of_match
        elif form_of_match != form:
            continue
        ordinal = _inline_ordinal(match)
        if starts and ordinal == 1:
            # The first is the mark of the line, the second starts an enumeration in its sentence.
            return [line]
        if ordinal == len(starts) + 1:
            starts.append(match.start())

    if len(starts) < 2 or _INLINE.search(source.text):
        return [line]
    before = line[: starts[0]].strip(" *_#>")
    if before and not before.endswith((":", "：", ".", "。")):
        return [line]
    pieces = [line[start:end] for start, end in pairwise([*starts, len(line)])]
    if any(size_of(piece) <= 2 for piece in pieces):
        return [line]
    return [before, *pieces] if before else pieces


def _inline_ordinal(match: re.Match[str]) -> int:
    if match["n"]:
        return int(match["n"])
    if match["letter"]:
        return ord(match["letter"]) - ord("a") + 1
    return ord(match["circled"]) - ord("①") + 1


def _read(lines: list[Line], source: SourceText) -> list[Item]:
    """The items of all lines."""
    pieces = LineReader(lines, source).read()
    if not any(line.mark for line in lines):
        pieces = _without_titles(pieces, source)
        reasons = [reason for _, reason in pieces]
        if reasons.count(None) == 1:
            index = reasons.index(None)
            paragraph, _ = pieces[index]
            pieces[index : index + 1] = _split_paragraph(paragraph, source)

    items = []
    for text, reason in pieces:
        if reason in (None, "echo"):
            items += refine(text, source)
        else:
            items.append(Item(text, reason))
    return items


def _without_titles(pieces: list[Piece], source: SourceText) -> list[Piece]:
    """Drop plain lines that are far shorter than the text, if others are as long as sentences."""
    long = [
        text for text, reason in pieces if reason is None and source.is_as_long_as(text)
    ]
    if len(long) < 2:
        return pieces
    ended = [text for text in long if ENDED.search(text)]
    has_stops = len(ended) > 1 and ENDED.search(source.text)
    result = []
    for text, reason in pieces:
        minimum = source.size
        if has_stops and not ENDED.search(text):  # more likely a title
            minimum = 2 * source.size + 2
        if reason is None and 3 * size_of(text) < minimum:
            reason = "outside_list"
        result.append((text, reason))
    return result


def _split_paragraph(text: str, source: SourceText) -> list[Piece]:
    """Split a paragraph into answers at separators, or after as many sentences as the source has."""
    if source.lacks(_SEPARATORS):
        answers = [answer.strip() for answer in _SEPARATORS.split(text)]
        is_list = len(answers) > 1 and source.wanted in (None, len(answers))
        if is_list and all(map(source.is_as_long_as, answers)):
            return [(answer, None) for answer in answers]

    sentences = _sentences(text)
    is_answer = (
        source.text.endswith(("?", "？")) and "?" not in text and "？" not in text
    )
    if is_answer and len(sentences) > 1:
        return [(text, "refusal")]  # an answer to the question

    width = max(len(_sentences(source.text)), 1)
    count, left_over = divmod(len(sentences), width)
    is_even = left_over == 0 and count > 1
    is_wanted = source.wanted != 1 and (width == 1 or count == source.wanted)
    if not (is_even and is_wanted):
        return [(text, None)]
    is_quoted = unquoted(text) != text or quoted_sentences(text, source)
    has_echo, _ = split_echo(text, source)
    if is_quoted or has_echo:
        return [(text, None)]
    pieces = []
    for start in range(0, len(sentences), width):
        piece = " ".join(sentences[start : start + width])
        pieces.append((piece, _why_remark(piece, source)))
    return pieces


def _why_remark(piece: str, source: SourceText) -> str | None:
    """The reason of a sentence of a paragraph that is a remark; None for a rewrite."""
    if piece.startswith(("(", "（", "[", "—", "–")) and source.lacks("(（[—–"):
        return "remark"
    if source.is_remark(piece):
        return "closing_note"
    return why_no_sentence(piece, source)


def _sentences(text: str) -> list[str]:
    ends = [match.end() for match in STOP.finditer(text)]
    pieces = [text[start:end].strip() for start, end in pairwise([0, *ends, len(text)])]
    return [piece for piece in pieces if piece]
