"""Pairs by how long their texts are, in the steps at which encoders of 128, 256 and 512 tokens cut."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from pairkit.length import estimated_tokens

_BEGINS = {"<128": 0, "128-255": 128, "256-511": 256, ">=512": 512}


def length_buckets(text1: Sequence[str], text2: Sequence[str]) -> dict[str, np.ndarray]:
    """The rows whose longer text has so many tokens; a bucket without rows is left out.

    Tokens are those of `pairkit.length.estimated_tokens`, a fixed rule that follows WordPiece, so that every
    model is judged on the same buckets.
    """
    frame = pl.DataFrame({"text1": list(text1), "text2": list(text2)})
    counts = frame.select(pl.max_horizontal(estimated_tokens(pl.col(name)) for name in frame.columns))
    bucket = np.searchsorted(list(_BEGINS.values()), counts.to_series().to_numpy(), side="right") - 1
    found = {name: np.flatnonzero(bucket == number) for number, name in enumerate(_BEGINS)}
    return {name: rows for name, rows in found.items() if len(rows)}
