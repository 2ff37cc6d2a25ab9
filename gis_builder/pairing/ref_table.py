"""Issue references in 8 bytes each, for datasets with too many issues for Python objects."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from gis_builder.store.issue_records import IssueRef
from pairkit.similarity.groups import Places, alone, connected

_BITS = 24  # of an issue's number; `decoding.MAX_NUMBER` fits
_NUMBER = (1 << _BITS) - 1


class RefTable:
    """Distinct references in ascending order, identified by their index."""

    def __init__(self, refs: Iterable[IssueRef]) -> None:
        codes: dict[str, int] = {}
        keys = array("q", (codes.setdefault(ref.repo, len(codes)) << _BITS | ref.number for ref in refs))
        self.repos = sorted(codes)  # in ascending order
        self._rank = {repo: rank for rank, repo in enumerate(self.repos)}
        ranks = np.array([self._rank[repo] for repo in codes], np.int64)
        by_code = np.asarray(keys)
        self._keys = np.unique(ranks[by_code >> _BITS] << _BITS | by_code & _NUMBER)

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, index: int) -> IssueRef:
        key = int(self._keys[index])
        return IssueRef(self.repos[key >> _BITS], key & _NUMBER)

    def at(self, indices: Places) -> Iterator[IssueRef]:
        """The references at these indices."""
        for key in self._keys[indices].tolist():
            yield IssueRef(self.repos[key >> _BITS], key & _NUMBER)

    def indices(self, refs: Iterable[IssueRef]) -> Places:
        """The indices of references that are in the table; (reference,)."""
        rank = self._rank
        keys = np.fromiter((rank[repo] << _BITS | number for repo, number in refs), np.int64)
        return np.searchsorted(self._keys, keys)

    def repo_at(self, indices: Places) -> npt.NDArray[np.int64]:
        """The index in `repos` of the repository of each reference; (reference,)."""
        return self._keys[indices] >> _BITS

    def of_repo(self, repo: str) -> Places:
        """The indices of a repository's references, ascending."""
        rank = self._rank.get(repo)
        if rank is None:
            return np.empty(0, np.int64)
        low, high = np.searchsorted(self._keys, [rank << _BITS, (rank + 1) << _BITS])
        return np.arange(low, high)


class SameSplit:
    """Groups of references that must be in the same split."""

    def __init__(self, refs: RefTable) -> None:
        self._refs = refs
        self._first, self._second = array("i"), array("i")

    def add(self, members: Iterable[IssueRef]) -> None:
        """Add references that must stay together."""
        indices = self._refs.indices(members).tolist()
        self._first.extend(indices[:1] * (len(indices) - 1))
        self._second.extend(indices[1:])

    def groups(self) -> Places:
        """For each reference, the lowest index in its group; (reference,)."""
        return connected(alone(len(self._refs)), np.asarray(self._first), np.asarray(self._second))
