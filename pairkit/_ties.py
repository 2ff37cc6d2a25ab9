"""Which texts of a dataset must not be parted: near-identical ones, one issue's, one cluster's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from pairkit.groups import Groups
from pairkit.provenance import typed_rows
from pairkit.similar import near_identical

_PAGES = (("url1", "text1"), ("url2", "text2"))  # an issue's page, and the text that is of it
_CLUSTERS = (("cluster", "text1"), ("cluster", "text2"))


@dataclass(frozen=True, slots=True)
class Ties:
    """The texts of some rows, as numbers.

    Attributes:
        texts: Each different text, ascending.
        groups: Places in `texts` that must not be parted.
        one: The place of each row's first text.
        other: The place of its second.
    """

    texts: list[str]
    groups: Groups[int]
    one: list[int]
    other: list[int]

    def units(self, row: int) -> tuple[int, int]:
        """The groups that the two texts of a row are of; each is named after its first text."""
        return self.groups.find(self.one[row]), self.groups.find(self.other[row])


def tie(rows: pl.DataFrame, threshold: float) -> Ties:
    """Tie the texts of rows: near-identical ones, those of one page, and both texts of a cluster's pairs.

    Args:
        rows: text1, text2, and perhaps url1, url2 and cluster.
        threshold: Jaccard similarity of word triples from which texts are near-identical.
    """
    rows = typed_rows(rows)  # anybody's dataset may have such columns
    texts = pl.concat([rows["text1"], rows["text2"].alias("text1")]).unique().sort().to_list()
    place = {text: number for number, text in enumerate(texts)}
    groups = Groups(range(len(texts)))
    for members in near_identical(texts, threshold):
        for other in members[1:]:
            groups.join(members[0], other)
    sides = {name: [place[text] for text in rows[name].to_list()] for name in ("text1", "text2")}
    for columns in (_PAGES, _CLUSTERS):
        _tie_by(groups, [(rows[key].to_list(), sides[text]) for key, text in columns if key in rows.columns])
    return Ties(texts, groups, sides["text1"], sides["text2"])


def _tie_by(groups: Groups[int], columns: Iterable[tuple[list[str | None], list[int]]]) -> None:
    """Tie places that have a key in common."""
    first: dict[str, int] = {}
    for keys, places in columns:
        for key, place in zip(keys, places, strict=True):
            if key:
                groups.join(first.setdefault(key, place), place)
