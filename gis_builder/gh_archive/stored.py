"""Lists of texts and pairs on disk, with only some numbers of each in memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from gis_builder.pairing.pair_folder import row_order
from gis_builder.pairing.ref_table import RefTable
from gis_builder.store.issue_records import IssuePair, IssueRef, IssueText
from pairkit.base.system.records_on_disk import RecordsOnDisk, Scratch
from pairkit.similarity.groups import Places

_PAIRS = {"first": pl.Int32, "second": pl.Int32, "hash": pl.UInt64, "label": pl.Int8}


class IssueTextsOnDisk:
    """The texts of all issues that may be in a pair, as a sequence of strings."""

    def __init__(self, scratch: Scratch, refs: RefTable) -> None:
        self._refs, self._texts = refs, RecordsOnDisk(scratch, IssueText)
        self._issues = array("q")
        self._place = np.full(len(refs), -1, np.int32)

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, index: int) -> str:
        return self._texts[index].text

    def extend(self, texts: Sequence[IssueText]) -> None:
        """Add texts."""
        issues = self._refs.indices(text.ref for text in texts)
        self._place[issues] = np.arange(len(self), len(self) + len(issues))
        self._issues.extend(issues.tolist())
        self._texts.extend(texts)

    @property
    def issues(self) -> Places:
        """The index of each text's issue among the references; (text,)."""
        return np.asarray(self._issues)

    @property
    def usable(self) -> npt.NDArray[np.bool_]:
        """Whether each reference has a text; (reference,)."""
        return self._place >= 0

    def of(self, refs: Iterable[IssueRef]) -> dict[IssueRef, IssueText]:
        """Read the texts of these issues."""
        texts = (self._texts[place] for place in np.sort(self._place[self._refs.indices(set(refs))]).tolist())
        return {text.ref: text for text in texts}


class PairsOnDisk:
    """The pairs of the dataset, and a table of their issues (indices of references) and their order."""

    def __init__(self, scratch: Scratch, refs: RefTable, seed: int) -> None:
        self._refs, self._row_order = refs, row_order(seed)
        self._pairs = RecordsOnDisk(scratch, IssuePair)
        self._frames = [pl.DataFrame(schema=_PAIRS)]

    def __len__(self) -> int:
        return len(self._pairs)

    def extend(self, pairs: Sequence[IssuePair]) -> None:
        """Add pairs."""
        columns = {
            "first": self._refs.indices(pair.first for pair in pairs),
            "second": self._refs.indices(pair.second for pair in pairs),
            "hash": [self._row_order(pair)[0] for pair in pairs],
            "label": [pair.label for pair in pairs],
        }
        self._frames.append(pl.DataFrame(columns, schema=_PAIRS))
        self._pairs.extend(pairs)

    @property
    def table(self) -> pl.DataFrame:
        """The columns place (index), first, second, hash and label of each pair."""
        self._frames = [pl.concat(self._frames)]
        return self._frames[0].with_row_index("place")

    def at(self, places: Iterable[int]) -> list[IssuePair]:
        """Read pairs by index."""
        indices = list(places)
        pairs = {index: self._pairs[index] for index in sorted(indices)}  # in the order of the file
        return [pairs[index] for index in indices]
