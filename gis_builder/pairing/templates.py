"""Lines of a repository's issue templates, found by how many of its issues repeat them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from gis_builder.pairing.markup import segments
from gis_builder.store.records import Issue
from pairkit.similarity.terms import terms

# One of several templates, or one that was used for some years, is in more than a twentieth of the issues;
# phrases of people are not.
_MIN_SHARE = 0.05
_MIN_ISSUES = 100  # in smaller repositories nothing is removed
_WINDOW = 1_000  # issues between reductions of the counts
_MIN_WORDS, _MIN_LABEL_WORDS = 6, 2  # of an instruction; of a label such as "Expected output:"

LINE = re.compile(r"^(?![ ]{4}|\t)[^\n]{1,200}$", re.MULTILINE)  # except indented code
_MARKS = re.compile(r"^(?:(?:[-*+>]|\[[ xX]?\]|\d{1,2}[.)])[ \t]+)+")
_BOLD = re.compile(r"(\*\*|__)(?:(?!\1).)+\1[:：]?")
_ANSWER_OR_CODE = re.compile(r"\d|[:：].*\w|[{};=\\]")


def template_lines(issues: Iterable[Issue]) -> frozenset[str]:
    """Headings, questions and instructions that at least 5 of 100 issues of a repository repeat.

    To bound memory, counts are lowered by one after each thousand issues.
    """
    counts: Counter[str] = Counter()
    total = 0
    for total, issue in enumerate((issue for issue in issues if not issue.is_pull), 1):
        counts.update({line for piece, code in segments(issue.body) if not code for line in _lines(piece)})
        if total % _WINDOW == 0:
            counts -= Counter(dict.fromkeys(counts, 1))
    if total < _MIN_ISSUES:
        return frozenset()
    least = _MIN_SHARE * total - total // _WINDOW
    return frozenset(line for line, count in counts.items() if count >= least and _is_of_template(line))


def _lines(text: str) -> Iterable[str]:
    return (line[0].strip() for line in LINE.finditer(text))


def _is_of_template(line: str) -> bool:
    """Whether the form is not that of an answer, a greeting or code: "Windows 10", "Thanks!", "import os"."""
    rest = _MARKS.sub("", line, 1)
    if line.startswith("#") or _BOLD.fullmatch(rest) or rest.rstrip("*_) ").endswith(("?", "？")):
        return True
    is_label = rest.rstrip("*_").endswith((":", "："))
    is_plain = not _ANSWER_OR_CODE.search(rest)
    return is_plain and len(terms(rest)) >= (_MIN_LABEL_WORDS if is_label else _MIN_WORDS)
