"""Texts as sets of three words in a row, each a number."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain, islice
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pairkit.jaccard_join import Hashes, mixed

WORD = re.compile(r"\w+")
CHUNK = 2048  # texts worked on at once, which bounds the memory
MULTIPLIERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)
_KNOWN_WORDS = 1 << 20  # whose hashes are remembered, which bounds the memory


class Texts(Protocol):
    """Texts by place, as a list has them; each is read when it is asked for, so that they may lie on disk."""

    def __len__(self) -> int:
        """How many there are."""

    def __getitem__(self, place: int, /) -> str:
        """One of them.

        Raises:
            IndexError: There are fewer.
        """


class _Words(dict[str, int]):
    """The hash of each word, remembered."""

    def __missing__(self, word: str) -> int:
        if len(self) > _KNOWN_WORDS:
            self.clear()
        digest = blake2b(word.encode("utf-8", "replace"), digest_size=8).digest()
        number = self[word] = int.from_bytes(digest, "little")
        return number


class Shingler:
    """Turns texts into sets of hashed word triples."""

    def __init__(self) -> None:
        self._words = _Words()

    def shingles(self, text: str) -> Hashes:
        """The set of a text, ascending."""
        return np.unique(self.flat([text])[0])

    def sets(self, texts: Iterable[str]) -> Iterator[Hashes]:
        """The set of each text."""
        remaining = iter(texts)
        while some := list(islice(remaining, CHUNK)):
            triples, ends = self.flat(some)
            yield from map(np.unique, np.split(triples, ends[:-1]))

    def flat(self, texts: Sequence[str]) -> tuple[Hashes, npt.NDArray[np.int64]]:
        """A hash of every three words in a row (of all, where there are fewer); and where each text ends."""
        words = [WORD.findall(text.lower()) for text in texts]
        counts = np.fromiter(map(len, words), np.int64, len(words))
        flat = map(self._words.__getitem__, chain.from_iterable(words))
        hashes = np.fromiter(flat, np.uint64, int(counts.sum()))
        widths = np.minimum(counts, len(MULTIPLIERS))
        found = np.where(counts > 0, counts - widths + 1, 0)
        ends = np.cumsum(found)
        first = np.arange(found.sum()) + np.repeat(np.cumsum(counts) - counts - ends + found, found)
        combined = np.zeros(len(first), np.uint64)
        for place, multiplier in enumerate(MULTIPLIERS):
            reaches = np.repeat(widths > place, found)
            combined[reaches] += mixed(hashes + multiplier)[first[reaches] + place]
        return mixed(combined), ends
