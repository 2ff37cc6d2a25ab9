"""Samples by strata: how many of each kind are drawn, and which; and the stratum that judges' votes make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

_SURE = 0.8  # the share of the votes that says the same, from which on judges count as agreed


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
    """Deal out at least `least` places to each kind that has them, and the rest by size (largest remainders).

    Args:
        sizes: How many there are of each kind.
        total: Places; fewer are dealt where there are fewer.
        least: What each kind gets before, in turns, as far as `total` goes.
    """
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
    """The first rows of each stratum by their key, as many as its quota, all in the order of their keys.

    Args:
        rows: With the columns named.
        quotas: Rows of each stratum; of one that is not there, none.
        stratum: The column of strata.
        key: The column to go by, such as a keyed hash.
    """
    place = pl.int_range(pl.len()).over(stratum)
    quota = pl.col(stratum).replace_strict(dict(quotas), default=0, return_dtype=pl.Int64)
    return rows.sort(key).filter(place < quota)


def judges_agree(votes: object) -> str:
    """How far judges agree about a pair, by its `votes`: a list of structures with the field `vote`."""
    said = [vote["vote"] for vote in votes] if isinstance(votes, Sequence) else []
    heard = [vote for vote in said if vote != "unsure"]
    if not heard:
        return "judges unsure" if said else "not judged"
    return "judges agree" if max(map(heard.count, heard)) / len(said) >= _SURE else "judges differ"
