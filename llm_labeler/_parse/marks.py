"""Marks at the beginning of a line that begin an item: `1.`, `(2)`, `c)`, `•`, `四、`, `Sentence 5:`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from llm_labeler._parse.labels import label_end
from llm_labeler._parse.source import Source

Kind = Literal["number", "letter", "bullet", "label"]

_INDENT = re.compile(r"[ \t>]*(?:#{1,6}[ \t]+)?")
_NUMBER = re.compile(
    r"(?:\*\*|__)?[(\[【<]?(?P<n>\d{1,3}|[一二三四五六七八九十]{1,3}(?=[、)]))"
    r"(?P<sign>[ \t]?(?:\.\)|[.):\]】、>])|[ \t][-–—](?=[ \t]))(?:\*\*|__)?:?(?P<gap>[ \t]*)"
)
_LETTER = re.compile(r"(?:\*\*)?\(?(?P<letter>[A-Za-z]|[ivx]{2,4}|[IVX]{2,4})(?P<sign>[.):])(?:\*\*)?[ \t]+")
_BULLET = re.compile(
    r"(?:[-*+–—→⇒∙·・"
    r"✓✔✅☑❖]|[-=]>|[•‣◦▪●○■□◆◇►▶➤➢](?=[ \t]?))(?:[ \t]+|(?<=[^*+\w])(?=[^\Wa-z\d_]|[\"'“「『]))"
    r"(?:\[[ xX]\][ \t]+)?"
)
_CHINESE_DIGITS = {character: n for n, character in enumerate("一二三四五六七八九十", start=1)}
_ROMAN = ["", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii", "xiii", "xiv", "xv"]


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark and the rest of its line."""

    kind: Kind
    ordinal: int | None
    indent: int
    rest: str
    sign: str = ""
    label: str = ""


def find_marks(lines: list[str], source: Source) -> dict[int, Mark]:
    """Lines that begin an item, by their place.

    A number that doesn't go on from the one before and has a small letter after it is a sentence's own: a
    line was broken inside it ("see fig.⏎7. for …").
    """
    marks: dict[int, Mark] = {}
    last: int | None = None
    indent = 0
    for place, line in enumerate(lines):
        mark = _mark(line, last, source)
        # "… type⏎   2." ends a sentence that was broken there.
        is_tail = mark is not None and bool(marks) and mark.indent > indent and not mark.rest.strip()
        if mark is not None and (mark.kind != "number" or not is_tail):
            marks[place] = mark
            indent = mark.indent
            last = last if mark.ordinal is None else mark.ordinal
    only = next(iter(marks.values())) if len(marks) == 1 else None
    # `A. fumigatus` is no list; `a) …` may be.
    return {} if only is not None and only.kind == "letter" and only.sign == "." else marks


def _mark(line: str, last: int | None, source: Source) -> Mark | None:
    indent = _INDENT.match(line)
    start = indent.end() if indent else 0
    depth = len(line[:start].expandtabs(4))
    if (match := _NUMBER.match(line, start)) is not None:
        mark = Mark("number", _ordinal(match["n"]), depth, line[match.end() :], match["sign"].strip())
        if _is_number_mark(mark, bool(match["gap"]), last):
            return mark
    if (match := _LETTER.match(line, start)) is not None:
        for ordinal in letter_ordinals(match["letter"]):
            if ordinal == (last or 0) + 1:
                return Mark("letter", ordinal, depth, line[match.end() :], match["sign"])
    if (match := _BULLET.match(line, start)) is not None:
        rest = line[match.end() :]
        end = label_end(rest, source, any_name=False)
        return Mark("bullet", None, depth, rest[end:], label=rest[:end])
    if (end := label_end(line[start:], source, any_name=False)) > 0:
        return Mark("label", None, depth, line[start + end :], label=line[start : start + end])
    return None


def _is_number_mark(mark: Mark, has_gap: bool, last: int | None) -> bool:
    first = mark.rest[:1]
    if first.isdigit() and (not has_gap or mark.sign in "-–—"):
        return False
    return not first.islower() or mark.ordinal == (last or 0) + 1


def _ordinal(number: str) -> int:
    if number.isdigit():
        return int(number)
    value = 0
    for character in number:
        digit = _CHINESE_DIGITS[character]
        value = value * 10 if digit == 10 and 0 < value < 10 else value + digit
    return value


def letter_ordinals(letters: str) -> list[int]:
    """What letters can count as: `c)` is a third, `ii)` a second, `i)` a ninth or a first."""
    lower = letters.lower()
    ordinals = [ord(lower) - ord("a") + 1] if len(lower) == 1 else []
    return [*ordinals, _ROMAN.index(lower)] if lower in _ROMAN else ordinals
