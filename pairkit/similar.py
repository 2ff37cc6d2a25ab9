"""Texts that are nearly the same: MinHash proposes families, exact Jaccard similarity decides.

The similarity of two texts is |A and B| / |A or B| over their sets of three words in a row (lower case; a
text of fewer words is one unit). Texts whose sketches agree in a band are of one family, and so are theirs;
within a family every pair at the threshold or above is tied, exactly. A pair at 0.9 or more comes into one
family all but surely, one at 0.8 with probability 0.95. What is found is a function of the texts and the
threshold alone: no process, hash seed or order of input changes it. Of a part of the texts never more is
found than of the whole: who is of one family in the part is so in the whole.

Time and memory grow with the number of texts, also where all are made from one template; `jaccard_join`
says for which they do not.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain, combinations, islice

import numpy as np
import numpy.typing as npt
from rensa import RMinHash

from pairkit.groups import Groups
from pairkit.jaccard_join import Hashes, mixed, tied_sets

DEFAULT_THRESHOLD = 0.8
_LOG = logging.getLogger(__name__)


_WORD = re.compile(r"\w+")
_BANDS, _ROWS = 16, 8
_SEED = 20240621
_CHUNK = 2048  # texts sketched at once, which bounds the memory
_MULTIPLIERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)
_FEW = 8  # texts of a family that are compared pair by pair
_KNOWN_WORDS = 1 << 20  # whose hashes are remembered, which bounds the memory


def near_identical(texts: Sequence[str], threshold: float = DEFAULT_THRESHOLD) -> list[list[int]]:
    """Groups of two or more positions whose texts are tied, directly or through others; each ascending.

    Args:
        texts: Texts in any order; equal texts are always tied, texts without a word never.
        threshold: Jaccard similarity in (0, 1] from which two texts are tied.
    """
    shingler = _Shingler()
    groups: Groups[int] = Groups()
    distinct = _tie_equal(texts, groups)
    for family in _families(_band_hashes(texts, distinct, shingler)):
        members = [distinct[row] for row in family.tolist()]
        sets = list(shingler.sets(texts[member] for member in members))
        for one, other in _tied(sets, threshold):
            groups.join(members[one], members[other])
    tied = [members for members in groups.all().values() if len(members) > 1]
    _LOG.info("near-identical at %g: %d groups among %d texts", threshold, len(tied), len(texts))
    return tied


def similarity(one: str, other: str) -> float:
    """The exact similarity of two texts; 0 if either has no words."""
    shingler = _Shingler()
    return jaccard(shingler.shingles(one), shingler.shingles(other))


def jaccard(one: Hashes, other: Hashes) -> float:
    """Share of common elements of two sorted arrays without repeats; 0 if either is empty."""
    if not len(one) or not len(other):
        return 0.0
    common = len(np.intersect1d(one, other, assume_unique=True))
    return common / (len(one) + len(other) - common)


class _Words(dict[str, int]):
    """The hash of each word, remembered."""

    def __missing__(self, word: str) -> int:
        if len(self) > _KNOWN_WORDS:
            self.clear()
        digest = blake2b(word.encode("utf-8", "replace"), digest_size=8).digest()
        number = self[word] = int.from_bytes(digest, "little")
        return number


class _Shingler:
    """Turns texts into sets of hashed word triples."""

    def __init__(self) -> None:
        self._words = _Words()

    def shingles(self, text: str) -> Hashes:
        """The set of a text, ascending."""
        return np.unique(self.flat([text])[0])

    def sets(self, texts: Iterable[str]) -> Iterator[Hashes]:
        """The set of each text."""
        remaining = iter(texts)
        while some := list(islice(remaining, _CHUNK)):
            triples, ends = self.flat(some)
            yield from map(np.unique, np.split(triples, ends[:-1]))

    def flat(self, texts: Sequence[str]) -> tuple[Hashes, npt.NDArray[np.int64]]:
        """A hash of every three words in a row (of all, where there are fewer); and where each text ends."""
        words = [_WORD.findall(text.lower()) for text in texts]
        counts = np.fromiter(map(len, words), np.int64, len(words))
        flat = map(self._words.__getitem__, chain.from_iterable(words))
        hashes = np.fromiter(flat, np.uint64, int(counts.sum()))
        widths = np.minimum(counts, len(_MULTIPLIERS))
        found = np.where(counts > 0, counts - widths + 1, 0)
        ends = np.cumsum(found)
        first = np.arange(found.sum()) + np.repeat(np.cumsum(counts) - counts - ends + found, found)
        combined = np.zeros(len(first), np.uint64)
        for place, multiplier in enumerate(_MULTIPLIERS):
            reaches = np.repeat(widths > place, found)
            combined[reaches] += mixed(hashes + multiplier)[first[reaches] + place]
        return mixed(combined), ends


def _tie_equal(texts: Sequence[str], groups: Groups[int]) -> list[int]:
    """Tie equal texts; the positions of the first of each, without texts that have no words."""
    first: dict[bytes, int] = {}
    for position, text in enumerate(texts):
        words = " ".join(text.lower().split())
        if _WORD.search(words):
            known = first.setdefault(
                blake2b(words.encode("utf-8", "replace"), digest_size=16).digest(), position
            )
            if known != position:
                groups.join(known, position)
    return list(first.values())


def _band_hashes(texts: Sequence[str], positions: list[int], shingler: _Shingler) -> Hashes:
    """A hash of each band of each text's sketch, (text, band)."""
    found = np.empty((len(positions), _BANDS), dtype=np.uint64)
    for start in range(0, len(positions), _CHUNK):
        triples, ends = shingler.flat([texts[position] for position in positions[start : start + _CHUNK]])
        offsets = np.concatenate([[0], ends]).astype(np.uint64)
        matrix = RMinHash.digest_matrix_from_flat_token_hashes(
            triples, offsets, num_perm=_BANDS * _ROWS, seed=_SEED
        )
        sketches = np.array(matrix.to_rows(), dtype=np.uint64).reshape(len(ends), _BANDS, _ROWS)
        hashes = np.zeros((len(ends), _BANDS), dtype=np.uint64)
        for row in range(_ROWS):
            hashes = mixed(hashes + sketches[:, :, row] + _MULTIPLIERS[0])
        found[start : start + len(ends)] = hashes
    return found


def _families(hashes: Hashes) -> Iterator[npt.NDArray[np.intp]]:
    """Rows that agree in a whole band, directly or through others; two or more at a time, ascending."""
    labels = np.arange(len(hashes))
    for band in range(hashes.shape[1]):
        order = np.argsort(hashes[:, band], kind="stable")
        ordered = hashes[order, band]
        same = np.flatnonzero(ordered[1:] == ordered[:-1])
        labels = _connected(labels, order[same], order[same + 1])
    order = np.argsort(labels, kind="stable")
    changes = np.flatnonzero(np.diff(labels[order])) + 1
    return (family for family in np.split(order, changes) if len(family) > 1)


def _connected(
    labels: npt.NDArray[np.intp], one: npt.NDArray[np.intp], other: npt.NDArray[np.intp]
) -> npt.NDArray[np.intp]:
    """The least row of each row's family, where further pairs of rows belong together."""
    while True:
        low, high = np.minimum(labels[one], labels[other]), np.maximum(labels[one], labels[other])
        apart = low != high
        if not apart.any():
            return labels
        one, other = one[apart], other[apart]
        np.minimum.at(labels, high[apart], low[apart])
        while not np.array_equal(further := labels[labels], labels):
            labels = further


def _tied(sets: Sequence[Hashes], threshold: float) -> Iterator[tuple[int, int]]:
    """Pairs of places that tie all that are tied, directly or through others."""
    if len(sets) <= _FEW:
        for one, other in combinations(range(len(sets)), 2):
            if jaccard(sets[one], sets[other]) >= threshold:
                yield one, other
        return
    distinct: dict[bytes, int] = {}
    for place, elements in enumerate(sets):
        first = distinct.setdefault(blake2b(elements.tobytes(), digest_size=16).digest(), place)
        if first != place:
            yield first, place
    places = list(distinct.values())
    named: dict[int, int] = {}
    for place, group in zip(
        places, tied_sets([sets[place] for place in places], threshold).tolist(), strict=True
    ):
        first = named.setdefault(group, place)
        if first != place:
            yield first, place
