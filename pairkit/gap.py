"""The gap of a pair: the time between the openings of its issues, and how far it gives the label away."""

from __future__ import annotations

import polars as pl

_TIMES = ("created_at1", "created_at2")
_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def opening_times() -> list[pl.Expr]:
    """The times of a dataset's rows as times: null where they are none."""
    return [pl.col(name).str.to_datetime(_FORMAT, strict=False) for name in _TIMES]


def gap_auc(frame: pl.DataFrame, label: str = "label") -> float | None:
    """How often a positive has the smaller gap than a negative, ties counted half.

    The area under the ROC curve of "the nearer in time, the likelier duplicates": 0.5 says nothing about the
    label, 1 gives it away. Rows whose times are unknown are left out.

    Args:
        frame: The rows of a dataset; its times are text, or times already (`opening_times`).
        label: The column that is above 0 for a positive.

    Returns:
        The area, or None where times, positives or negatives are missing.
    """
    kinds = [frame.schema.get(name) for name in _TIMES]
    if all(kind == pl.String for kind in kinds):
        one, other = opening_times()
    elif all(kind == pl.Datetime for kind in kinds):
        one, other = map(pl.col, _TIMES)
    else:
        return None
    gaps = frame.select((one - other).abs().alias("gap"), (pl.col(label) > 0).alias("positive")).drop_nulls()
    positives = int(gaps["positive"].sum())
    negatives = gaps.height - positives
    if not positives or not negatives:
        return None
    ranks = float(gaps["gap"].rank("average").filter(gaps["positive"]).sum())
    larger = (ranks - positives * (positives + 1) / 2) / (positives * negatives)
    return round(1 - larger, 4)
