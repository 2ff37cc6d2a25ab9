"""How an input is cut: into parts, which are encoded whole, and into shards, which are whole parts.

Where a part ends depends on the texts before alone. So its batches are the same whoever encodes it, and so
are its vectors, however many workers or machines there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pairkit.system import shards

FEWEST_TEXTS, MOST_TEXTS = 1_000, 10_000
MOST_CHARACTERS = 8_000_000  # long texts make smaller parts
_SHARE = 32  # a part is at most this share of what is before it: many workers find work in short inputs


def parts(texts: Iterable[str], most: int = MOST_TEXTS) -> Iterator[list[str]]:
    """Texts that are sorted by length and encoded together: bounded memory, and a kill costs one at most."""
    part: list[str] = []
    before, characters = 0, 0
    for text in texts:
        part.append(text)
        characters += len(text)
        if len(part) >= min(most, max(FEWEST_TEXTS, before // _SHARE)) or characters >= MOST_CHARACTERS:
            yield part
            before += len(part)
            part, characters = [], 0
    if part:
        yield part


class VectorShard(shards.Shard):
    """One of `of` contiguous shares of an input."""

    __slots__ = ()

    def path(self, out: Path) -> Path:
        """Its file beside the output: `vectors.npy` has `vectors-2-of-8.npy`."""
        return out.with_name(f"{out.stem}-{self.mark}.npy")

    def within(self, ends: Sequence[int]) -> tuple[int, int]:
        """Its first text and the one behind its last, from 0."""
        cuts, total = (0, *ends), ends[-1]
        start, end = (
            min(cuts, key=lambda cut: abs(cut * self.of - place * total))
            for place in (self.number - 1, self.number)
        )
        return start, end


def shards_beside(out: Path) -> list[VectorShard]:
    """The shards of an output whose files or unfinished folders are there, in order."""
    names = (path.name for path in out.parent.glob("*-of-*.npy*"))
    return VectorShard.in_names(names, out.stem, [".npy", ".npy.partial"])


def ends_of(texts: Iterable[str], most: int = MOST_TEXTS) -> list[int]:
    """Texts up to the end of each part; none of no texts."""
    ends = [0]
    for part in parts(texts, most):
        ends.append(ends[-1] + len(part))
    return ends[1:]
