"""Near-duplicates: MinHash finds candidate families, exact Jaccard similarity decides.

The similarity of two texts is the Jaccard similarity of their sets of triples of terms
(words, or character bigrams; a shorter text is one unit). Texts whose MinHash sketches
agree in a band are in one family, also indirectly. Within a family, all pairs at or
above the threshold are joined. Lower thresholds have shorter bands, so that a pair at
the threshold is in one family with probability 0.94 or more; at a threshold of 0.8, a
pair of similarity 0.9 almost surely is. The result depends only on the texts and the
threshold, not on process, hash seed or order. A subset of the texts never has groups
that the whole doesn't have. Texts without words, such as "!!!", are in no group.

Time and memory are linear in the number of texts, also for texts from one template;
`jaccard_join` describes the exceptions. Each text takes about 50 bytes of memory, plus
the memory for the largest family.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import lru_cache
from hashlib import blake2b
from itertools import chain, combinations
from pathlib import Path
from tempfile import SpooledTemporaryFile, gettempdir
from typing import Protocol

import numpy as np
import numpy.typing as npt
from rensa import RMinHash

from pairkit.base.system.files import write_errors
from pairkit.base.system.machine import batched
from pairkit.similarity.groups import (
    Indices,
    NumberedGroups,
    connected,
    shared,
    singletons,
)
from pairkit.similarity.jaccard_join import Hashes, mixed, tied_sets
from pairkit.similarity.terms import terms

DEFAULT_THRESHOLD = 0.8

_CHUNK = 2048  # texts per batch, which bounds the memory
_WORD = re.compile(r"\w")
# A different one for each word of a triple, so that their order counts.
_MULTIPLIERS = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64
)
_SKETCH = 128  # values of a text's MinHash sketch
_MAX_ROWS = 8  # of a band
_MIN_RECALL = 0.94  # of pairs at the threshold
_SEED = 20240621
# Bytes of all bands' hashes in memory, before they are written to disk.
_IN_MEMORY = 64 << 20
_SMALL_FAMILY = 8  # families up to this size are compared pair by pair
_NO_WORDS = bytes(16)


class TextSequence(Protocol):
    """A sequence of texts, which may read each text from disk."""

    def __len__(self) -> int:
        """The number of texts."""

    def __getitem__(self, index: int, /) -> str:
        """One text."""


def near_identical(
    texts: TextSequence, threshold: float = DEFAULT_THRESHOLD
) -> list[list[int]]:
    """Sorted groups of two or more indices of near-identical or connected texts."""
    groups = near_identical_to(texts, threshold)
    return [members.tolist() for members in shared(groups)]


def without_near_duplicates(texts: Sequence[str]) -> list[str]:
    """The first text of each group of near-identical ones, in their order."""
    return [texts[index] for index in np.unique(near_identical_to(texts)).tolist()]


def near_identical_to(
    texts: TextSequence, threshold: float = DEFAULT_THRESHOLD
) -> Indices:
    """The smallest index in each text's group, its own if it has none; (text,)."""
    first, has_words = _first_equal(texts)
    ties = array("q")  # two members for each
    distinct = np.flatnonzero(has_words & (first == singletons(len(first))))
    for family in _families(texts, distinct, threshold):
        members = family.tolist()
        sets = list(shingle_sets(texts[member] for member in members))
        for one, other in _similar_sets(sets, threshold):
            ties.extend((members[one], members[other]))
    low, high = np.reshape(ties, (-1, 2)).T
    return connected(first, low, high)


def _first_equal(texts: TextSequence) -> tuple[Indices, npt.NDArray[np.bool_]]:
    """The index of the first equal text, and whether a text has words; both (text,)."""
    hashes = bytearray()
    for index in range(len(texts)):
        hashes += _text_hash(texts[index])
    digests = np.frombuffer(hashes, "S16")
    _, first, group = np.unique(digests, return_index=True, return_inverse=True)
    has_words = digests != b""
    return np.where(has_words, first[group], singletons(len(texts))), has_words


def _text_hash(text: str) -> bytes:
    """A 128-bit hash of a text without case and repeated blanks; zeros if wordless."""
    plain = " ".join(text.lower().split())
    if not _WORD.search(plain):
        return _NO_WORDS
    return blake2b(plain.encode("utf-8", "replace"), digest_size=16).digest()


def _families(
    texts: TextSequence, rows: Indices, threshold: float
) -> Iterator[Indices]:
    """Sorted groups of texts that share a band, directly or through others."""
    band_rows = _rows_of_band(threshold)
    bands = _SKETCH // band_rows
    with write_errors(Path(gettempdir())), ExitStack() as opened:
        files = [
            opened.enter_context(SpooledTemporaryFile(_IN_MEMORY // bands))
            for _ in range(bands)
        ]
        for batch in batched((texts[row] for row in map(int, rows)), _CHUNK):
            for file, hashes in zip(files, _band_hashes(batch, band_rows), strict=True):
                file.write(hashes.tobytes())
        groups = NumberedGroups(singletons(len(rows)))
        for file in files:
            file.seek(0)
            hashes = np.frombuffer(file.read(), np.uint64)
            groups.join(*_equal_neighbours(hashes))
    for family in shared(groups.names()):
        yield rows[family]


def _rows_of_band(threshold: float) -> int:
    """The most sketch values per band that find most pairs at the threshold."""
    for rows in range(_MAX_ROWS, 1, -1):
        missed = (1 - threshold**rows) ** (_SKETCH // rows)
        if 1 - missed >= _MIN_RECALL:
            return rows
    return 1


def _band_hashes(texts: Sequence[str], rows: int) -> Hashes:
    """Hashes of the bands of each text's sketch, with `rows` values each."""
    bands = _SKETCH // rows
    triples, ends = _shingles(texts)
    offsets = np.concatenate([[0], ends]).astype(np.uint64)
    matrix = RMinHash.digest_matrix_from_flat_token_hashes(
        triples, offsets, num_perm=bands * rows, seed=_SEED
    )
    values = np.array(matrix.to_rows(), np.uint64)
    sketches = values.reshape(len(ends), bands, rows)
    hashes = np.zeros((bands, len(ends)), np.uint64)
    for row_of_bands in sketches.T:
        hashes = mixed(hashes + row_of_bands + _MULTIPLIERS[0])
    return hashes


def _equal_neighbours(hashes: Hashes) -> tuple[Indices, Indices]:
    """Pairs of indices that connect all equal hashes."""
    order = np.argsort(hashes)
    ordered = hashes[order]
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    return order[same], order[same + 1]


def shingle_sets(texts: Iterable[str]) -> Iterator[Hashes]:
    """The set of hashed word triples of each text."""
    for batch in batched(texts, _CHUNK):
        triples, ends = _shingles(batch)
        for triples_of_text in np.split(triples, ends[:-1]):
            yield np.unique(triples_of_text)


def _shingles(texts: Sequence[str]) -> tuple[Hashes, npt.NDArray[np.int64]]:
    """Hashes of all word triples (of all words if fewer), and the end of each text."""
    words = [*map(terms, texts)]
    word_counts = np.array([*map(len, words)], np.int64)
    hashes = np.fromiter(map(_word_hash, chain.from_iterable(words)), np.uint64)

    owners = np.repeat(np.arange(len(words)), word_counts)
    # The number of words from each word to the end of its text.
    remaining = np.cumsum(word_counts)[owners] - np.arange(len(hashes))
    widths = np.minimum(word_counts, len(_MULTIPLIERS))[owners]
    first_words = np.flatnonzero(remaining >= widths)

    triples = np.zeros_like(first_words, np.uint64)
    for index, multiplier in enumerate(_MULTIPLIERS):
        has_word = widths[first_words] > index
        word = first_words[has_word] + index
        triples[has_word] += mixed(hashes + multiplier)[word]
    counts = np.bincount(owners[first_words], minlength=len(words))
    return mixed(triples), np.cumsum(counts)


@lru_cache(1 << 16)
def _word_hash(word: str) -> int:
    digest = blake2b(word.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _similar_sets(
    sets: Sequence[Hashes], threshold: float
) -> Iterator[tuple[int, int]]:
    """Pairs of indices that connect all sets at or above the threshold."""
    if len(sets) > _SMALL_FAMILY:
        yield from _tied(sets, threshold)
        return
    for (low, set1), (high, set2) in combinations(enumerate(sets), 2):
        if jaccard(set1, set2) >= threshold:
            yield low, high


def _tied(sets: Sequence[Hashes], threshold: float) -> Iterator[tuple[int, int]]:
    """The same for many sets: equal ones by their hashes, the others by `tied_sets`."""
    first_of: dict[bytes, int] = {}
    for index, elements in enumerate(sets):
        digest = blake2b(elements.tobytes(), digest_size=16).digest()
        first = first_of.setdefault(digest, index)
        if first != index:
            yield first, index
    distinct = list(first_of.values())
    groups = tied_sets([sets[index] for index in distinct], threshold)
    for index, group in zip(distinct, groups, strict=True):
        yield distinct[group], index  # the first of a group with itself


def jaccard(set1: Hashes, set2: Hashes) -> float:
    """The Jaccard similarity of two arrays without repeats; 0 if one is empty."""
    common = len(np.intersect1d(set1, set2, assume_unique=True))
    return common / (len(set1) + len(set2) - common) if common else 0.0
