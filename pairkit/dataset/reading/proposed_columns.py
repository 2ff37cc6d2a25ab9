"""Propose `--columns` from the first rows of a table, for messages about columns that aren't recognised."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import chain, islice
from shlex import quote
from statistics import median
from typing import Literal

from pairkit.base.printable import one_line

Rows = Iterable[Mapping[str, object]]
Meant = Literal["pairs", "pairs or groups", "rows", "texts"]
"""What a table is expected to have.

`rows` are pairs or single texts, `texts` more likely single texts; texts of groups are labelled by group.
"""
UNKNOWN = "NAME"
MIN_LENGTH = 20  # of a pair's texts, in characters; names of labels are shorter

_MAX_ROWS = 1000  # of a table that are looked at
_MAX_CHARS = 1000  # of a value that are looked at
_MAX_REPEATS = 3  # rows for each distinct text; names of labels repeat more often
_NO_TEXT = re.compile(
    r"\s*(?:"
    r"\S+://\S*"  # an address
    r"|[!-~]*[\d_/@:-][!-~]*"  # an id, a path or a number, such as `ab-12`
    r"|(?=.*\b(?:19|20)\d\d\b)(?=.*\b\d\d?\b).{6,40}"  # a date, such as `3 May 2024`
    r")\s*"
)


def text_lengths(rows: Rows) -> dict[str, float]:
    """The median length of the texts in each column that has mostly texts, unless few are distinct."""
    first_rows = [*islice(rows, _MAX_ROWS)]
    lengths = {}
    for name in dict.fromkeys(chain(*first_rows)):
        values = [row.get(name) for row in first_rows]
        length = text_length(values)
        distinct = len({*map(str, values)})
        if length and _MAX_REPEATS * distinct > len(values):
            lengths[name] = length
    return lengths


def text_length(values: Iterable[object]) -> float:
    """The median length of texts; 0 if most values, or all, are addresses, ids, dates or numbers."""
    return median([*map(_text_length, islice(values, _MAX_ROWS))] or [0])


def _text_length(value: object) -> int:
    if not isinstance(value, str):
        return 0
    start = value[:_MAX_CHARS]
    letters = sum(map(str.isalpha, start))
    if 3 * letters <= len(start) or _NO_TEXT.fullmatch(start):
        return 0
    return len(value)


def likely_pair(lengths: Mapping[str, float]) -> list[str]:
    """The only two columns with long texts, if their lengths or names (`A 1`, `A 2`) are alike; else empty."""
    long = {name: length for name, length in lengths.items() if length >= MIN_LENGTH}
    stems = {name[:-1] for name in long}
    if len(long) != 2:
        return []
    if len(stems) == 1 or 2 * max(long.values()) < 3 * min(long.values()):
        return [*long]
    return []


def text_option(lengths: Mapping[str, float]) -> str:
    """`--columns` with the column of the longest texts."""
    return columns_option(text=max(lengths, key=lengths.__getitem__, default=UNKNOWN))


def columns_option(**roles: str) -> str:
    """`--columns` with a column for each role; a name that the option can't contain becomes NAME."""
    columns = []
    for role, name in roles.items():
        is_usable = {*",="}.isdisjoint(name)
        columns.append(f"{role}={one_line(name) if is_usable else UNKNOWN}")
    return f"--columns {quote(','.join(columns))}"
