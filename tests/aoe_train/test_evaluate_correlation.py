"""Correlations against numbers worked by hand and against scipy's."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from aoe_train.evaluation.correlation import correlation, spearman
from aoe_train.model.similarity import pair_similarities, unit
from pairkit.app.errors import DataError

MODULE = import_module(correlation.__module__)  # the package has a function of this name
# Few values, so that ties are frequent.
ROWS = st.lists(
    st.tuples(st.integers(-3, 3), st.sampled_from([0.0, 0.25, 1.0, 2.5, 5.0])), min_size=2, max_size=40
).filter(lambda rows: all(len(set(side)) > 1 for side in zip(*rows, strict=True)))


def test_numbers_worked_by_hand() -> None:
    # x: mean 2, deviations -1 0 1; y: mean 3, deviations -1 -2 3: 4 / sqrt(2 * 14)
    x, y = np.array([1.0, 2.0, 3.0]), np.array([2.0, 1.0, 6.0])
    assert correlation(x, y, "task").scores()["pearson"] == pytest.approx(4 / 28**0.5)
    assert spearman(x, y) == pytest.approx(0.5)  # ranks 1 2 3 and 2 1 3: 1 - 6 * 2 / (3 * 8)


def test_ties_worked_by_hand() -> None:
    # ranks 1.5 1.5 3 4 (deviations -1 -1 0.5 1.5) and 1 2 3 4 (-1.5 -0.5 0.5 1.5): 4.5 / sqrt(4.5 * 5)
    assert spearman(np.array([7, 7, 8, 9]), np.array([0, 1, 2, 3])) == pytest.approx(4.5 / 22.5**0.5)


@given(ROWS)
def test_as_scipy(rows: list[tuple[float, float]]) -> None:
    x, y = np.array(rows, float).T
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    found = correlation(x, y, "task").scores()
    assert found["spearman"] == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)
    assert found["pearson"] == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-9)


@given(ROWS)
def test_spearman_sees_the_order_only(rows: list[tuple[float, float]]) -> None:
    x, y = np.array(rows, float).T
    assert spearman(np.exp(x), 3 * y - 7) == pytest.approx(spearman(x, y), abs=1e-12)
    assert spearman(-x, y) == pytest.approx(-spearman(x, y), abs=1e-12)


def test_perfect_agreement_is_one_and_not_more() -> None:
    found = correlation(np.array([0.1, 0.2, 0.3, 0.7]), np.array([0.1, 0.2, 0.3, 0.7]), "task")
    assert max(found.scores().values()) <= 1
    assert (found.scores(), found.n) == ({"spearman": pytest.approx(1), "pearson": pytest.approx(1)}, 4)


def test_rows_are_sorted_once_however_many_blocks_of_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    sorted_: list[int] = []
    plain = MODULE._order
    monkeypatch.setattr(MODULE, "_order", lambda values: (sorted_.append(len(values)), plain(values))[1])
    judged = correlation(np.array([0.1, 0.3, 0.2]), np.array([1.0, 2.0, 2.0]), "task")
    for _ in range(3):
        judged.figures(np.ones((2, 3)))
    assert sorted_ == [3, 3]  # cosines and labels


@pytest.mark.parametrize(
    ("cosines", "labels", "says"),
    [
        ([0.1, 0.2], [3.0, 3.0], "task: every label is 3"),
        ([0.5, 0.5 + 1e-16, 0.5 - 1e-16], [1.0, 2.0, 3.0], "task: every cosine is 0.5"),
        ([0.5, np.nan], [1.0, 2.0], "task: the model gives vectors that are not numbers"),
        ([0.5], [1.0], "task: 1 pairs"),
        ([], [], "task: 0 pairs"),
    ],
)
def test_no_figure_is_an_error_and_not_nan(cosines: list[float], labels: list[float], says: str) -> None:
    with pytest.raises(DataError) as caught:
        correlation(np.array(cosines), np.array(labels), "task")
    assert str(caught.value).startswith(says)


def test_cosines_are_float64_and_those_of_a_zero_vector_are_zero() -> None:
    vectors = np.array([[3, 4], [4, 3], [0, 0]], np.float32)
    cosines = pair_similarities(vectors, np.array([[0, 1], [0, 2], [2, 2], [0, 0]]), "cosine")
    assert cosines.dtype == np.float64
    assert cosines == pytest.approx([24 / 25, 0, 0, 1], abs=1e-15)
    assert unit(vectors)[0] == pytest.approx([0.6, 0.8], abs=1e-15)


def test_many_pairs_are_the_same_as_a_few_at_a_time() -> None:
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(50, 4)).astype(np.float32)
    pairs = generator.integers(0, 50, size=(20_000, 2))
    at_once = (unit(vectors)[pairs[:, 0]] * unit(vectors)[pairs[:, 1]]).sum(axis=1)
    assert pair_similarities(vectors, pairs, "cosine") == pytest.approx(at_once, abs=1e-12)
