"""How an input is cut: into parts, which are encoded whole, and into shards, which are whole parts.

Where a part ends depends on the texts before alone. So its batches are the same whoever encodes it, and so
are its vectors, however many workers or machines there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pairkit.app.errors import ConfigError

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


_NAMED = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")


@dataclass(frozen=True, slots=True)
class VectorShard:
    """One of `of` contiguous shares of an input; `number` counts from 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @classmethod
    def named(cls, text: str) -> Self:
        """What "2/8" means."""
        found = _NAMED.fullmatch(text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise ConfigError(
                f"--shard {text} (shard={text!r}): expected I/N with I from 1 to N, such as 2/8"
            )
        return cls(int(found[1]), int(found[2]))

    @property
    def mark(self) -> str:
        """Its part of a file's or folder's name: `2-of-8`."""
        return f"{self.number}-of-{self.of}"

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
    name = re.compile(rf"{re.escape(out.stem)}-([0-9]{{1,6}})-of-([1-9][0-9]{{0,5}})\.npy(?:\.partial)?")
    names = (path.name for path in out.parent.glob("*-of-*.npy*"))
    found = (match for match in map(name.fullmatch, names) if match is not None)
    shards = {VectorShard(int(match[1]), int(match[2])) for match in found}
    return sorted(shards, key=lambda one: (one.of, one.number))


def ends_of(texts: Iterable[str], most: int = MOST_TEXTS) -> list[int]:
    """Texts up to the end of each part; none of no texts."""
    ends = [0]
    for part in parts(texts, most):
        ends.append(ends[-1] + len(part))
    return ends[1:]
