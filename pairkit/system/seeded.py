"""Choices made by a hash of the seed and of what they are about, not by order of input or process."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

import polars as pl

_SPAN = 1 << 64


def keyed_hash(seed: int, *about: object) -> int:
    """A 64-bit number that depends on the seed and on the string forms of `about`."""
    text = "\x1f".join(str(part) for part in about)
    key = (seed % _SPAN).to_bytes(8, "little")
    return int.from_bytes(blake2b(text.encode(), digest_size=8, key=key).digest(), "little")


def keyed_unit(seed: int, *about: object) -> float:
    """Like `keyed_hash`, as a number in [0, 1)."""
    return (keyed_hash(seed, *about) >> 11) / (1 << 53)


def in_turns(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """Deal `total` places out in turns, in the order given, none beyond a kind's size."""
    dealt = {kind: 0 for kind, size in sizes.items() if size}
    while sum(dealt.values()) < total:
        open_kinds = [kind for kind in dealt if dealt[kind] < sizes[kind]]
        if not open_kinds:
            break
        for kind in open_kinds[: total - sum(dealt.values())]:
            dealt[kind] += 1
    return dealt


def in_proportion(sizes: Mapping[str, int], total: int, least: int = 0) -> dict[str, int]:
    """Give each stratum `least` places if it has them, and the rest by size (largest remainders)."""
    dealt = dict.fromkeys(sizes, 0) | in_turns(
        {kind: min(size, least) for kind, size in sizes.items()}, total
    )
    rest = {kind: size - dealt[kind] for kind, size in sizes.items()}
    everyone = sum(rest.values())
    left = min(total - sum(dealt.values()), everyone)
    if left <= 0:
        return dealt
    wanted = {kind: left * size / everyone for kind, size in rest.items()}
    whole = {kind: int(share) for kind, share in wanted.items()}
    by_remainder = sorted(wanted, key=lambda kind: (whole[kind] - wanted[kind], kind))
    more = by_remainder[: left - sum(whole.values())]
    return {kind: dealt[kind] + whole[kind] + (kind in more) for kind in sizes}


def drawn(rows: pl.DataFrame, quotas: Mapping[str, int], *, stratum: str, key: str) -> pl.DataFrame:
    """The first rows of each stratum by their key, as many as its quota, all in the order of their keys."""
    place = pl.int_range(pl.len()).over(stratum)
    quota = pl.col(stratum).replace_strict(dict(quotas), default=0, return_dtype=pl.Int64)
    return rows.sort(key).filter(place < quota)
