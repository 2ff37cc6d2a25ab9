"""The pairs of the dataset, on disk; in memory are the numbers by which they are sorted and dealt."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gis_builder._dataset import row_order
from gis_builder._records import Pair
from gis_builder._ref_table import RefTable
from pairkit.connected import Places
from pairkit.records_on_disk import RecordsOnDisk, Scratch


class PairsOnDisk:
    """Pairs in the order in which they were added.

    Args:
        scratch: Where they go.
        refs: The issues that they may be of.
        seed: Decides the order of rows.
    """

    def __init__(self, scratch: Scratch, refs: RefTable, seed: int) -> None:
        self._refs, self._row_order = refs, row_order(seed)
        self._pairs = RecordsOnDisk(scratch, Pair)
        self._first, self._second, self._hash = array("i"), array("i"), array("Q")
        self._is_positive = bytearray()

    def __len__(self) -> int:
        return len(self._pairs)

    def extend(self, pairs: Sequence[Pair]) -> None:
        """Take further pairs in.

        Raises:
            ConfigError: The disk is full.
        """
        self._first.extend(self._refs.places(pair.first for pair in pairs).tolist())
        self._second.extend(self._refs.places(pair.second for pair in pairs).tolist())
        self._hash.extend(self._row_order(pair)[0] for pair in pairs)
        self._is_positive.extend(pair.label for pair in pairs)
        self._pairs.extend(pairs)

    @property
    def ends(self) -> tuple[Places, Places]:
        """The first and the second issue of each, as places among the references; (pair,) both."""
        return np.asarray(self._first), np.asarray(self._second)

    @property
    def positive(self) -> npt.NDArray[np.bool_]:
        """Which are positives; (pair,)."""
        return np.frombuffer(self._is_positive, np.bool_)

    def in_order(self, places: Places) -> Places:
        """The same places in the order of their issues."""
        first, second = self.ends
        return places[np.lexsort((second[places], first[places]))]

    def in_row_order(self, places: Places) -> Places:
        """The same places in the order in which the pairs become rows."""
        first, second = self.ends
        return places[np.lexsort((second[places], first[places], np.asarray(self._hash)[places]))]

    def at(self, places: Places) -> list[Pair]:
        """The pairs at some places, read in the order in which they lie and given in that of the places."""
        found = {place: self._pairs[place] for place in np.sort(places).tolist()}
        return [found[place] for place in places.tolist()]
