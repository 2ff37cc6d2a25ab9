"""Lines of a repository's issue templates, found by how many of its issues repeat them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from gis_builder.pairing.markup import cut, segments
from gis_builder.store.issue_records import Issue
from pairkit.similarity.terms import terms

# One of several templates, or one that was used for some years, reaches this share; people's phrases don't.
_MIN_SHARE = 0.05
_MIN_ISSUES = 100  # in smaller repositories nothing is removed
_WINDOW = 1_000  # issues between reductions of the counts
_LINE = re.compile(r"^(?![ ]{4}|\t)[^\n]{1,200}$", re.MULTILINE)  # except indented code
_MARKS = re.compile(r"^(?:(?:[-*+>]|\[[ xX]?\]|\d{1,2}[.)])[ \t]+)+")
_BOLD = re.compile(r"(\*\*|__)(?:(?!\1).)+\1[:：]?")
_ANSWER_OR_CODE = re.compile(r"\d|[:：].*\w|[{};=\\]")
Templates = Mapping[str, Collection[str]]  # by repository


def template_lines(issues: Iterable[Issue]) -> frozenset[str]:
    """Headings, questions and instructions that at least 5 of 100 issues of a repository repeat.

    To bound memory, counts are lowered by one after each thousand issues.
    """
    counts: Counter[str] = Counter()
    total = 0
    for total, issue in enumerate((issue for issue in issues if not issue.is_pull), 1):
        prose = (piece for piece, code in segments(issue.body.replace("\r", "")) if not code)
        counts.update({line[0].strip() for piece in prose for line in _LINE.finditer(piece)})
        if total % _WINDOW == 0:
            counts -= Counter(dict.fromkeys(counts, 1))
    least = _MIN_SHARE * total - total // _WINDOW if total >= _MIN_ISSUES else math.inf
    return frozenset(line for line, count in counts.items() if count >= least and _is_of_template(line))


def without_template(text: str, template: Collection[str], removed: Counter[str]) -> str:
    """The text without these lines, except in code; they are counted."""
    if not template:
        return text
    kept: list[str] = []
    for piece, code in segments(text.replace("\r", "")):
        lines = [] if code else [m.span() for m in _LINE.finditer(piece) if m[0].strip() in template]
        removed.update(["template_line"] * len(lines))
        kept.append(cut(piece, lines))
    return "".join(kept)


def _is_of_template(line: str) -> bool:
    """Whether the form is not that of an answer, a greeting or code: "Windows 10", "Thanks!", "import os"."""
    rest = _MARKS.sub("", line, 1)
    if line.startswith("#") or _BOLD.fullmatch(rest) or rest.rstrip("*_) ").endswith(("?", "？")):
        return True
    min_words = 2 if rest.rstrip("*_").endswith((":", "：")) else 6
    return not _ANSWER_OR_CODE.search(rest) and len(terms(rest)) >= min_words
