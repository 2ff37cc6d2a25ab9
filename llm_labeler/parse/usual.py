"""Unusual marks of lines as usual ones: what counts 1, 2, 3 … is `1. `, a sign that begins lines `- `."""

from __future__ import annotations

import re
from collections import Counter
from unicodedata import category

from llm_labeler.parse.source import Source

_ORDINALS = (
    "first firstly erstens primero premièrement 首先 第一",
    "second secondly zweitens segundo deuxièmement 其次 第二",
    "third thirdly drittens tercero troisièmement 再次 第三",
    "fourth fourthly viertens cuarto quatrièmement 第四",
    "fifth fifthly fünftens quinto cinquièmement 第五",
)
_TURNS = {word: turn for turn, words in enumerate(_ORDINALS, start=1) for word in words.split()}
_IN_WORDS = re.compile(
    rf"[ \t*_>\"-]*(?P<n>{'|'.join(sorted(_TURNS, key=len, reverse=True))})[*_]*[,:][*_]*\s*", re.IGNORECASE
)
_COUNTED = re.compile(
    r"[^\w\s]{0,4}(?:(?:no|nr|num|number|n|№|s|v|item|point)\b[.:]? ?)?#? ?(?P<n>\d{1,3})"
    r"(?:(?P<sign>[^\w\s]{1,12}[ \t]*(?=\S))|[^\w\s]{0,4}[ \t]*$)",
    re.IGNORECASE,
)
# A line may begin with these for reasons of its own.
_OWN = frozenset("\"'#%&@+./\\*…¿¡-=:,;!?。、|<>")
_SIGNS = ("So", "Sm", "Sk", "Po", "Pd")  # categories of Unicode: no brackets, no quotes, no money


def with_usual_marks(lines: list[str], source: Source) -> list[str]:
    """`lines` with marks that `marks` knows, where theirs count, or are the same sign; else as they are."""
    for pattern in (_IN_WORDS, _COUNTED):
        lines = _counted(lines, pattern, source)
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


def _value(mark: str) -> int:
    return int(mark) if mark.isdigit() else _TURNS[mark.lower()]


def _bulleted(line: str, firsts: Counter[str], source: Source) -> str:
    bare = line.strip()
    first = bare[:1]
    is_sign = bool(first) and category(first) in _SIGNS and first not in _OWN
    is_sign = is_sign or bare.startswith("$ ")
    if not is_sign or firsts[first] < 2 or source.text.startswith(first) or len(bare) < 3:
        return line
    return "- " + bare[1:].lstrip(" \ufe0f")
