"""Intervals and paired tests: against rows literally repeated, against scipy, and by what they must hold."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from scipy import stats

from aoe_train.evaluation.pair_metrics import correlation
from aoe_train.evaluation.resample import MeanMetrics, compare, intervals
from aoe_train.evaluation.tasks import TaskMetrics, summarise
from pairkit.app.errors import DataError


def noisy(n: int, seed: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 6, n).astype(float)
    return labels / 5 + generator.normal(0, noise, n), labels


def test_means_weigh_by_the_counts() -> None:
    means = MeanMetrics({"accuracy": np.array([1, 0, 1, 1]), "ndcg": np.array([0.5, 0.25, 1, 0])})
    assert (means.n, means.scores()) == (4, {"accuracy": 0.75, "ndcg": 0.4375})
    found = means.figures(np.array([[0, 3, 1, 0], [2, 0, 0, 2]], float))
    assert found["accuracy"] == pytest.approx([1 / 4, 1])
    assert found["ndcg"] == pytest.approx([(0.75 + 1) / 4, 1 / 4])


def test_a_draw_of_one_value_only_has_no_correlation() -> None:
    judged = correlation(np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 2.0]), "task")
    found = judged.figures(np.array([[0, 1, 1], [2, 0, 1]], float))
    assert np.isnan(found["spearman"]).tolist() == [True, False]
    bounds = intervals(judged, resamples=200, seed=0)
    assert all(-1 <= low <= high <= 1 for low, high in bounds.values())


def test_what_no_resample_defines_has_no_interval_and_no_comparison() -> None:
    class Never(MeanMetrics):
        def figures(self, counts: np.ndarray) -> dict[str, np.ndarray]:
            return {**super().figures(counts), "never": np.full(len(counts), np.nan)}

    one, other = (Never({"accuracy": np.arange(10) < right}) for right in (4, 7))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(intervals(one, resamples=100, seed=0)) == ["accuracy"]
        assert list(compare(one, other, resamples=100, seed=0)) == ["accuracy"]
    told = summarise(TaskMetrics(one), resamples=100).to_dict()
    assert (told["never"], told["ci95"]["never"]) == (None, None)
    assert json.loads(json.dumps(told, allow_nan=False)) == told


def test_intervals_are_scipys_and_depend_on_the_seed_only(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = noisy(150, seed=3, noise=0.4)
    judged = correlation(x, y, "task")
    ours = intervals(judged, resamples=2000, seed=1)
    for name, statistic in (("spearman", stats.spearmanr), ("pearson", stats.pearsonr)):
        theirs = stats.bootstrap(
            (x, y),
            lambda a, b, statistic=statistic: statistic(a, b).statistic,
            paired=True,
            vectorized=False,
            n_resamples=300,
            method="percentile",
            random_state=2,
        ).confidence_interval
        assert ours[name] == pytest.approx((theirs.low, theirs.high), abs=0.02)
    assert intervals(judged, resamples=2000, seed=8) != ours
    monkeypatch.setattr("aoe_train.evaluation.resample._CELLS", 1000)
    assert intervals(judged, resamples=2000, seed=1) == ours
    with pytest.raises(DataError, match="150 examples against 49"):
        compare(judged, correlation(*noisy(49, 0, 0.3), "task"), resamples=100, seed=0)


def test_a_clear_difference_has_a_small_p_and_none_a_large_one() -> None:
    labels = noisy(300, 1, 0.1)[1]
    good, bad, alike = (
        correlation(labels / 5 + np.random.default_rng(seed).normal(0, noise, 300), labels, "task")
        for seed, noise in ((1, 0.1), (2, 0.8), (3, 0.1))
    )
    ahead = compare(good, bad, resamples=999, seed=0)["spearman"]
    assert ahead.difference == pytest.approx(good.scores()["spearman"] - bad.scores()["spearman"])
    assert ahead.interval.low > 0
    assert ahead.p == pytest.approx(2 / 1000)  # no resample on the other side: the least that 999 can tell
    level = compare(good, alike, resamples=999, seed=0)["spearman"]
    assert level.p > 0.05
    assert level.interval.low < 0 < level.interval.high
    assert compare(good, good, resamples=999, seed=0)["spearman"].p == 1


def test_pairing_sees_a_difference_that_intervals_alone_do_not() -> None:
    hard = np.random.default_rng(0).random(400) < 0.5  # both models miss the same half
    one = MeanMetrics({"accuracy": (~hard).astype(float)})
    other = MeanMetrics({"accuracy": np.where(np.arange(400) < 12, 0, ~hard).astype(float)})
    bounds = [intervals(each, resamples=500, seed=0)["accuracy"] for each in (one, other)]
    assert bounds[0].low < bounds[1].high
    assert compare(one, other, resamples=500, seed=0)["accuracy"].p < 0.02
