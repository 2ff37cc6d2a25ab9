"""Which pairs people are shown: as many of each stratum as there are, or can be."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from pairkit.keyed import keyed_hash
from pairkit.strata import drawn, in_turns, judges_agree

STRATUM = "stratum"


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
    sizes = table[STRATUM].value_counts().sort("count", STRATUM).iter_rows()
    quotas = in_turns(dict(sizes), size)
    # The order in which they are shown tells nothing of the strata.
    return drawn(table, quotas, stratum=STRATUM, key="key").drop("key")


def _stratum(row: dict[str, object]) -> str:
    change, llms = row.get("change"), row["llms"]
    made = str(change or row["polarity"])
    names = "+".join(map(str, llms)) if isinstance(llms, Sequence) else ""
    fate = "kept" if row["reason"] is None else "turned down"
    return ", ".join((made, names, judges_agree(row["votes"]), fate))
