"""Read lists, headings and plain lines: a table of rules decides which lines are sentences."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice, pairwise
from math import inf
from typing import NamedTuple

from llm_labeler.parsing.phrases import (
    COLONS,
    HEAD,
    LABEL,
    NOTE,
    is_heading,
    is_remark,
    lead_end,
    polarity_of,
    side_of,
    why_no_sentence,
)
from llm_labeler.parsing.sentence import (
    join_sentences,
    refine,
    restore,
    split_paragraph,
    without_emphasis,
    without_label,
)
from llm_labeler.parsing.source_text import (
    ENDED,
    SourceText,
    has_words,
    joined,
    sentences_of,
    size_of,
    tidy,
)
from llm_labeler.parsing.turns import PLAIN_TAG
from llm_labeler.records import Item, Items, Polarity

_MARK = re.compile(
    joined(r"""
    (?P<indent>[ \t>]*)(?:#{1,6}[ \t]+)?(?:\*\*|__)?(?:
    (?:[(（\[【{#]|no\.? ?|v)?(?P<n>\d{1,3}
    |[一二三四五六七八九十]{1,3}(?=[、)）]))(?:[ \t]?(?:\\?[.．]{1,9}[)）]?|[)）:：\]】、}°]|/(?=\s)
    |\ufe0f?\u20e3|[-–](?=\s)|\t|[;,](?=")|(?<=#\d)(?=\s))(?!\d)|[ \t][-–—](?=[ \t]))|(?P<circled>[①-⑳])
    |\(?(?P<letter>[a-j]|[ivx]{1,4})[.)）](?=[ \t])
    |(?P<bullet>(?:[-*+–—→✓✔✅☑❖~]|[-=]>)(?=[ \t])|[•‣◦▪●○■□◆◇►▶➤➢·・](?=\S|[ \t]))
    )(?:\*\*|__)?:?[ \t]*(?:\[[ xX]\][ \t]+)?
"""),
    re.IGNORECASE,
)
_INITIAL = re.compile(r"[A-Z]\. [a-z]")
_MAX_MARKS = 200  # in one line
_ROMAN = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x")
_INLINE = re.compile(
    joined(r"""
    (?:^|(?<=[\s.!?。；;:：”"]))(?:(?P<sign>[(（#]?)(?P<n>\d{1,2})(?P<end>[.)）、:：/]|\ufe0f?\u20e3
    |(?<=#\d)(?=\s))(?!\d)
    |(?P<letter>[a-h])(?P<end2>[.)])(?=\s)|(?P<circled>[①-⑳]))\s?
""")
)
_INLINE_TAG = re.compile(
    r"</?(?:b|i|u|em|strong|code|span|a|mark)(?:\s[^<>]{0,200})?>", re.IGNORECASE
)
_CLOSING_TAG = re.compile(r"</([\w-]{1,31})>")
# Not the parameter of a type: `List<String>`.
_TAG = re.compile(
    r"(?:</[a-z]|(?<!\w)</[A-Z])[\w-]{0,30}>|(?:<(?=[a-z])|(?<!\w)<(?=[A-Z]))([\w-]{1,31})(?:\s[^<>]{0,200})?/?>|</?\d{1,2}>|<[?!][^<>]{0,200}>"
)

# The short first field of a YAML element, in front of its sentence: `- id: 1`.
_FIRST_FIELD = re.compile(
    r"(?<=- )\w{1,20}: [^\n]{1,20}\n[ \t]+(?=\w{1,20}: )", re.MULTILINE
)

# A label or an ordinal that all sentences have: `Idiomatic: …`, `V2: …`, `Second, …`.
_PREFIX = re.compile(
    joined(r"""
    (?:[^\W\d][^:：.!?。"“「]{0,40}(?:\([^()\n]{1,30}\) ?)?[:：](?![/\d])|(?:first|second|third|fourth
    |fifth|final)(?:ly)?,
    |(?:\d{1,2}(?:st|nd|rd|th)|one|two|three|four|five)[.:]|(?:首先|其次|最后)，)\s*
"""),
    re.IGNORECASE,
)
# An outcome instead of a reason: the line is a part of the text above.
JOINED = "joined"


@dataclass(slots=True)
class Line:
    """A line, or one of several items in a line."""

    text: str
    indent: int = 0
    mark: str = ""  # "number", "bullet" or ""


class LineRule(NamedTuple):
    """The outcome of lines that may be sentences by their own words, but not by the lines around them."""

    example: str
    applies: Callable[[LineReader], object]
    outcome: str | None  # None: a sentence


class LineReader:
    """Reads lines in order into texts with reasons."""

    def __init__(self, lines: list[Line], source: SourceText) -> None:
        self.lines = lines
        self.source = source
        self.marked = [line for line in lines if line.mark]
        self.numbers = [line for line in self.marked if line.mark == "number"]
        # Without the first line, whose indent is lost.
        self.list_indent = min((line.indent for line in self.marked[1:]), default=0)
        listed = self.marked or lines
        self.is_labelled = source.lacks(":：") and _have_prefix(listed, source)
        labels = filter(None, (_label_of(tidy(line.text)) for line in lines))
        stated = (polarity_of(label.group()) for label in labels)
        self.has_polarity = self.is_labelled or source.polarity in stated
        # The lines of each text, with its reason.
        self.parts: list[tuple[list[str], str | None]] = []
        self.has_sentence = False
        self.sentence_indent = inf  # of the last sentence below a heading
        self.is_title = False  # whether a heading is above, or a mark without text
        self.section: str | None = None  # the reason to drop the lines below a heading
        self.index: int
        self.line: Line
        self.text: str

    def read(self) -> Items:
        """The texts with their reasons."""
        for self.index, self.line in enumerate(self.lines):  # noqa: B020 - attributes
            self.text = tidy(self.line.text)
            if not has_words(self.text):
                self.is_title = True
                continue
            reason = self._reason_by_words()
            below = self.lines[self.index + 1 : self.index + 2]
            introduces = self.line.mark and (
                self.text.endswith(COLONS)
                or any(line.indent > self.line.indent for line in below)
            )
            reasons = ("preamble", "closing_note", "thinking")
            may_be_heading = introduces or reason in reasons
            if may_be_heading and is_heading(self.text, self.source):
                self.section = _section(self.text, self.section, self.source.polarity)
                self.is_title = True
                self.sentence_indent = inf
                self.parts.append(([self.text], self.section or "preamble"))
            else:
                self._add(self.section or reason)
        return [Item(" ".join(texts), reason) for texts, reason in self.parts]

    def _reason_by_words(self) -> str | None:
        """The reason of a line by its own words, after removing a label that all sentences have."""
        reason = why_no_sentence(self.text, self.source, in_list=bool(self.line.mark))
        label = _label_of(self.text)
        if label is None or label.end() == len(self.text):  # a heading
            return reason
        polarity = self.source.polarity
        stated = polarity_of(label.group()) if self.has_polarity else None
        if polarity and stated not in (None, polarity):
            return "other_polarity"
        if self.is_labelled and reason in (None, "preamble"):
            self.text = self.text[label.end() :]
            return why_no_sentence(self.text, self.source, in_list=True)
        return reason

    def _add(self, reason: str | None) -> None:
        """Add a line that is not a heading, with its reason or the outcome of the first rule."""
        outcome = reason or next(
            rule.outcome for rule in LINE_RULES if rule.applies(self)
        )
        if outcome == JOINED:
            self.parts[-1][0].append(self.text)
            return
        self.is_title = self.is_title and self.line.mark == "bullet"
        if outcome is None:
            self.has_sentence = True
            self.sentence_indent = self.line.indent
        self.parts.append(([self.text], outcome))

    @property
    def in_numbers(self) -> bool:
        """Whether this is a bullet in a numbered list, not directly below a title."""
        return bool(self.numbers) and self.line.mark == "bullet" and not self.is_title

    @property
    def unlabelled(self) -> str:
        """The line without a label."""
        return without_label(without_emphasis(self.text, self.source), self.source)

    @property
    def is_in_brackets(self) -> bool:
        """Whether the whole line is in brackets that the source lacks."""
        is_open = self.text.startswith(("(", "（", "["))
        is_closed = self.text.rstrip(".").endswith((")", "）", "]"))
        return is_open and is_closed and self.source.lacks("(（[")

    @property
    def continues(self) -> bool:
        """Whether the line continues the incomplete sentence, or the refusal, above it."""
        if not self.parts:
            return False
        texts, reason = self.parts[-1]
        if reason is not None:
            return reason == "refusal"
        last = texts[-1]  # all lines together would take quadratic time
        if ENDED.search(last):
            # Indented below the first sentences of a text of several.
            count = len(sentences_of(texts[0])) + len(texts)
            return self.line.indent > 0 and count <= self.source.width
        is_complete = last.endswith((",", ";")) or self.source.lacks(ENDED)
        return self.text[:1].islower() and not is_complete

    @property
    def is_below_title(self) -> bool:
        """Whether the line is below a title, and does not introduce a list."""
        above = self.lines[max(self.index - 1, 0)]
        below = self.lines[self.index + 1 : self.index + 2]
        return self.is_title and (
            bool(above.mark) or not any(line.mark for line in below)
        )


# The first rule that applies decides about the last line of its example.
LINE_RULES = (
    LineRule(
        "1. A.\n - B.",
        lambda at: at.in_numbers and at.line.indent > at.numbers[0].indent,
        "sub_item",
    ),
    LineRule(
        "1. A.\n2. B.\n- C.",
        lambda at: (
            at.in_numbers and len(at.numbers) >= (at.source.wanted or len(at.lines))
        ),
        "sub_item",
    ),
    LineRule(
        "1. A.\n- Same meaning.",
        lambda at: at.in_numbers and is_remark(at.text, at.source),
        "sub_item",
    ),
    LineRule(
        "- A.\n- B.\n  - C.",
        lambda at: (
            at.line.mark == "bullet"
            and at.line.indent > max(at.list_indent, at.sentence_indent)
        ),
        "sub_item",
    ),
    LineRule("1. A.", lambda at: at.line.mark, None),
    LineRule("The man\nplays.", lambda at: at.continues, JOINED),
    LineRule(
        "- A.\n**Positive**\nB.", lambda at: at.marked and at.is_below_title, None
    ),
    LineRule("1. A.\nB.", lambda at: at.marked, "outside_list"),
    LineRule(
        "A.\nNew: same meaning.",
        lambda at: at.has_sentence and is_remark(at.unlabelled, at.source),
        "closing_note",
    ),
    LineRule("A.\n(B.)", lambda at: at.has_sentence and at.is_in_brackets, "remark"),
    LineRule("A.", lambda _: True, None),
)


def _label_of(text: str) -> re.Match[str] | None:
    return _PREFIX.match(text) or LABEL.match(text)


def _have_prefix(lines: list[Line], source: SourceText) -> bool:
    """Whether several lines are as long as sentences, and all of these begin with a label."""
    prefixes = set()
    for line in lines:
        text = tidy(line.text)
        if not source.is_as_long_as(text) or why_no_sentence(
            text, source, in_list=True
        ):
            continue
        prefix = _PREFIX.match(text)
        if prefix is None or not source.is_as_long_as(text[prefix.end() :]):
            return False
        prefixes.add(prefix.group().split()[-1])
    return len(prefixes) > 1


def _section(
    heading: str, section: str | None, polarity: Polarity | None
) -> str | None:
    """The reason to drop the lines below a heading; None if they may be sentences."""
    stated = polarity_of(heading)
    if polarity is not None and stated is not None:
        return None if stated == polarity else "other_polarity"
    name = heading.strip("#*_ :：")
    if side_of(name) == "side_field" and size_of(name) < 4:
        return "closing_note"
    return None if section == "closing_note" else section


def read_lines(text: str, source: SourceText) -> Items:
    """The items of a list; of plain lines if no item of the list is a sentence."""
    lines = _lines(text, source)
    items = _read(lines, source)
    plain = [Line(line.text) for line in lines]
    if plain != lines and {None, "refusal"}.isdisjoint(item.reason for item in items):
        unmarked = _read(plain, source)
        if None in (item.reason for item in unmarked):
            return unmarked
    return items


def _lines(text: str, source: SourceText) -> list[Line]:
    """The lines of a text; a line with only a mark is kept, as its sentence may be below."""
    if source.lacks("<"):
        text = _INLINE_TAG.sub("", text)
        names = set(_CLOSING_TAG.findall(text))
        text = _TAG.sub(lambda tag: _line_of_tag(tag, names), text)
    if source.lacks("\\"):
        text = text.replace("\\n", "\n")
    text = _FIRST_FIELD.sub("", text)
    pieces = []
    for raw in _split_introductions(text, source).split("\n"):
        if has_words(raw):
            pieces += _split_inline(raw, source)
    if len(pieces) == 1 and (_INITIAL.match(pieces[0]) or _INLINE.search(source.text)):
        return [Line(pieces[0])]  # `A. fumigatus …`, `1) time and 2) money …`

    lines = []
    last = 0
    for piece in pieces:
        plain = piece.lstrip("> \t")
        line = Line(plain, len(piece.removesuffix(plain).expandtabs(4)))
        mark = _MARK.match(piece)
        if mark and mark["bullet"]:
            line.mark = "bullet"
        elif mark and (ordinal := _ordinal(mark, last)) is not None:
            last = ordinal or last
            line.mark = "number"
        if mark and line.mark:
            line.text = piece[mark.end() :]
        lines.append(line)
    return lines


def _line_of_tag(tag: re.Match[str], closed: set[str]) -> str:
    """A line break, with the name of a tag that is a label: `<antonym>`, `<note>`."""
    name = tag[1] or ""
    is_within = re.fullmatch(
        r"[^\n>]<.*>[^<\n]", tag.string[tag.start() - 1 : tag.end() + 1]
    )
    if name and is_within and name not in closed and not PLAIN_TAG.match(name):
        return tag[0]  # `Add <name> to the list`
    label = f"{name}: "
    return f"\n{label}" if polarity_of(label) or NOTE.match(label) else "\n"


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


def _read(lines: list[Line], source: SourceText) -> Items:
    """The items of all lines."""
    pieces = LineReader(lines, source).read()
    if not any(line.mark for line in lines):
        pieces = _without_titles(restore(pieces, source), source)
        pieces = join_sentences(pieces, source)
        reasons = [piece.reason for piece in pieces]
        if reasons.count(None) == 1:
            index = reasons.index(None)
            pieces[index : index + 1] = split_paragraph(pieces[index].text, source)

    items = []
    for piece in pieces:
        is_refined = piece.reason in (None, "echo")
        items += refine(piece.text, source) if is_refined else [piece]
    return items


def _without_titles(pieces: Items, source: SourceText) -> Items:
    """Drop plain lines that are far shorter than the text, if others are as long as sentences."""
    texts = [piece.text for piece in pieces if piece.reason is None]
    long = [text for text in texts if source.is_as_long_as(text)]
    if len(long) < 2:
        return pieces
    ended = [text for text in long if ENDED.search(text)]
    has_stops = len(ended) > 1 and ENDED.search(source.text)
    result = []
    for piece in pieces:
        minimum = source.size
        if has_stops and not ENDED.search(piece.text):  # more likely a title
            minimum = 2 * source.size + 2
        is_title = piece.reason is None and 3 * size_of(piece.text) < minimum
        result.append(Item(piece.text, "outside_list") if is_title else piece)
    return result
