"""Texts that are nearly the same: MinHash proposes pairs, exact Jaccard similarity of word triples decides.

The similarity of two texts is |A and B| / |A or B| over their sets of three words in a row (lower case; a
text of fewer words is one unit). A pair at 0.9 or more is found all but surely, one at 0.8 with probability
0.95. What is found is a function of the texts and the threshold alone: no process, hash seed or order of
input changes it, and of a part of the texts never more is found than of the whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from rensa import RMinHash

from pairkit.groups import Groups

DEFAULT_THRESHOLD = 0.8

Hashes = npt.NDArray[np.uint64]
Sketches = npt.NDArray[np.uint32]

_WORD = re.compile(r"\w+")
_BANDS, _ROWS = 16, 8
_SEED = 20240621
_CHUNK = 2048  # texts sketched at once, which bounds the memory
_MULTIPLIERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)
_ESTIMATE_SLACK = 0.15  # over three standard deviations of an estimate from 128 hashes


def near_identical(texts: Sequence[str], threshold: float = DEFAULT_THRESHOLD) -> list[list[int]]:
    """Groups of two or more positions whose texts are tied, directly or through others; each ascending.

    Args:
        texts: Texts in any order; equal texts are always tied, texts without a word never.
        threshold: Jaccard similarity in (0, 1] from which two texts are tied.
    """
    shingler = _Shingler()
    groups: Groups[int] = Groups()
    distinct = _tie_equal(texts, groups)
    sketches = _sketches(texts, distinct, shingler)
    sets: dict[int, Hashes] = {}
    for bucket in _buckets(sketches):
        members = [distinct[row] for row in bucket]
        if len({groups.find(member) for member in members}) == 1:
            continue
        for one, other in _plausible(sketches[bucket], threshold - _ESTIMATE_SLACK):
            i, j = members[one], members[other]
            if groups.together(i, j):
                continue
            for k in (i, j):
                if k not in sets:
                    sets[k] = shingler.shingles(texts[k])
            if jaccard(sets[i], sets[j]) >= threshold:
                groups.join(i, j)
    return [members for members in groups.all().values() if len(members) > 1]


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


class _Shingler:
    """Turns texts into sets of hashed word triples; remembers the hash of each word."""

    def __init__(self) -> None:
        self._words: dict[str, int] = {}

    def shingles(self, text: str) -> Hashes:
        known = self._words
        words = _WORD.findall(text.lower())
        for word in words:
            if word not in known:
                digest = blake2b(word.encode("utf-8", "replace"), digest_size=8).digest()
                known[word] = int.from_bytes(digest, "little")
        hashes = np.fromiter((known[word] for word in words), dtype=np.uint64, count=len(words))
        return np.unique(_triples(hashes))


def _triples(hashes: Hashes) -> Hashes:
    """A hash of every three in a row; of all there are where there are fewer."""
    width = min(3, len(hashes))
    if not width:
        return hashes
    count = len(hashes) - width + 1
    combined = np.zeros(count, dtype=np.uint64)
    for place in range(width):
        combined += _mixed(hashes[place : place + count] + _MULTIPLIERS[place])
    return _mixed(combined)


def _mixed(values: Hashes) -> Hashes:
    """The finaliser of SplitMix64: near values come out far apart."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


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


def _sketches(texts: Sequence[str], positions: list[int], shingler: _Shingler) -> Sketches:
    blocks = [np.empty((0, _BANDS * _ROWS), dtype=np.uint32)]
    for start in range(0, len(positions), _CHUNK):
        sets = [shingler.shingles(texts[position]) for position in positions[start : start + _CHUNK]]
        offsets = np.zeros(len(sets) + 1, dtype=np.uint64)
        np.cumsum([len(s) for s in sets], out=offsets[1:])
        matrix = RMinHash.digest_matrix_from_flat_token_hashes(
            np.concatenate(sets), offsets, num_perm=_BANDS * _ROWS, seed=_SEED
        )
        blocks.append(np.array(matrix.to_rows(), dtype=np.uint32))
    return np.concatenate(blocks)


def _buckets(sketches: Sketches) -> Iterator[npt.NDArray[np.intp]]:
    """Rows that agree in a whole band, two or more at a time, ascending."""
    for band in range(_BANDS):
        rows = np.ascontiguousarray(sketches[:, band * _ROWS : (band + 1) * _ROWS])
        keys = rows.view(np.dtype((np.void, rows.itemsize * _ROWS))).ravel()
        order = np.argsort(keys, kind="stable")
        changes = np.flatnonzero(keys[order][1:] != keys[order][:-1]) + 1
        for start, end in pairwise([0, *changes.tolist(), len(order)]):
            if end - start > 1:
                yield order[start:end]  # a stable sort keeps rows ascending


def _plausible(bucket: Sketches, least: float) -> Iterator[tuple[int, int]]:
    """Pairs of places in a bucket whose sketches make a similarity of `least` plausible."""
    for place in range(len(bucket) - 1):
        estimates = (bucket[place + 1 :] == bucket[place]).mean(axis=1)
        for other in np.flatnonzero(estimates >= least):
            yield place, place + 1 + int(other)
