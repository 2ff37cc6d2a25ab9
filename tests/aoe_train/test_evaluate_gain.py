"""Intervals, paired tests, and whether a model is better than another."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl
from numpy.random import default_rng
from scipy import stats

from aoe_train import evaluate
from aoe_train.evaluation.gain import Gain, UncertainLabels, gain, reliability
from aoe_train.evaluation.pair_metrics import Binary, Correlation, correlation
from aoe_train.evaluation.tasks import (
    Comparison,
    Interval,
    MeanMetrics,
    Resampling,
    compare,
    intervals,
)
from tests.aoe_train.tiny import save_bert
from tests.support.shorthand import approx, data_error, pair, values


def noisy(n, seed, noise):
    generator = default_rng(seed)
    labels = generator.integers(0, 6, n).astype(float)
    return labels / 5 + generator.normal(0, noise, n), labels


def test_intervals_equal_scipys_and_depend_only_on_the_seed(monkeypatch):
    x, y = noisy(150, seed=3, noise=0.4)
    judged = correlation(x, y, "task")
    ours = intervals(judged, Resampling(2000, 1))
    how = {"n_resamples": 300, "method": "percentile", "random_state": 2}
    for name, statistic in (("spearman", stats.spearmanr), ("pearson", stats.pearsonr)):
        theirs = stats.bootstrap(
            (x, y),
            lambda a, b, statistic=statistic: statistic(a, b).statistic,
            paired=True,
            **how,
        ).confidence_interval
        assert ours[name] == approx((theirs.low, theirs.high), abs=0.02)
    assert intervals(judged, Resampling(2000, 8)) != ours
    monkeypatch.setattr("aoe_train.evaluation.tasks._MAX_COUNTS", 1000)
    assert intervals(judged, Resampling(2000, 1)) == ours
    with data_error("150 examples against 49"):
        compare(judged, correlation(*noisy(49, 0, 0.3), "task"), Resampling(100, 0))


def test_p_values():
    labels = noisy(300, 1, 0.1)[1]
    good, bad, alike = (
        correlation(
            labels / 5 + default_rng(seed).normal(0, noise, 300), labels, "task"
        )
        for seed, noise in ((1, 0.1), (2, 0.8), (3, 0.1))
    )
    compared = partial(compare, resamples=Resampling(999, 0))
    ahead = compared(good, bad)["spearman"]
    expected = good.scores()["spearman"] - bad.scores()["spearman"]
    assert ahead.difference == approx(expected)
    assert ahead.interval.low > 0
    # No resample on the other side: the least that 999 can tell.
    assert ahead.p == approx(2 / 1000)
    level = compared(good, alike)["spearman"]
    assert level.p > 0.05
    assert level.interval.low < 0 < level.interval.high
    assert compared(good, good)["spearman"].p == 1
    # A metric that no resample changes is compared if it differs.
    all_right = MeanMetrics({"right": np.ones(300), "same": np.ones(300)})
    all_wrong = MeanMetrics({"right": np.zeros(300), "same": np.ones(300)})
    assert compared(all_right, all_wrong) == {
        "right": Comparison(1.0, Interval(1.0, 1.0), 2 / 1000)
    }
    assert compare(all_right, all_wrong, Resampling(0)) == {}
    # Some resamples lack a positive, so that their AUC is not defined.
    first = Binary(np.array([0.9, 0.1, 0.5, 0.5, 0.5]), np.array([1.0, 1, 0, 0, 0]))
    second = replace(first, cosines=first.cosines[[1, 0, 2, 3, 4]])
    level = compare(first, second, Resampling(200, 0))["roc_auc"]
    assert level.interval.low < level.difference == 0 < level.interval.high


def test_rounding_decides_no_tie():
    values = np.tile([0.3, 0.6], 50)
    ours, theirs = (MeanMetrics({"m": each}) for each in (values, values + 5e-17))
    rounded = MeanMetrics({"m": np.where(values < 0.5, 0.1 + 0.2, values)})
    for other in (theirs, rounded):
        for pair_ in ((ours, other), (other, ours)):
            found = compare(*pair_, Resampling(200, 0))["m"]
            assert found == Comparison(0.0, Interval(0.0, 0.0), 1.0)
    constants = (MeanMetrics({"m": np.full(50, each)}) for each in (0.3, 0.1 + 0.2))
    assert compare(*constants, Resampling(200, 0)) == {}


LABELS = np.array([1.0, 1, 0, 0] * 20)
RIGHT, HALF = np.tile([0.9, 0.8, 0.2, 0.1], 20), np.tile([0.9, 0.15, 0.2, 0.1], 20)
HOW = Resampling(200, 1)


def some(low, high, reliability=1.0):
    ahead = Comparison((low + high) / 2, Interval(low, high), 0.5)
    return Gain("roc_auc", 0.8932, 0.9041, ahead, reliability, 1412, 400)


def test_the_verdict_follows_from_the_interval():
    for low, high, word in values("""
            0.004 | 0.018 | better
            0.0 | 0.01 | inconclusive
            -0.01 | 0.01 | inconclusive
            -0.02 | -0.001 | worse
            """):
        assert some(low, high).word == word
    found = some(0.004, 0.018)
    assert str(found) == "AUC 89.32 -> 90.41 (+1.10 [0.40, 1.80], 1,412 pairs)"
    doubted = "[0.40, 1.80], corrected for uncertain labels, 1,412 pairs)"
    assert doubted in str(some(0.004, 0.018, 0.8))
    assert str(Gain.of(found.to_dict())) == str(found)
    ranked = str(replace(found, metric="ndcg@10"))
    assert ranked == "nDCG@10 89.32 -> 90.41 (+1.10 [0.40, 1.80], 1,412 queries)"


def test_a_gain_by_hand():
    for after, before, word, difference in (
        (RIGHT, HALF, "better", 0.25),
        (HALF, RIGHT, "worse", -0.25),
        (HALF, 2 * HALF, "inconclusive", 0),  # ranks all pairs alike
    ):
        found = gain(Binary(after, LABELS), Binary(before, LABELS), HOW)
        assert (found.word, found.reliability) == (word, 1)
        assert found.ahead.difference == difference
        assert found.after == found.before + difference
    scores = np.tile([5.0, 4, 1, 0], 20)
    by_rank = gain(Correlation(RIGHT, scores), Correlation(HALF, scores), HOW)
    assert (by_rank.metric, by_rank.after) == ("spearman", approx(1))
    assert str(by_rank).startswith("Spearman ")


def against_half(after, **options):
    """The gain over the model that is half right."""
    return gain(Binary(after, LABELS, **options), Binary(HALF, LABELS, **options), HOW)


def test_intervals_widen_with_label_uncertainty():
    def width(sure):
        found = against_half(RIGHT, probabilities=np.where(LABELS == 1, sure, 1 - sure))
        return found.ahead.interval.high - found.ahead.interval.low

    assert width(1.0) < width(0.9) < width(0.7)
    assert against_half(RIGHT, probabilities=np.full(80, 0.5)) is None
    assert against_half(RIGHT, probabilities=LABELS) == against_half(RIGHT)


def test_no_verdict_without_enough_new_pairs():
    """The pairs that weren't trained on are one, of one label, or equally probable."""
    rare = np.arange(80.0) < 2
    for labels, probabilities, trained, new in values(
        """
            TWO | None | [0] | None
            RARE | None | [0, 1] | None
            RARE | JUDGED | [0, 1] | None
            RARE | None | [0] | 79
            """,
        TWO=np.array([1.0, 0]),
        RARE=rare * 1.0,
        JUDGED=np.where(rare, 0.9, 0.1),
    ):
        model, rival = (
            Binary(cosines[: len(labels)], labels, probabilities=probabilities)
            for cosines in (RIGHT, HALF)
        )
        found = gain(model, rival, HOW, trained)
        assert (found.is_judged, found.pairs) == (new is not None, new or len(labels))


def test_too_few_pairs_show_nothing():
    """With three positives among 200 pairs, one gain in seven is chance."""
    for pairs, rarer, word, end in values("""
            29 | 14 | inconclusive | ], 29 pairs: too few to tell)
            30 | 10 | better | ], 30 pairs)
            200 | 9 | inconclusive | ], 200 pairs: too few to tell)
            """):
        found = replace(some(0.004, 0.018), pairs=pairs, rarer=rarer)
        assert found.word == word
        assert str(found).endswith(end)


def test_gains_of_an_evaluation(tmp_path, capsys):
    """With labels 0 and 1, and with the probabilities of `label judge`."""
    rows = [
        pair(f"a {one}", f"the {other}", int(one == other))
        for one in ("man", "dog", "plane")
        for other in ("man", "dog", "plane", "cat")
    ]
    model = save_bert(tmp_path / "bert", seed=1)
    against = save_bert(tmp_path / "other", seed=2)

    def compared(rows, resamples=100):
        return evaluate(model, data=rows, against=against, resamples=resamples)

    def gain_of(rows):
        (found,) = compared(rows).gains.values()
        return found

    told = compared(rows).to_dict()["the list given"]
    assert "using AUC, F1 and accuracy (suite='binary')" in capsys.readouterr().err
    found = gain_of(rows)
    assert told["gain"] == json.loads(json.dumps(found.to_dict()))
    assert {"pearson", "spearman", "roc_auc", "best_accuracy"} <= told.keys()
    assert (found.reliability, found.after) == (1, told["roc_auc"])
    assert (found.pairs, found.rarer) == (12, 3)
    label = pl.col("label")
    table = pl.DataFrame(rows)
    judged = table.with_columns(judged=1, votes=[], probability=0.1 + 0.8 * label)
    doubted = gain_of(judged)
    assert doubted.reliability < 1
    assert (doubted.after, doubted.before) == (found.after, found.before)
    as_csv = judged.with_columns(pl.col("probability").cast(pl.String), votes=0)
    assert gain_of(as_csv) == doubted
    assert gain_of(judged.with_columns(probability=7.5)).reliability == 1
    assert gain_of(table.with_columns(label + 0.5)).metric == "spearman"
    assert not compared(rows, resamples=0).gains


once = np.ones((1, 4))


def test_reliability_by_hand():
    assert reliability(np.array([1.0, 1, 0, 0]), once) == [1]
    # Mean square 0.41.
    assert reliability(np.array([0.9, 0.9, 0.1, 0.1]), once) == approx([0.16 / 0.25])
    # Judges that tell nothing.
    assert np.isnan(reliability(np.array([0.5] * 4), once)[0])
    twice = np.array([[2.0, 0, 0, 2]])  # the second and third pair don't stand there
    found = reliability(np.array([1, 0.5, 0.5, 0.5]), twice)
    assert found == approx([0.0625 / (0.75 * 0.25)])


def test_corrected_auc_by_hand():
    judged = UncertainLabels(
        np.array([0.9, 0.8, 0.2, 0.1]), np.array([0.9, 0.1, 0.9, 0.1])
    )
    # label 1 above label 0, from the top: 0.9 (0.9 + 0.1 + 0.9) + 0.1 (0.1 + 0.9) + 0.9 * 0.9, each pair with
    # itself half: 4 * 0.09 / 2; of 2 * 2
    measured = (1.71 + 0.1 + 0.81 + 0.18) / 4
    assert judged.scores()["roc_auc"] == approx(0.5 + (measured - 0.5) / 0.64)
