"""Random choices by a hash of seed and content, independent of input order and process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

_SPAN = 1 << 64


def keyed_hash(seed: int, *about: object) -> int:
    """A 64-bit hash of the seed and the string forms of `about`."""
    text = "\x1f".join(map(str, about))
    key = (seed % _SPAN).to_bytes(8, "little")
    digest = blake2b(text.encode(), digest_size=8, key=key).digest()
    return int.from_bytes(digest, "little")


def keyed_unit(seed: int, *about: object) -> float:
    """Like `keyed_hash`, as a number in [0, 1)."""
    return (keyed_hash(seed, *about) >> 11) / (1 << 53)


def random_order(
    seed: int, purpose: str, items: Iterable[Sequence[object]]
) -> list[int]:
    """The indices of all items in an order that depends only on the seed and each item."""
    hashes = [keyed_hash(seed, purpose, *item) for item in items]
    return sorted(range(len(hashes)), key=hashes.__getitem__)


def in_turns(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """Distribute `total` among kinds in turns, up to the size of each kind."""
    quotas = {kind: 0 for kind, size in sizes.items() if size}
    remaining = min(total, sum(sizes.values()))
    while remaining > 0:
        unfilled = [kind for kind, quota in quotas.items() if quota < sizes[kind]]
        for kind in unfilled[:remaining]:
            quotas[kind] += 1
        remaining -= len(unfilled)
    return quotas


def in_proportion(sizes: Mapping[str, int], total: int, minimum: int) -> dict[str, int]:
    """Quotas of strata: at least `minimum` of each (or all of a smaller one), the others by size."""
    minimums = {stratum: min(size, minimum) for stratum, size in sizes.items()}
    quotas = dict.fromkeys(sorted(sizes), 0) | in_turns(minimums, total)

    unused = [sizes[stratum] - quota for stratum, quota in quotas.items()]
    remaining = min(total - sum(quotas.values()), sum(unused))
    if remaining > 0:
        further = apportion(remaining, unused)
        for stratum, count in zip(quotas, further, strict=True):
            quotas[stratum] += count
    return quotas


def apportion(total: int, shares: Sequence[float]) -> list[int]:
    """Whole numbers in these proportions that add up to `total` (largest remainders)."""
    exact = [total * share / sum(shares) for share in shares]
    counts = [*map(int, exact)]

    def remainder(place: int) -> float:
        return exact[place] - counts[place]

    largest_first = sorted(range(len(counts)), key=remainder, reverse=True)
    for place in largest_first[: total - sum(counts)]:
        counts[place] += 1
    return counts
