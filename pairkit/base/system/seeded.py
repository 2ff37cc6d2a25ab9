"""Random choices by a hash of seed and content, independent of input order and process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def in_turns(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """Distribute `total` among kinds in turns, up to the size of each kind."""
    quotas = {kind: 0 for kind, size in sizes.items() if size}
    left = min(total, sum(sizes.values()))
    while left > 0:
        open_kinds = [kind for kind, quota in quotas.items() if quota < sizes[kind]]
        for kind in open_kinds[:left]:
            quotas[kind] += 1
        left -= len(open_kinds)
    return quotas


def in_proportion(sizes: Mapping[str, int], total: int, minimum: int) -> dict[str, int]:
    """Quotas: at minimum `minimum` of each stratum (if it is as large), the rest by size."""
    smallest = {kind: min(size, minimum) for kind, size in sizes.items()}
    quotas = dict.fromkeys(sorted(sizes), 0) | in_turns(smallest, total)
    rest = [sizes[kind] - quota for kind, quota in quotas.items()]
    left = min(total - sum(quotas.values()), sum(rest))
    if left > 0:
        for kind, more in zip(quotas, apportion(left, rest), strict=True):
            quotas[kind] += more
    return quotas


def apportion(total: int, shares: Sequence[float]) -> list[int]:
    """Whole numbers in these proportions that add up to `total` (largest remainders)."""
    exact = [total * share / sum(shares) for share in shares]
    counts = [*map(int, exact)]
    left = total - sum(counts)

    def remainder(place: int) -> float:
        return exact[place] - counts[place]

    largest_first = sorted(range(len(counts)), key=remainder, reverse=True)
    for place in largest_first[:left]:
        counts[place] += 1
    return counts
