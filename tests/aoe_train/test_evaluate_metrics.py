"""Metrics of pairs, compared with scipy, scikit-learn and manual results; vectors of tasks."""

import warnings
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics

from aoe_train.evaluation.pair_metrics import Binary, Thresholds, binary, correlation
from aoe_train.evaluation.resample import Resampling, intervals
from aoe_train.evaluation.search_results import is_nearer, reciprocal_ranks
from aoe_train.evaluation.tasks import TaskVectors
from aoe_train.model.similarity import all_similarities, comparable, pair_similarities, unit
from aoe_train.settings.train_settings import Similarity
from pairkit import DataError

BINARY = st.lists(
    # few distinct cosines, so that there are ties; how often each pair stands
    st.tuples(st.integers(-5, 5).map(lambda tenth: tenth / 10), st.integers(0, 1), st.integers(0, 3)),
    min_size=2,
    max_size=30,
).filter(lambda rows: len({c for c, _, n in rows if n}) > 1 and len({label for _, label, n in rows if n}) > 1)


def best(score, labels: np.ndarray, cosines: np.ndarray) -> float:
    """The largest score over all thresholds, one of which accepts nothing."""
    limits = [*np.unique(cosines), 2.0]
    return max(score(labels, (cosines >= limit).astype(int)) for limit in limits)


def by_other_folds(cosines: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
    """Predictions at the best thresholds of the other folds, for F1 and accuracy."""
    order = [*np.flatnonzero(labels == 0), *np.flatnonzero(labels == 1)]
    found = np.zeros((2, len(labels)), int)
    for place, pair in enumerate(order):
        others = [other for at, other in enumerate(order) if (at - place) % min(10, len(order))]
        chosen = Binary(cosines[others], labels[others].astype(float)).best_thresholds()
        found[:, pair] = [cosines[pair] >= limit for limit in chosen]
    return list(found)


@settings(max_examples=15)
@given(BINARY, st.integers(-6, 6))
def test_counts_are_repeated_rows(rows, tenth):
    cosines, labels, counts = (np.array(column) for column in zip(*rows, strict=True))
    limit = tenth / 10
    judged = Binary(cosines, labels.astype(float), Thresholds(limit, limit))
    found = judged.figures(counts[None].astype(float))
    x, y = np.repeat(cosines, counts), np.repeat(labels, counts)
    above = (x >= limit).astype(int)
    held_out = [np.repeat(side, counts) for side in by_other_folds(cosines, labels)]
    expected = {
        "spearman": stats.spearmanr(x, y).statistic,
        "roc_auc": metrics.roc_auc_score(y, x),
        "average_precision": metrics.average_precision_score(y, x),
        "f1": metrics.f1_score(y, above),
        "accuracy": metrics.accuracy_score(y, above),
        "f1_threshold": limit,
        "accuracy_threshold": limit,
        "best_f1": metrics.f1_score(y, held_out[0]),
        "best_accuracy": metrics.accuracy_score(y, held_out[1]),
        "pearson": stats.pearsonr(x, y).statistic,
    }
    assert {name: value for name, (value,) in found.items()} == pytest.approx(expected, abs=1e-12)
    assert list(found) == list(expected)
    best_thresholds = Binary(x, y).best_thresholds()
    scores = Binary(x, y, best_thresholds).scores()
    assert scores["f1"] == pytest.approx(best(metrics.f1_score, y, x))
    assert scores["accuracy"] == pytest.approx(best(metrics.accuracy_score, y, x))


def test_draws_with_one_label_are_undefined():
    judged = Binary(np.array([0.9, 0.1]), np.array([1, 0]), Thresholds(0.5, 0.5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = judged.figures(np.array([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]]))
        bounds = intervals(judged, Resampling(100, 0))
    assert np.isnan(found["roc_auc"]).tolist() == [True, True, False]
    assert np.isnan(found["average_precision"]).tolist() == [False, True, False]
    assert np.isnan(found["f1"]).tolist() == [False, True, False]  # nothing to find, and nothing found
    assert found["accuracy"].tolist() == [1, 1, 1]
    assert bounds["roc_auc"] == (1, 1)


@pytest.mark.parametrize("judge", [binary, correlation])
@pytest.mark.parametrize(
    ("cosines", "labels", "message"),
    [
        ([0.1, 0.2], [1, 1], "mine: all labels are 1"),
        ([0.3, 0.3 + 1e-16, 0.3 - 1e-16], [0, 1, 1], "mine: all cosines are 0.3"),
        ([0.3, np.nan], [0, 1], "mine: the model's vectors contain NaN"),
        ([0.3], [0], "mine: 1 pairs"),
        ([], [], "mine: 0 pairs"),
        ([0.1, 0.2, 0.3], [0, 1, 2.5], "mine: found the label 2.5, expected only 0 and 1"),
    ],
)
def test_undefined_metrics_are_refused(judge, cosines, labels, message):
    if judge is correlation and 2.5 in labels:
        assert judge(np.array(cosines), np.array(labels, float), "mine").n == 3
        return
    with pytest.raises(DataError) as caught:
        judge(np.array(cosines), np.array(labels, float), "mine")
    assert str(caught.value).startswith(message)


# Few values, so that ties are frequent.
ROWS = st.lists(
    st.tuples(st.integers(-3, 3), st.sampled_from([0.0, 0.25, 1.0, 2.5, 5.0])), min_size=2, max_size=40
).filter(lambda rows: all(len(set(side)) > 1 for side in zip(*rows, strict=True)))


@settings(max_examples=25)
@given(ROWS)
def test_as_scipy(rows):
    x, y = np.array(rows, float).T
    found = correlation(x, y, "task").scores()
    assert found["spearman"] == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)
    assert found["pearson"] == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-9)


def test_cosines_in_float64_and_of_zero_vectors():
    vectors = np.array([[3, 4], [4, 3], [0, 0]], np.float32)
    cosines = pair_similarities(vectors, np.array([[0, 1], [0, 2], [2, 2], [0, 0]]), "cosine")
    assert cosines.dtype == np.float64
    assert cosines == pytest.approx([24 / 25, 0, 0, 1], abs=1e-15)
    assert unit(vectors)[0] == pytest.approx([0.6, 0.8], abs=1e-15)


def lengths(texts: list[str]) -> np.ndarray:
    return np.array([[len(text), 1] for text in texts], np.float32)


def no_number(texts: list[str]) -> np.ndarray:
    return np.where([["c" in text] for text in texts], np.float32("nan"), lengths(texts))


@pytest.mark.parametrize(
    ("broken", "texts", "words"),
    [
        (lambda texts: lengths(texts)[:-1], ["a", "bb"], r"vectors of 2 texts have shape \("),
        (lambda texts: lengths(texts)[:, 0], ["a", "bb"], r"vectors of 2 texts have shape \("),
        (no_number, ["a", "cc", "b", "dc"], r"vectors of 2 of 4 texts contain NaN .*first 'cc'"),
    ],
)
def test_invalid_vectors_are_refused(broken, texts, words):
    with pytest.raises(DataError, match=words):
        TaskVectors(broken, [texts])


PAIRS = np.array([[0, 1], [0, 2], [1, 1]])
POINTS = np.array([[3, 4], [6, 8], [0, 5]], np.float32)


@pytest.mark.parametrize(
    ("similarity", "expected"),
    [
        ("cosine", [1, 0.8, 1]),
        ("dot", [50, 20, 100]),
        ("euclidean", [-5, -np.sqrt(10), 0]),
        ("manhattan", [-7, -4, 0]),
    ],
)
def test_similarities_by_each_measure(similarity, expected):
    from sentence_transformers.util import SimilarityFunction

    np.testing.assert_allclose(pair_similarities(POINTS, PAIRS, similarity), expected, atol=1e-10)
    points = comparable(POINTS, similarity)
    every = all_similarities(points, points, similarity)
    np.testing.assert_allclose(every[PAIRS[:, 0], PAIRS[:, 1]], expected, atol=1e-7)
    theirs = SimilarityFunction.to_similarity_fn(similarity)(POINTS, POINTS)
    np.testing.assert_allclose(every, theirs, atol=1e-5)


def test_ranks_use_the_similarity():
    triplets = np.array([[0, 1, 2]])
    assert [is_nearer(POINTS, triplets, how).mean() for how in get_args(Similarity)] == [1, 1, 0, 0]
    pairs = np.array([[0, 1], [0, 2], [1, 0]])  # nearest by each is another
    assert reciprocal_ranks(POINTS, pairs, "dot").mean() == pytest.approx(1)
    assert reciprocal_ranks(POINTS, pairs, "euclidean").mean() == pytest.approx(1)


@pytest.mark.parametrize("similarity", get_args(Similarity))
def test_ties_are_misses_beside_large_vectors(similarity):
    points = np.random.default_rng(0).normal(scale=30, size=(40, 8)).astype(np.float32)
    vectors = np.concatenate([points, -points, 0 * points])
    vectors[2] = vectors[1]
    # The other row is a miss too: from a point its opposite is farther than the origin.
    found = [
        is_nearer(vectors, np.array([[0, 1, 2], [row, row + 40, row + 80]]), similarity).mean()
        for row in range(3, 40)
    ]
    assert found == [0.0] * 37
