"""How far dates give the label away."""

from __future__ import annotations

import polars as pl

from pairkit.gap import gap_auc


def frame(*rows: tuple[int, int, int]) -> pl.DataFrame:
    """Rows of (day of the first, day of the second, label)."""
    times = [(f"2020-01-{one:02}T00:00:00Z", f"2020-01-{other:02}T00:00:00Z", y) for one, other, y in rows]
    return pl.DataFrame(times, schema=["created_at1", "created_at2", "label"], orient="row")


def test_by_hand() -> None:
    """Gaps 1 and 5 of positives against 3 and 5 of negatives: 1 < 3, 1 < 5, 5 > 3, 5 = 5."""
    assert gap_auc(frame((1, 2, 1), (9, 4, 1), (1, 4, 0), (7, 2, 0))) == (1 + 1 + 0 + 0.5) / 4
    assert gap_auc(frame((1, 2, 1), (1, 9, 0))) == 1.0
    assert gap_auc(frame((1, 9, 1), (1, 2, 0))) == 0.0


def test_nothing_to_tell() -> None:
    assert gap_auc(frame((1, 2, 1))) is None
    assert gap_auc(frame((1, 2, 0))) is None
    assert gap_auc(frame((1, 2, 1), (1, 9, 0)).drop("created_at1")) is None
    unknown = frame((1, 2, 1), (1, 9, 0), (1, 3, 0)).with_columns(
        created_at2=pl.Series(["2020-01-02T00:00:00Z", None, "some day"])
    )
    assert gap_auc(unknown) is None
    assert gap_auc(frame((1, 2, 1), (1, 9, 0)), label="label") == 1.0
