"""Vectors: each input once, two texts in one, and refusals of what is no vector."""

from __future__ import annotations

import numpy as np
import pytest

from aoe_train._evaluate import Vectors
from pairkit.errors import DataError


def lengths(texts: list[str]) -> np.ndarray:
    return np.array([[len(text), 1] for text in texts], np.float32)


def test_each_distinct_input_has_one_row() -> None:
    asked: list[list[str]] = []

    def encode(texts: list[str]) -> np.ndarray:
        asked.append(texts)
        return lengths(texts)

    vectors = Vectors(encode, [["a", "bb"], ["bb", ("a", "bb")]], separator=" [SEP] ")
    assert asked == [["a", "bb", "a [SEP] bb"]]
    assert vectors.rows(["bb", "a", ("a", "bb"), "bb"]).tolist() == [1, 0, 2, 1]
    assert vectors.matrix[:, 0].tolist() == [1, 2, 10]


@pytest.mark.parametrize(
    "broken",
    [lambda texts: lengths(texts)[:-1], lambda texts: lengths(texts)[:, 0]],
    ids=["too few", "no vectors"],
)
def test_another_shape_is_refused(broken: object) -> None:
    with pytest.raises(DataError, match=r"2 texts got vectors of shape \("):
        Vectors(broken, [["a", "bb"]])  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_refused_with_the_first_such_text(value: float) -> None:
    def encode(texts: list[str]) -> np.ndarray:
        return np.where(np.array([["c" in text] for text in texts]), np.float32(value), lengths(texts))

    with pytest.raises(DataError, match=r"gives 2 of 4 texts vectors that are not numbers .*first 'cc'"):
        Vectors(encode, [["a", "cc", "b", "dc"]])
