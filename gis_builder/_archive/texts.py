"""The texts of all issues that may stand in a pair, on disk."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gis_builder._records import IssueRef, IssueText
from gis_builder._ref_table import RefTable
from pairkit.connected import Places
from pairkit.records_on_disk import RecordsOnDisk, Scratch


class _Text(NamedTuple):
    """When an issue was opened, and what it says."""

    created_at: str
    text: str


class TextsOnDisk:
    """Texts in the order in which they were added; what rendering took out of them is not kept.

    Args:
        scratch: Where they go.
        refs: The issues that they may be of.
    """

    def __init__(self, scratch: Scratch, refs: RefTable) -> None:
        self._refs = refs
        self._texts = RecordsOnDisk(scratch, _Text)
        self._issues = array("q")
        self._place = np.full(len(refs), -1, np.int32)

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, place: int) -> str:
        return self._texts[place].text

    def extend(self, texts: Sequence[IssueText]) -> None:
        """Take further texts in.

        Raises:
            ConfigError: The disk is full.
        """
        issues = self._refs.places(text.ref for text in texts)
        self._place[issues] = np.arange(len(self), len(self) + len(issues))
        self._issues.extend(issues.tolist())
        self._texts.extend(_Text(text.created_at, text.text) for text in texts)

    @property
    def issues(self) -> Places:
        """Whose each is, as a place among the references; (text,)."""
        return np.asarray(self._issues)

    @property
    def usable(self) -> npt.NDArray[np.bool_]:
        """Which references have a text; (reference,)."""
        return self._place >= 0

    def of(self, refs: Iterable[IssueRef]) -> dict[IssueRef, IssueText]:
        """The texts of some issues, read in the order in which they lie."""
        found = {}
        for place in sorted(self._place[self._refs.places(set(refs))].tolist()):
            ref = self._refs[self._issues[place]]
            created_at, text = self._texts[place]
            found[ref] = IssueText(ref, text, created_at)
        return found
