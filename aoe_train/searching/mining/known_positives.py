"""Which texts can't be negatives of which, by what the dataset says and by their words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from pairkit.similarity.groups import Groups
from pairkit.similarity.near_duplicates import near_identical_to

Places = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]


class KnownPositives:
    """Texts in units of equal and near-identical ones, and units in families of those that belong together.

    A family is what positives and clusters tie, also through others.
    """

    def __init__(
        self,
        texts: Sequence[str],
        positives: Iterable[tuple[int, int]],
        ties: Iterable[tuple[int, int]] = (),
        *,
        threshold: float,
        transitive: bool = True,
    ) -> None:
        """Group the texts."""
        self.unit = near_identical_to(texts, threshold).astype(np.int64)
        families: Groups[int] = Groups()
        partners: defaultdict[int, set[int]] = defaultdict(set)
        for one, other in positives:
            first, second = int(self.unit[one]), int(self.unit[other])
            families.join(first, second)
            partners[first].add(second)
            partners[second].add(first)
        for one, other in ties:
            families.join(int(self.unit[one]), int(self.unit[other]))
        self.family = np.fromiter((families.find(unit) for unit in self.unit.tolist()), np.int64, len(texts))
        self._unit_sizes = np.bincount(self.unit, minlength=len(texts))
        self._family_sizes = np.bincount(self.family, minlength=len(texts))
        self._partners, self._transitive = partners, transitive

    def excluded(self, text: int, others: Places) -> Marks:
        """Which of the others are no negatives of a text: it, those like it, and its positives."""
        return (
            self.belong_together(text, others) if self._transitive else self._among(self._ties(text), others)
        )

    def most_excluded(self, text: int) -> int:
        """How many texts there are, at most, that `excluded` would tell."""
        if self._transitive:
            return int(self._family_sizes[self.family[text]])
        return int(self._unit_sizes[self._ties(text)].sum())

    def seen_by_row(self, anchor: int, positive: int, others: Places) -> Marks:
        """What `excluded` would tell of the anchor if a row's two texts were all that is known."""
        return self._among([int(self.unit[anchor]), int(self.unit[positive])], others)

    def belong_together(self, text: int, others: Places) -> Marks:
        """Which of the others are of the text's family, so that as negatives they would be false."""
        return np.asarray(self.family[others] == self.family[text])

    def has_further(self, anchor: int, positive: int) -> bool:
        """Whether the family has other texts than those like the two."""
        own = {int(self.unit[anchor]), int(self.unit[positive])}
        return int(self._family_sizes[self.family[anchor]]) > int(self._unit_sizes[list(own)].sum())

    def _ties(self, text: int) -> list[int]:
        unit = int(self.unit[text])
        return [unit, *(self._partners.get(unit, set()) - {unit})]

    def _among(self, units: list[int], others: Places) -> Marks:
        return np.asarray(np.isin(self.unit[others], units))
