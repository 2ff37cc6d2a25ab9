"""Weighted figures of binary pairs, against scikit-learn and scipy on rows that are literally repeated."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn import metrics

from aoe_train.evaluation.pair_metrics import Binary, Thresholds, binary
from aoe_train.evaluation.resample import intervals
from pairkit.app.errors import DataError

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


def by_other_folds(cosines: np.ndarray, labels: np.ndarray) -> list[np.ndarray]:
    """Each pair as 0 or 1 at the best thresholds of the folds that it is not in, for F1 and accuracy."""
    order = [*np.flatnonzero(labels == 0), *np.flatnonzero(labels == 1)]
    found = np.zeros((2, len(labels)), int)
    for place, pair in enumerate(order):
        others = [other for at, other in enumerate(order) if (at - place) % min(10, len(order))]
        chosen = Binary(cosines[others], labels[others].astype(float)).best_thresholds()
        found[:, pair] = [cosines[pair] >= limit for limit in chosen]
    return list(found)


@settings(max_examples=25)
@given(pairs, st.integers(-6, 6))
def test_counts_are_repeated_rows(rows: list[tuple[float, int, int]], tenth: int) -> None:
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


def test_a_threshold_that_finds_nothing_gains_nothing_by_being_chosen_on_the_pairs() -> None:
    """Cosines that say nothing of the labels: the best threshold flatters, others' don't."""
    generator = np.random.default_rng(0)
    flattered, honest = [], []
    for _ in range(50):
        judged = Binary(generator.normal(size=40), np.tile([0, 1], 20))
        at_best = Binary(judged.cosines, judged.labels, judged.best_thresholds()).scores()
        flattered.append(at_best["accuracy"])
        honest.append(at_best["best_accuracy"])
    assert np.mean(flattered) > 0.57
    assert np.mean(honest) < 0.53


def test_cross_validation_by_hand() -> None:
    """Six pairs are a fold each; each is judged by the threshold that suits the other five best."""
    cosines, labels = np.array([0.1, 0.2, 0.6, 0.5, 0.8, 0.9]), np.array([0, 0, 0, 1, 1, 1])
    # All pairs: 0.55, 0.7 and 0.35 are one mistake each; the highest is taken, 0.7, and 0.5 is missed: 5/6.
    assert Binary(cosines, labels).best_thresholds().accuracy == pytest.approx(0.7)
    # Without 0.6 the threshold is 0.35, which lets it through; without 0.5 it is 0.7, which misses it;
    # without any other pair it is 0.7, which is right of 0.1, 0.2, 0.8 and 0.9.
    assert Binary(cosines, labels).scores()["best_accuracy"] == pytest.approx(4 / 6)


def test_by_hand() -> None:
    # from the top: 1, 0, 1, 0
    judged = binary(np.array([0.2, 0.9, 0.6, 0.8]), np.array([0, 1, 1, 0]), "four pairs")
    assert judged.scores() == pytest.approx(
        {
            "spearman": 0.4472136,  # ranks 1 4 2 3 against 1.5 3.5 3.5 1.5
            "roc_auc": 3 / 4,
            "average_precision": (1 + 2 / 3) / 2,
            # by the other three 0.9 is accepted and 0.2 is not, but 0.6 is not either (0.85) and 0.8 is (0.4)
            "best_f1": 2 * 1 / (2 * 1 + 2),
            "best_accuracy": 2 / 4,
            "pearson": 0.25 / 0.2875**0.5,  # deviations -0.425 0.275 -0.025 0.175 against -1 1 1 -1 halves
        }
    )
    # accuracy is 3/4 above 0.85 and above 0.4: the higher one is taken
    assert judged.best_thresholds() == pytest.approx(Thresholds(f1=0.4, accuracy=0.85))
    nothing = Binary(np.array([0.9, 0.5, 0.1]), np.array([0, 0, 1])).best_thresholds()
    assert (nothing.accuracy > 0.9, nothing.f1) == (True, 0.1)  # nothing should be accepted


def test_draws_of_one_label_are_undefined_and_left_out_of_intervals() -> None:
    judged = Binary(np.array([0.9, 0.1]), np.array([1, 0]), Thresholds(0.5, 0.5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = judged.figures(np.array([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]]))
        bounds = intervals(judged, resamples=100, seed=0)
    assert np.isnan(found["roc_auc"]).tolist() == [True, True, False]
    assert np.isnan(found["average_precision"]).tolist() == [False, True, False]
    assert np.isnan(found["f1"]).tolist() == [False, True, False]  # nothing to find, and nothing found
    assert found["accuracy"].tolist() == [1, 1, 1]
    assert bounds["roc_auc"] == (1, 1)


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
