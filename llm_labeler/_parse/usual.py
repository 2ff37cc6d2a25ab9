"""Unusual marks of lines as usual ones: what counts 1, 2, 3 … is `1. `, a sign that begins lines `- `."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from unicodedata import category

from llm_labeler._parse.source import Source

_ORDINALS = (
    "one first firstly eins erstens uno primero primera un premièrement première 首先 第一 壹",
    "two second secondly zwei zweitens dos segundo segunda deux deuxièmement 其次 第二 贰",
    "three third thirdly drei drittens tres tercero tercera trois troisièmement 再次 第三 叁",
    "four fourth fourthly vier viertens cuatro cuarto cuarta quatre quatrièmement 第四 肆",
    "five fifth fifthly fünf fünftens cinco quinto quinta cinq cinquièmement 第五 伍",
    "six sixth sixthly sechs sechstens seis sexto six 第六",
    "seven seventh seventhly sieben siebtens siete séptimo sept 第七",
    "eight eighth eighthly acht achtens ocho octavo huit 第八",
)
_TURNS = {word: turn for turn, words in enumerate(_ORDINALS, start=1) for word in words.split()}
_IN_WORDS = re.compile(
    rf"[ \t*_>\"(-]*(?P<n>{'|'.join(sorted(_TURNS, key=len, reverse=True))})"
    r"(?: (?:sentence|option|version|one|satz|frase|phrase))?[*_]*(?:[,.:)]|\s[-–—](?=\s))[*_]*\s*",
    re.IGNORECASE,
)
_CAPITAL = r"[\"'“‘«*]*(?-i:[^\Wa-z\d_])"
_COUNTED = re.compile(
    r"[^\w\s]{0,4}(?:(?:no|nr|num|number|n|№|s|v|item|point)\b[.:]? ?)?#? ?"
    r"(?P<n>\d{1,3})(?:st|nd|rd|th|er|e|[ºª°])?"
    r"(?:[^\w\s]{1,12}[ \t]*(?=\S)"  # 1st: …
    r"|[ \t][|/~:][ \t]+(?=\S)"  # 1 | …
    r"|[^\w\s]{0,4}[ \t]*$"  # the number alone
    rf"|(?<=\w)[ \t]+(?={_CAPITAL}))",  # 01 The …
    re.IGNORECASE,
)
# Points of points: `1.1 …`, `1.2 …`, `2.1 …`.
_POINT = re.compile(
    rf"(?P<indent>[ \t>]*)(?P<major>\d{{1,2}})\.(?P<minor>\d{{1,2}})[.):]?[ \t]+(?={_CAPITAL})"
)
_FEW_WORDS = r"[^\W\d_][\w/-]{0,20}(?: [\w/-]{1,20}){0,2}"
_AFTER_NAME = tuple(
    re.compile(rf"[ \t*-]*{_FEW_WORDS}[ \t*]*{sign}[ \t]*(?={_CAPITAL})")
    for sign in ("(?:→|⇒|[-=]>)", "::", r"\|", "»", "[–—]")
)
# A line may begin with these for reasons of its own.
_OWN = frozenset("\"'#%&@+./\\*…¿¡-=:,;!?。、|<>")
_SIGNS = ("So", "Sm", "Sk", "Po", "Pd")  # categories of Unicode: no brackets, no quotes, no money


def with_usual_marks(lines: list[str], source: Source) -> list[str]:
    """`lines` with marks that `marks` knows, where theirs count, or are the same sign; else as they are."""
    for pattern in (_IN_WORDS, _COUNTED):
        lines = _counted(lines, pattern, source)
    lines = _unnamed(_pointed(lines, source), source)
    lines = _hashed(lines, source)
    firsts = Counter(line.strip()[:1] for line in lines)
    return [_bulleted(line, firsts, source) for line in lines]


def _counted(lines: list[str], pattern: re.Pattern[str], source: Source) -> list[str]:
    matches = [pattern.match(line.lstrip()[:80]) for line in lines]
    turns = [_value(match["n"]) for match in matches if match]
    if len(turns) < 2 or turns != list(range(1, len(turns) + 1)) or pattern.match(source.text):
        return lines
    return [
        line if match is None else f"{_value(match['n'])}. {line.lstrip()[match.end() :]}"
        for line, match in zip(lines, matches, strict=True)
    ]


def _pointed(lines: list[str], source: Source) -> list[str]:
    """`lines` with points of points as bullets, where each first one is the first of its kind."""
    matches = [_POINT.match(line) for line in lines]
    minors = [(int(match["major"]), int(match["minor"])) for match in matches if match]
    follows = [
        minor == 1 if major != before[0] else minor == before[1] + 1
        for before, (major, minor) in pairwise([(0, 0), *minors])
    ]
    if len(minors) < 2 or not all(follows) or _POINT.match(source.text):
        return lines
    return [
        line if match is None else f"{match['indent'] or '  '}- {line[match.end() :]}"
        for line, match in zip(lines, matches, strict=True)
    ]


def _unnamed(lines: list[str], source: Source) -> list[str]:
    """`lines` as bullets where all that are as long as sentences have a name and one sign: `noun → …`."""
    whole = [place for place, line in enumerate(lines) if source.is_as_long_as(line)]
    for sign in _AFTER_NAME:
        matches = {place: sign.match(lines[place]) for place in whole}
        ends = {place: match.end() for place, match in matches.items() if match is not None}
        if len(ends) < 2 or len(ends) < len(whole) or not source.lacks(sign):
            continue
        if all(source.is_as_long_as(lines[place][end:]) for place, end in ends.items()):
            return [f"- {line[ends[n] :]}" if n in ends else line for n, line in enumerate(lines)]
    return lines


def _hashed(lines: list[str], source: Source) -> list[str]:
    """`lines` as bullets where several whole sentences have the mark of a heading, as in a wiki's list."""
    whole = [
        line.startswith("# ") and source.is_as_long_as(line) and line.rstrip().endswith((".", "!", "?", "。"))
        for line in lines
    ]
    if sum(whole) < 2:
        return lines
    return [f"- {line[2:]}" if is_item else line for line, is_item in zip(lines, whole, strict=True)]


def _value(mark: str) -> int:
    return int(mark) if mark.isdigit() else _TURNS.get(mark.lower(), 0)


def _bulleted(line: str, firsts: Counter[str], source: Source) -> str:
    bare = line.strip()
    first = bare[:1]
    is_sign = bool(first) and category(first) in _SIGNS and first not in _OWN
    is_sign = is_sign or bare.startswith("$ ")
    if not is_sign or firsts[first] < 2 or source.text.startswith(first) or len(bare) < 3:
        return line
    return "- " + bare[1:].lstrip(" \ufe0f")
