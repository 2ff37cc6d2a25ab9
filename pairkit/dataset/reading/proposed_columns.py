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
# Only pairs; pairs or single texts; rather single texts.
Meant = Literal["pairs", "rows", "texts"]
UNKNOWN = "NAME"

_ROWS = 1000
_MAX_REPEATS = 3  # rows by distinct texts; names of labels repeat more often
_CHARACTERS = 1000  # of a value that are looked at
MIN_LENGTH = 20  # of a pair's texts; names of labels are shorter
# An address; an id, path or number; a date.
_NO_TEXT = re.compile(
    r"\s*(?:\S+://\S*|[!-~]*[\d_/@:-][!-~]*|(?=.*\b(?:19|20)\d\d\b)(?=.*\b\d\d?\b).{6,40})\s*"
)


def text_lengths(rows: Rows) -> dict[str, float]:
    """The median length of the texts in each column that has mostly texts, unless few are distinct."""
    first = [*islice(rows, _ROWS)]
    lengths = {}
    for name in dict.fromkeys(chain(*first)):
        values = [row.get(name) for row in first]
        length = median(map(_text_length, values))
        if length and _MAX_REPEATS * len({*map(str, values)}) > len(values):
            lengths[name] = length
    return lengths


def _text_length(value: object) -> int:
    """The length of a text; 0 for addresses, ids, dates and numbers."""
    if not isinstance(value, str):
        return 0
    start = value[:_CHARACTERS]
    letters = sum(map(str.isalpha, start))
    is_text = 3 * letters > len(start) and not _NO_TEXT.fullmatch(start)
    return len(value) * is_text


def likely_pair(lengths: Mapping[str, float]) -> list[str]:
    """The only two columns with long texts, if their lengths are similar; else empty."""
    long = {name: length for name, length in lengths.items() if length >= MIN_LENGTH}
    is_pair = len(long) == 2 and 3 * min(long.values()) > 2 * max(long.values())
    return [*long] if is_pair else []


def text_option(lengths: Mapping[str, float]) -> str:
    """`--columns` with the column of the longest texts."""
    return columns_option(text=max(lengths, key=lengths.__getitem__, default=UNKNOWN))


def columns_option(**roles: str) -> str:
    """`--columns` with a column for each role; a name that the option can't contain becomes NAME."""
    usable = (
        f"{role}={UNKNOWN if {*name} & {*',='} else one_line(name)}"
        for role, name in roles.items()
    )
    return "--columns " + quote(",".join(usable))
