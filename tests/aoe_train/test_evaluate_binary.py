"""Weighted figures of binary pairs, against scikit-learn and scipy on rows that are literally repeated."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics

from aoe_train._evaluate.binary import Binary, Thresholds, binary
from aoe_train._evaluate.resample import compare, intervals
from pairkit.errors import DataError

pairs = st.lists(
    # few distinct cosines, so that there are ties; how often each pair stands
    st.tuples(st.integers(-5, 5).map(lambda tenth: tenth / 10), st.integers(0, 1), st.integers(0, 3)),
    min_size=2,
    max_size=30,
).filter(lambda rows: len({c for c, _, n in rows if n}) > 1 and len({label for _, label, n in rows if n}) > 1)


def best(score, labels: np.ndarray, cosines: np.ndarray) -> float:
    """The largest score over all thresholds, one of which lets nothing through."""
    limits = [*np.unique(cosines), 2.0]
    return max(score(labels, (cosines >= limit).astype(int)) for limit in limits)


@given(pairs, st.integers(-6, 6))
def test_counts_are_rows_that_stand_so_often(rows: list[tuple[float, int, int]], tenth: int) -> None:
    cosines, labels, counts = (np.array(column) for column in zip(*rows, strict=True))
    limit = tenth / 10
    found = Binary(cosines, labels.astype(float), Thresholds(limit, limit)).figures(
        counts[None].astype(float)
    )
    x, y = np.repeat(cosines, counts), np.repeat(labels, counts)
    above = (x >= limit).astype(int)
    first = Binary(cosines, labels.astype(float)).best_thresholds()  # of the pairs as they are
    expected = {
        "spearman": stats.spearmanr(x, y).statistic,
        "roc_auc": metrics.roc_auc_score(y, x),
        "average_precision": metrics.average_precision_score(y, x),
        "f1": metrics.f1_score(y, above),
        "accuracy": metrics.accuracy_score(y, above),
        "f1_threshold": limit,
        "accuracy_threshold": limit,
        "best_f1": metrics.f1_score(y, (x >= first.f1).astype(int)),
        "best_accuracy": metrics.accuracy_score(y, (x >= first.accuracy).astype(int)),
    }
    assert {name: value for name, (value,) in found.items()} == pytest.approx(expected, abs=1e-12)
    assert list(found) == list(expected)


@given(pairs)
def test_the_best_thresholds_reach_the_best_figures(rows: list[tuple[float, int, int]]) -> None:
    cosines, labels, counts = (np.array(column) for column in zip(*rows, strict=True))
    x, y = np.repeat(cosines, counts), np.repeat(labels, counts)
    known = Binary(x, y)
    scores = Binary(x, y, known.best_thresholds()).scores()
    assert scores["f1"] == pytest.approx(scores["best_f1"])
    assert scores["accuracy"] == pytest.approx(scores["best_accuracy"])
    assert scores["best_f1"] == pytest.approx(best(metrics.f1_score, y, x))
    assert scores["best_accuracy"] == pytest.approx(best(metrics.accuracy_score, y, x))


def test_resamples_keep_the_best_thresholds() -> None:
    generator = np.random.default_rng(0)
    judged = Binary(generator.normal(size=40), generator.integers(0, 2, 40))  # nothing to be found
    bounds = intervals(Binary(judged.cosines, judged.labels, judged.best_thresholds()), draws=500, seed=1)
    assert bounds["best_f1"] == bounds["f1"]
    assert bounds["best_accuracy"] == bounds["accuracy"]
    # chosen anew in each resample the figure would lie above the point estimate most of the time
    counts = generator.multinomial(40, [1 / 40] * 40, size=500).astype(float)
    assert judged.figures(counts)["best_accuracy"].mean() == pytest.approx(
        judged.scores()["best_accuracy"], abs=0.01
    )


def test_by_hand() -> None:
    # from the top: 1, 0, 1, 0
    judged = binary(np.array([0.2, 0.9, 0.6, 0.8]), np.array([0, 1, 1, 0]), "four pairs")
    assert judged.scores() == pytest.approx(
        {
            "spearman": 0.4472136,  # ranks 1 4 2 3 against 1.5 3.5 3.5 1.5
            "roc_auc": 3 / 4,
            "average_precision": (1 + 2 / 3) / 2,
            "best_f1": 2 * 2 / (2 * 2 + 1),
            "best_accuracy": 3 / 4,
        }
    )
    # accuracy is 3/4 above 0.85 and above 0.4: the higher one is taken
    assert judged.best_thresholds() == pytest.approx(Thresholds(f1=0.4, accuracy=0.85))


def test_where_nothing_should_be_accepted_the_threshold_lies_above_all() -> None:
    judged = Binary(np.array([0.9, 0.5, 0.1]), np.array([0, 0, 1]))
    assert judged.best_thresholds().accuracy > 0.9
    assert judged.best_thresholds().f1 == 0.1


def test_draws_of_one_label_are_undefined_and_left_out_of_intervals() -> None:
    judged = Binary(np.array([0.9, 0.1]), np.array([1, 0]), Thresholds(0.5, 0.5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = judged.figures(np.array([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]]))
        bounds = intervals(judged, draws=100, seed=0)
    assert np.isnan(found["roc_auc"]).tolist() == [True, True, False]
    assert np.isnan(found["average_precision"]).tolist() == [False, True, False]
    assert np.isnan(found["f1"]).tolist() == [False, True, False]  # nothing to find, and nothing found
    assert found["accuracy"].tolist() == [1, 1, 1]
    assert bounds["roc_auc"] == (1, 1)


def test_a_better_model_is_told_from_a_worse_one() -> None:
    labels = np.tile([0, 1], 200)
    noise = np.random.default_rng(0).normal(size=(2, 400))
    good, bad = Binary(labels + noise[0] * 0.3, labels), Binary(labels + noise[1] * 3, labels)
    ahead = compare(good, bad, draws=300, seed=0)["roc_auc"]
    assert ahead.difference == pytest.approx(
        metrics.roc_auc_score(labels, good.cosines) - metrics.roc_auc_score(labels, bad.cosines)
    )
    assert ahead.interval.low > 0
    assert ahead.p < 0.01


@pytest.mark.parametrize(
    ("cosines", "labels", "message"),
    [
        ([0.1, 0.2, 0.3], [0, 1, 2.5], r"^mine: found the label 2\.5, expected 0 and 1 only"),
        ([0.1, 0.2], [1, 1], "every label is 1"),
        ([0.3, 0.3], [0, 1], r"every cosine is 0\.3"),
        ([0.3, np.nan], [0, 1], "not numbers"),
        ([0.3], [0], "1 pairs"),
    ],
)
def test_what_allows_no_figure_is_refused(cosines: list[float], labels: list[float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        binary(np.array(cosines), np.array(labels, float), "mine")
