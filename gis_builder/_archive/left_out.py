"""What was left out and why: issues and pairs, in 13 bytes each."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import polars as pl

from gis_builder._dataset import DROPPED_SCHEMA, Reasons
from gis_builder._records import DroppedPair, IssueRef
from gis_builder._ref_table import RefTable
from pairkit.connected import Places

_ISSUE = -1  # the label, where an issue was left out


class LeftOut:
    """Issues and pairs that were left out.

    Args:
        refs: The issues that they may be of.
    """

    def __init__(self, refs: RefTable) -> None:
        self._refs = refs
        self._codes: dict[str, int] = {}
        self._reason, self._label = array("i"), array("b")
        self._first, self._second = array("i"), array("i")

    def add_issues(self, rejected: Iterable[tuple[IssueRef, str]]) -> None:
        """Take in issues with their reasons."""
        self.add_pairs(DroppedPair(ref, ref, _ISSUE, reason) for ref, reason in rejected)

    def add_pairs(self, dropped: Iterable[DroppedPair]) -> None:
        """Take in pairs."""
        dropped = list(dropped)
        self._add(
            self._refs.places(drop.first for drop in dropped),
            self._refs.places(drop.second for drop in dropped),
            [drop.label for drop in dropped],
            [drop.reason for drop in dropped],
        )

    def add_positives(self, first: Places, second: Places, reason: str) -> None:
        """Take in positives of one reason, by the places of their issues."""
        self._add(first, second, [1] * len(first), [reason] * len(first))

    def _add(self, first: Places, second: Places, labels: Iterable[int], reasons: Iterable[str]) -> None:
        codes = self._codes
        self._first.extend(first.tolist())
        self._second.extend(second.tolist())
        self._label.extend(labels)
        self._reason.extend(codes.setdefault(reason, len(codes)) for reason in reasons)

    def reasons(self) -> Reasons:
        """How many there are of each label and reason."""
        names = list(self._codes)
        counts = Counter(zip(self._label, self._reason, strict=True))
        return Counter(
            {(None if label == _ISSUE else label, names[code]): n for (label, code), n in counts.items()}
        )

    def table(self) -> pl.DataFrame:
        """A row for each, issues before pairs, in the order of their references."""
        label, first, second = map(np.asarray, (self._label, self._first, self._second))
        names = sorted(self._codes)
        rank = np.array([names.index(name) for name in self._codes], np.int32)
        reason = rank[np.asarray(self._reason)]
        order = np.lexsort((reason, label, second, first, label != _ISSUE))
        is_pair = pl.Series(label[order] != _ISSUE)
        return pl.DataFrame(
            {
                "reason": pl.Series(names, dtype=pl.String).gather(reason[order]),
                "label": pl.Series(label[order].astype(np.int64)),
                "issue1": self._written(first[order]),
                "issue2": self._written(second[order]),
            }
        ).select(
            "reason",
            pl.when(is_pair).then("label").alias("label"),
            "issue1",
            pl.when(is_pair).then("issue2").alias("issue2"),
        ).cast(DROPPED_SCHEMA)  # fmt: skip

    def _written(self, places: npt.NDArray[np.int32]) -> pl.Series:
        repos = pl.Series("repo", self._refs.repos, dtype=pl.String).gather(self._refs.repo_at(places))
        numbers = pl.Series("number", self._refs.numbers_at(places))
        return pl.select(pl.concat_str(repos, pl.lit("#"), numbers.cast(pl.String))).to_series()
