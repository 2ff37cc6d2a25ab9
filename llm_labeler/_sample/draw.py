"""Which pairs people are shown: as many of each stratum as there are, or can be."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from pairkit.keyed import keyed_hash

STRATUM = "stratum"
_SURE = 0.8  # the share of the votes that says the same, from which on judges count as agreed


def draw(candidates: pl.DataFrame, size: int, seed: int) -> pl.DataFrame:
    """Some candidates in a shuffled order, each with its stratum.

    Strata are what was proposed (the kind of a hard negative, or the polarity), who proposed it, how far
    judges agree, and whether it became a pair. They take turns, the smallest first, so that rare kinds are
    seen too. The seed decides by what the pairs say.

    Args:
        candidates: The table of a run, see `llm_labeler._assemble`.
        size: How many are wanted; fewer come where there are fewer.
        seed: Decides which.
    """
    strata = [_stratum(row) for row in candidates.iter_rows(named=True)]
    texts = candidates.select("text", "candidate").iter_rows()
    keys = [keyed_hash(seed, "sample", *pair) for pair in texts]
    table = candidates.with_columns(pl.Series(STRATUM, strata, pl.String), pl.Series("key", keys, pl.UInt64))
    table = table.unique(["text", "candidate"], keep="first", maintain_order=True).sort("key")
    turned = table.with_columns(
        turn=pl.int_range(pl.len()).over(STRATUM), number=pl.len().over(STRATUM)
    ).sort("turn", "number", STRATUM)
    # The order in which they are shown tells nothing of the strata.
    return turned.head(size).sort("key").drop("key", "turn", "number")


def _stratum(row: dict[str, object]) -> str:
    change, llms = row.get("change"), row["llms"]
    made = str(change or row["polarity"])
    names = "+".join(map(str, llms)) if isinstance(llms, Sequence) else ""
    fate = "kept" if row["reason"] is None else "turned down"
    return ", ".join((made, names, _agreement(row["votes"]), fate))


def _agreement(votes: object) -> str:
    """How far judges agree; `not judged` where none said anything."""
    said = [vote["vote"] for vote in votes] if isinstance(votes, Sequence) else []
    heard = [vote for vote in said if vote != "unsure"]
    if not heard:
        return "judges unsure" if said else "not judged"
    return "judges agree" if max(map(heard.count, heard)) / len(said) >= _SURE else "judges differ"
