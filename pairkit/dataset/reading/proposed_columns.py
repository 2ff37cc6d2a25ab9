"""Propose `--columns` from the first rows of a table, for messages about columns that aren't recognised."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from shlex import quote
from statistics import median
from typing import Literal

from pairkit.base.printable import one_line

Rows = Iterable[Mapping[str, object]]
# What a reader takes: only pairs; pairs or single texts; preferably single texts; pairs, or texts in groups.
Meant = Literal["pairs", "rows", "texts", "groups"]
UNKNOWN = "NAME"

_ROWS = 1000
_CHARACTERS = 1000  # of a value that are looked at
_MIN_LENGTH = 20  # names of labels are shorter
_DATE = re.compile(r"(?=.*\b(?:19|20)\d\d\b)(?=.*\b\d\d?\b).{6,40}")
_IS_QUESTION = re.compile(r".*[?？؟]\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ColumnSample:
    """The first values of a column."""

    name: str
    values: Sequence[object]

    @property
    def length(self) -> float:
        """The median length of its texts; 0 if most values are something else."""
        return median(map(_text_length, self.values))

    @property
    def distinct(self) -> float:
        """The share of distinct values."""
        return len({str(value) for value in self.values}) / len(self.values)

    @property
    def asks(self) -> bool:
        """Whether most values are questions."""
        questions = sum(
            _IS_QUESTION.fullmatch(str(value)[-_CHARACTERS:]) is not None for value in self.values
        )
        return 2 * questions > len(self.values)


def _text_length(value: object) -> int:
    """The length of a text; 0 for addresses, ids, dates and numbers."""
    if not isinstance(value, str):
        return 0
    text = value.strip()
    start = text[:_CHARACTERS]
    is_word = len(start.split()) == 1
    is_code = is_word and ("://" in start or (start.isascii() and not start.rstrip(".!?").isalpha()))
    letters = sum(map(str.isalpha, start))
    visible = len("".join(start.split()))
    is_text = 2 * letters > visible and not is_code and not _DATE.fullmatch(start)
    return len(text) if is_text else 0


def sample(rows: Rows) -> list[ColumnSample]:
    """The columns of the first rows."""
    first = [*islice(rows, _ROWS)]
    names = dict.fromkeys(name for row in first for name in row)
    return [ColumnSample(name, [row.get(name) for row in first]) for name in names]


def longest_text(columns: Iterable[ColumnSample]) -> str:
    """The column with the longest texts; NAME if there are no texts."""
    return next((column.name for column in _by_length(columns)), UNKNOWN)


def likely_pair(columns: Iterable[ColumnSample]) -> list[str]:
    """Two columns with texts of a kind; else empty."""
    texts = _by_length(columns)
    alike = [pair for pair in combinations(texts, 2) if _have_similar_names(*pair)]
    alike += [pair for pair in combinations(texts[:2], 2) if _have_similar_texts(*pair)]
    order = [column.name for column in columns]
    return sorted((column.name for column in alike[0]), key=order.index) if alike else []


def _by_length(columns: Iterable[ColumnSample]) -> list[ColumnSample]:
    """The columns of texts, the longest first."""
    texts = [column for column in columns if column.length]
    return sorted(texts, key=lambda column: -column.length)


def _have_similar_names(one: ColumnSample, other: ColumnSample) -> bool:
    """Whether the names differ in one character, as in `Satz A` and `Satz B`."""
    differing = sum(a != b for a, b in zip(one.name, other.name, strict=False))
    return len(one.name) == len(other.name) > 1 and differing == 1


def _have_similar_texts(longer: ColumnSample, shorter: ColumnSample) -> bool:
    """Whether varied texts have a similar length, or are questions and their answers."""
    if min(longer.distinct, shorter.distinct) <= 0.5 or shorter.length < _MIN_LENGTH:
        return False
    return 3 * shorter.length >= 2 * longer.length or shorter.asks > longer.asks


def columns_option(roles: Mapping[str, str]) -> str:
    """`--columns` with a column for each role; a name that the option can't contain becomes NAME."""
    usable = {role: UNKNOWN if re.search("[,=]", name) else one_line(name) for role, name in roles.items()}
    return "--columns " + quote(",".join(map("=".join, usable.items())))
