"""Signs of divergence by hand: in vectors, in the norms of gradients, and what is none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aoe_train.training.loss_log import CollapseCheck, Diverged, gradient_problem, spread


@pytest.mark.parametrize(
    ("vectors", "expected"),
    [
        ([[3, 0], [0, 2]], 1.0),
        ([[1, 0], [-1, 0]], 2.0),
        ([[1, 0], [5, 0]], 0.0),
        ([[1, 0], [0, 1], [-1, 0]], 4 / 3),  # cosines 0, 0, -1
        ([[1, 0], [0.6, 0.8]], 0.4),
    ],
)
def test_spread_is_the_mean_distance_of_cosines_from_1(vectors: list[list[float]], expected: float) -> None:
    assert spread(np.array(vectors, np.float32)) == pytest.approx(expected, abs=1e-7)


@given(st.integers(0, 10**6), st.integers(2, 9))
def test_spread_against_all_pairs(seed: int, texts: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(texts, 5))
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    gaps = [1 - units[i] @ units[j] for i in range(texts) for j in range(i)]
    assert spread(vectors) == pytest.approx(np.mean(gaps))


@pytest.mark.parametrize("vectors", [[[1, 0]], [[1, 0], [math.nan, 0]], [[math.inf, 0], [1, 0]]])
def test_spread_of_one_text_or_of_what_is_no_number(vectors: list[list[float]]) -> None:
    assert math.isnan(spread(np.array(vectors)))


@pytest.mark.parametrize(
    ("before", "now", "sign"),
    [
        (0.5, 0.4, None),
        (0.5, 0.006, None),
        (0.5, 0.004, "0.996000 on average, and were 0.500000"),
        (0.05, 0.0011, None),
        (0.05, 0.0009, "0.999100 on average, and were 0.950000"),
        (0.003, 0.0009, None),
        (0.5, 0.0, "cosines of 3 different texts are 1.000000"),
        (1e-5, 9e-6, None),  # born with cosines near 1, as small random models are
        (1e-5, 1e-7, "apart no longer"),
        (0.5, math.nan, "not numbers"),
        (math.nan, 0.0, None),  # nothing to compare with
        (0.0, 0.0, None),  # no text was told from another before
    ],
)
def test_texts_must_have_come_together(before: float, now: float, sign: str | None) -> None:
    check = CollapseCheck(lambda texts: np.eye(len(texts)), ["a", "b", "c", "a"])
    check.before = before
    found = check.problem(now)
    assert (found is None) if sign is None else (found is not None and sign in found)


def test_a_few_texts_of_each_collection_are_looked_at() -> None:
    asked: list[list[str]] = []

    def encode(texts: list[str]) -> np.ndarray:
        asked.append(texts)
        return np.eye(len(texts))

    check = CollapseCheck(encode, [str(number) for number in range(1000)], ["x", "5", "y"])
    assert check.spread() == pytest.approx(1)
    assert len(asked[0]) == len(set(asked[0])) == 19
    assert {"0", "x", "y"} <= set(asked[0])


@pytest.mark.parametrize(
    ("norms", "sign"),
    [
        ([], None),
        ([5.0], None),
        ([5.0, math.inf], "gradient became inf"),
        ([math.nan], "gradient became nan"),
        ([300.0, 200.0, 100.0, 5.0, 4.0, 3.0], None),
        ([5.0, 4.0, 3.0, 2e4, 3e4, 4e4], "grew from 5 to 4e+04"),
        ([5.0, 4.0, 3.0, 2e4, 3.0, 4e4], None),  # now and then a batch is far off, and clipped
        ([0.0, 0.0, 0.0, 50.0, 60.0, 70.0], None),  # batches that rank nothing come first
        ([5e3, 4e3, 3e3, 2e4, 3e4, 4e4], None),  # a loss of large numbers
        ([5.0, 2e4, 3e4, 4e4], None),  # too early to say
    ],
)
def test_gradients(norms: list[float], sign: str | None) -> None:
    found = gradient_problem(norms)
    assert (found is None) if sign is None else (found is not None and sign in found)


def test_the_line_names_step_rate_and_remedy() -> None:
    assert str(Diverged("it broke", step=1200, lr=0.5)) == (
        "training diverged at step 1,200: it broke; train again with a lower --lr (now 0.5) and --fresh"
    )
    assert Diverged("", step=1, lr=1).exit_code == 2
