"""Propose `--columns` from the first rows of a table, for messages about columns that aren't recognised."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import chain, combinations, islice
from shlex import quote
from statistics import median
from typing import Literal

from pairkit.base.printable import one_line

Rows = Iterable[Mapping[str, object]]
Meant = Literal["pairs", "rows", "texts"]  # only pairs; pairs or single texts; rather single texts
UNKNOWN = "NAME"

_ROWS = 1000
_CHARACTERS = 1000  # of a value that are looked at
MIN_LENGTH = 20  # of a pair's texts; names of labels are shorter
# An address; an id, path or number; a date.
_NO_TEXT = re.compile(
    r"\s*(?:\S+://\S*|[!-~]*[\d_/@:-][!-~]*|(?=.*\b(?:19|20)\d\d\b)(?=.*\b\d\d?\b).{6,40})\s*"
)


def text_lengths(rows: Rows) -> dict[str, float]:
    """The median length of the texts in each column that has mostly texts."""
    first = [*islice(rows, _ROWS)]
    names = dict.fromkeys(chain(*first))
    lengths = {name: median(_text_length(row.get(name)) for row in first) for name in names}
    return {name: length for name, length in lengths.items() if length}


def _text_length(value: object) -> int:
    """The length of a text; 0 for addresses, ids, dates and numbers."""
    if not isinstance(value, str):
        return 0
    start = value[:_CHARACTERS]
    letters = sum(map(str.isalpha, start))
    is_text = 3 * letters > len(start) and not _NO_TEXT.fullmatch(start)
    return len(value) * is_text


def likely_pair(lengths: Mapping[str, float]) -> list[str]:
    """Two columns with texts of a kind; else empty."""
    for one, other in combinations(lengths, 2):
        differing = sum(a != b for a, b in zip(one, other, strict=False))
        if differing == 1 and len(one) == len(other) > 1:  # such as `Satz A` and `Satz B`
            return [one, other]
    shortest, longest = min(lengths.values(), default=0), max(lengths.values(), default=0)
    is_pair = len(lengths) == 2 and shortest >= MIN_LENGTH and 3 * shortest > 2 * longest
    return [*lengths] if is_pair else []


def text_option(lengths: Mapping[str, float]) -> str:
    """`--columns` with the column of the longest texts."""
    return columns_option({"text": max(lengths, key=lengths.__getitem__, default=UNKNOWN)})


def columns_option(roles: Mapping[str, str]) -> str:
    """`--columns` with a column for each role; a name that the option can't contain becomes NAME."""
    usable = {role: UNKNOWN if re.search("[,=]", name) else one_line(name) for role, name in roles.items()}
    return "--columns " + quote(",".join(map("=".join, usable.items())))
