"""References in 8 bytes each, where there are too many for objects."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from gis_builder.store.records import IssueRef
from pairkit.similarity.groups import Places, alone, connected

_BITS = 24  # of an issue's number: the highest that is taken, `decoding.MAX_NUMBER`, has 24
_NUMBER = (1 << _BITS) - 1


class RefTable:
    """References in ascending order, each once; one is known by its place."""

    def __init__(self, refs: Iterable[IssueRef]) -> None:
        codes: dict[str, int] = {}
        keys = array("q", (codes.setdefault(ref.repo, len(codes)) << _BITS | ref.number for ref in refs))
        self._repos = sorted(codes)
        self._rank = {repo: rank for rank, repo in enumerate(self._repos)}
        ranks = np.array([self._rank[repo] for repo in codes], np.int64)
        found = np.asarray(keys)
        self._keys = np.unique(ranks[found >> _BITS] << _BITS | found & _NUMBER)

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, place: int) -> IssueRef:
        key = int(self._keys[place])
        return IssueRef(self._repos[key >> _BITS], key & _NUMBER)

    def at(self, places: Places) -> Iterator[IssueRef]:
        """The references at some places, one after the other."""
        for key in self._keys[places].tolist():
            yield IssueRef(self._repos[key >> _BITS], key & _NUMBER)

    def places(self, refs: Iterable[IssueRef]) -> Places:
        """Where references stand that are in the table; (reference,)."""
        rank = self._rank
        keys = np.fromiter((rank[repo] << _BITS | number for repo, number in refs), np.int64)
        return np.searchsorted(self._keys, keys)

    @property
    def repos(self) -> Sequence[str]:
        """The repositories, in ascending order."""
        return self._repos

    def repo_at(self, places: Places) -> npt.NDArray[np.int64]:
        """The place of each one's repository among `repos`; (place,)."""
        return self._keys[places] >> _BITS

    def of_repo(self, repo: str) -> Places:
        """The places of all references to a repository, ascending."""
        rank = self._rank.get(repo)
        if rank is None:
            return np.empty(0, np.int64)
        low, high = np.searchsorted(self._keys, [rank << _BITS, (rank + 1) << _BITS])
        return np.arange(low, high)


class Together:
    """References that must not be parted."""

    def __init__(self, refs: RefTable) -> None:
        self._refs = refs
        self._one, self._other = array("i"), array("i")

    def add(self, members: Iterable[IssueRef]) -> None:
        """Take in some of which none may be parted from the others."""
        places = self._refs.places(members).tolist()
        self._one.extend(places[:1] * (len(places) - 1))
        self._other.extend(places[1:])

    def groups(self) -> Places:
        """The least reference of each one's group, by place; (reference,)."""
        return connected(alone(len(self._refs)), np.asarray(self._one), np.asarray(self._other))
