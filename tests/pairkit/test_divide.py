from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pairkit
from pairkit import ConfigError, DataError

MANY = pl.DataFrame(
    {
        "text1": [f"text {n // 2}" for n in range(400)],
        "text2": [f"other {n}" for n in range(400)],
        "label": [n % 2 for n in range(400)],
    }
)


def sizes(made: pairkit.MadeDataset) -> dict[str, int]:
    return {split: rows.height for split, rows in made.pairs.splits.items()}


def test_split_sizes() -> None:
    made = pairkit.split(MANY)
    assert sizes(made) == {"train": 320, "validation": 40, "test": 40}
    assert pairkit.audit(made.pairs).leaks == []
    assert made.statistics["dropped_pairs"] == {}


def test_result_depends_on_seed_but_not_on_order() -> None:
    test = {*pairkit.split(MANY, seed=1).pairs["test"]["text2"]}
    assert {
        *pairkit.split(MANY.sample(fraction=1, shuffle=True, seed=3), seed=1).pairs["test"]["text2"]
    } == test
    assert {*pairkit.split(MANY, seed=2).pairs["test"]["text2"]} != test


def test_old_splits_are_ignored() -> None:
    halves = {"train": MANY.head(200), "test": MANY.tail(200)}
    assert sizes(pairkit.split(halves, split_sizes=(9, 0, 1))) == {"train": 360, "test": 40}


def test_connected_pairs() -> None:
    ring = MANY.with_columns(
        pl.when(pl.col("label") == 0).then(pl.lit("the same")).otherwise("text2").alias("text2")
    )
    with pytest.raises(
        DataError, match=r"400 of 400 rows are connected.*validation would get 0 rows of 40.*cut_neg"
    ):
        pairkit.split(ring)
    made = pairkit.split(ring, cut_negatives=True)
    assert pairkit.audit(made.pairs).leaks == []
    assert {*made.statistics["dropped_pairs"]} == {"crosses_splits"}
    positive = {name: rows["label"].sum() for name, rows in made.pairs.splits.items()}
    assert positive == {"train": 160, "validation": 20, "test": 20}  # none of them goes


@pytest.mark.parametrize(
    "shares", [(), (1,), (0, 0, 0), (-1, 1, 1), (float("nan"), 1, 1), (float("inf"), 1, 1)]
)
def test_invalid_sizes(shares: tuple[float, ...]) -> None:
    with pytest.raises(ConfigError, match="expected sizes of train, validation and test, such as"):
        pairkit.split(MANY, split_sizes=shares)


ROWS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(0, 1)), min_size=1, max_size=60)


@settings(max_examples=25)
@given(ROWS, st.booleans(), st.integers(0, 3))
def test_any_split_has_no_leaks_and_all_rows(rows: list[Any], cut_negatives: bool, seed: int) -> None:
    frame = pl.DataFrame(
        [(f"one {a}", f"two {b}", label) for a, b, label in rows],
        schema=["text1", "text2", "label"],
        orient="row",
    )
    try:
        made = pairkit.split(frame, cut_negatives=cut_negatives, seed=seed)
    except DataError as error:
        assert "are connected" in str(error) or "no pair is left" in str(error)  # noqa: PT017
        return
    assert pairkit.audit(made.pairs).leaks == []
    assert len(made.pairs) + made.dropped.height == len(rows)
    assert cut_negatives or not made.dropped.height
