"""Which texts are equal, by their digests, however many there are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from aoe_train._grown_arrays import Grown, Layout
from pairkit.files import write_errors

_SHARE = 1 << 19  # digests that are sorted at a time; each takes some 60 bytes then
_BLOCK = 1 << 20  # digests of a round over all of them


def number_texts(digests: np.ndarray, path: Path) -> int:
    """Number texts in the order in which they come first; equal texts have equal numbers.

    Args:
        digests: uint64 (text, 2): their digests, mapped from disk.
        path: Where the numbers are put, int64 (text,) as .npy.

    Returns:
        How many different texts there are.

    Raises:
        ConfigError: The numbers can't be written.
    """
    count = len(digests)
    with Grown(path.parent, path.stem, {path.stem: Layout(np.int64)}) as grown:
        for start, end in _blocks(count):  # so that a full disk shows now, and not in a mapped page
            grown.add(path.stem, np.zeros(end - start, np.int64))
        grown.keep()
    with write_errors(path):
        numbers = np.load(path, mmap_mode="r+") if count else np.empty(0, np.int64)
        for share in _shares(digests):
            numbers[share] = _first_of_equals(digests, share)
        return _numbered(numbers)


def _shares(digests: np.ndarray) -> Iterator[np.ndarray]:
    """Places of the digests that begin alike: equal ones are in one share, in their order."""
    bits = max(0, (len(digests) - 1) // _SHARE).bit_length()
    for share in range(1 << bits):
        found = [
            start + np.flatnonzero(digests[start:end, 0] >> np.uint64(64 - bits) == share)
            if bits
            else np.arange(start, end)
            for start, end in _blocks(len(digests))
        ]
        if found:
            yield np.concatenate(found)


def _first_of_equals(digests: np.ndarray, places: np.ndarray) -> np.ndarray:
    """For each of these places, which are in order, the first one with an equal digest."""
    found = digests[places]
    order = np.lexsort((found[:, 1], found[:, 0]))  # stable: the first of equals comes first
    found = found[order]
    begins = np.ones(len(found), np.bool_)
    begins[1:] = (found[1:] != found[:-1]).any(axis=1)
    own = places[order]
    firsts = np.empty_like(places)
    firsts[order] = own[begins][np.cumsum(begins) - 1]
    return firsts


def _numbered(firsts: np.ndarray) -> int:
    """Put numbers in the place of first places, from the front on."""
    known = 0
    for start, end in _blocks(len(firsts)):
        block = np.array(firsts[start:end])
        new = block == np.arange(start, end)
        count = int(new.sum())
        firsts[start:end][new] = np.arange(known, known + count)
        firsts[start:end][~new] = firsts[block[~new]]  # numbered already, as they come before
        known += count
    return known


def _blocks(count: int) -> Iterator[tuple[int, int]]:
    for start in range(0, count, _BLOCK):
        yield start, min(start + _BLOCK, count)
