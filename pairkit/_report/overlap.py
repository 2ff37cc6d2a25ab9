"""How many word n-grams the two texts of a pair share (the papers' Fig. 8)."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from pairkit.progress import Listener, Progress

ORDERS = (1, 2, 3)
SAYS = (
    "An n-gram is n neighbouring words of a text; a word is a run of letters, digits and underscores, in "
    "lower case. The overlap of a pair is the number of different n-grams that stand in both texts, in per "
    "cent of the different n-grams that stand in either (Jaccard). A pair of which neither text has n words "
    "has no overlap and is left out."
)
_TOLD = 200  # pairs between two words on progress
_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    """The words of a text in lower case, in their order."""
    return _WORD.findall(text.lower())


def ngrams(of: Sequence[str], order: int) -> set[tuple[str, ...]]:
    """The different n-grams of a sequence of words."""
    return set(zip(*(of[start:] for start in range(order)), strict=False))


def overlap(one: Sequence[str], other: Sequence[str], order: int) -> float | None:
    """Shared among all n-grams of two sequences of words, in [0, 100]; None where there are none."""
    first, second = ngrams(one, order), ngrams(other, order)
    shared = len(first & second)
    either = len(first) + len(second) - shared
    return 100 * shared / either if either else None


def add_overlaps(frame: pl.DataFrame, tell: Listener) -> pl.DataFrame:
    """`frame` with overlap1, overlap2 and overlap3, in per cent; null where a pair has none."""
    rows: list[list[float | None]] = []
    pairs = frame.select("text1", "text2").iter_rows()
    for one, other in pairs:
        if len(rows) % _TOLD == 0:
            tell(Progress("comparing words", len(rows), frame.height))
        both = words(one), words(other)
        rows.append([overlap(*both, order) for order in ORDERS])
    schema = {f"overlap{order}": pl.Float64 for order in ORDERS}
    return frame.hstack(pl.DataFrame(rows, schema=schema, orient="row"))
