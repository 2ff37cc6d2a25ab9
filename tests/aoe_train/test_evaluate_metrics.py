"""Metrics of pairs and dev data, compared with scipy, scikit-learn and results by hand; vectors of tasks."""

import re
import warnings
from functools import partial
from itertools import chain
from typing import get_args

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_equal
from scipy import stats
from sklearn import metrics

from aoe_train import evaluate
from aoe_train.evaluation.dev import dev_scores
from aoe_train.evaluation.pair_metrics import Binary, Thresholds, binary, correlation
from aoe_train.evaluation.search_results import (
    RetrievalTask,
    is_nearer,
    reciprocal_ranks,
)
from aoe_train.evaluation.tasks import Resampling, TaskVectors, intervals
from aoe_train.model.similarity import (
    all_similarities,
    comparable,
    pair_similarities,
)
from aoe_train.objectives.training_rows import ABSENT, Examples
from aoe_train.settings.train_settings import NamedPrompts, Similarity
from tests.aoe_train import tiny
from tests.aoe_train.shorthand import figures, stderr
from tests.support.shorthand import (
    approx,
    config_error,
    data_error,
    input_error,
    parametrize,
    raises,
    table,
    values,
)

BINARY = st.lists(
    # few distinct cosines, so that there are ties; how often each pair stands
    st.tuples(
        st.integers(-5, 5).map(lambda tenth: tenth / 10),
        st.integers(0, 1),
        st.integers(0, 3),
    ),
    min_size=2,
    max_size=30,
).filter(
    lambda rows: (
        len({c for c, _, n in rows if n}) > 1
        and len({label for _, label, n in rows if n}) > 1
    )
)


def by_other_folds(cosines, labels):
    """Predictions at the best thresholds of the other folds, for F1 and accuracy."""
    order = [*np.flatnonzero(labels == 0), *np.flatnonzero(labels == 1)]
    found = np.zeros((2, len(labels)), int)
    for place, pair in enumerate(order):
        others = [
            other
            for at, other in enumerate(order)
            if (at - place) % min(10, len(order))
        ]
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
    x = np.repeat(cosines, counts)
    y = np.repeat(labels, counts)
    above = x >= limit
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
    assert {name: value for name, (value,) in found.items()} == approx(
        expected, abs=1e-12
    )
    assert [*found] == [*expected]
    scores = Binary(x, y, Binary(x, y).best_thresholds()).scores()
    for name, score in (("f1", metrics.f1_score), ("accuracy", metrics.accuracy_score)):
        # Of all thresholds, one of which accepts nothing.
        best = max(score(y, x >= limit) for limit in [*x, 2.0])
        assert scores[name] == approx(best)


def test_draws_with_one_label_are_undefined():
    judged = Binary(np.array([0.9, 0.1]), np.array([1, 0]), Thresholds(0.5, 0.5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = judged.figures(np.array([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]]))
        bounds = intervals(judged, Resampling(100, 0))
    nan = np.nan
    assert_equal(found["roc_auc"], [nan, nan, 1])
    assert_equal(found["average_precision"], [1, nan, 1])
    # Nothing to find, and nothing found.
    assert_equal(found["f1"], [1, nan, 1])
    assert_equal(found["accuracy"], [1, 1, 1])
    assert bounds["roc_auc"] == (1, 1)


@table(
    """
    cosines, labels, message
    [0.1, 0.2] | [1, 1] | all labels are 1
    ALIKE | [0, 1, 1] | all cosines are 0.3
    # not a number
    [0.3, None] | [0, 1] | the model's vectors contain NaN
    [0.3] | [0] | 1 pairs
    [] | [] | 0 pairs
    """,
    ALIKE=[0.3, 0.3 + 1e-16, 0.3 - 1e-16],
)
def test_undefined_metrics_are_refused(cosines, labels, message):
    for judge in (binary, correlation):
        with data_error(f"^mine: {message}"):
            judge(np.array(cosines, float), np.array(labels, float), "mine")


def test_only_correlations_take_other_labels_than_0_and_1():
    cosines = np.array([0.1, 0.2, 0.3])
    labels = np.array([0, 1, 2.5])
    assert correlation(cosines, labels, "mine").n == 3
    with data_error("^mine: found the label 2.5, expected only 0 and 1"):
        binary(cosines, labels, "mine")


@table("cosine, label\n1e-7 | 1e-6\n500_000.1 | 0.1")
def test_a_correlation_of_any_scale(cosine, label):
    cosines = cosine * np.array([1, 1, 1, 2])
    found = correlation(cosines, label * np.arange(4), "mine")
    draws = np.array([[0, 0, 1, 1], [1, 1, 1, 0]], float)  # in the second all are equal
    assert_allclose(found.pearson(draws), [1, np.nan])


def lengths(texts):
    return np.float32([[len(text), 1] for text in texts])


def no_number(texts):
    return np.where([["c" in text] for text in texts], np.nan, lengths(texts))


@table(
    r"""
    broken, words
    FEW | vectors of 4 texts have shape \(
    FLAT | vectors of 4 texts have shape \(
    NAN | vectors of 2 of 4 texts contain NaN .*first 'cc'
    """,
    FEW=lambda texts: lengths(texts)[:-1],
    FLAT=lambda texts: lengths(texts)[:, 0],
    NAN=no_number,
)
def test_invalid_vectors_are_refused(broken, words):
    with data_error(words):
        TaskVectors(broken, [["a", "cc", "b", "dc"]])


PAIRS = np.array(
    values("""
    0 | 1
    0 | 2
    1 | 1
    0 | 3
    """)
)
POINTS = np.float32(
    values("""
    3 | 4
    6 | 8
    0 | 5
    0 | 0
    """)
)


@table(
    """
    similarity, expected
    cosine | [1, 0.8, 1, 0]
    dot | [50, 20, 100, 0]
    euclidean | DISTANCES
    manhattan | [-7, -4, 0, -7]
    """,
    DISTANCES=[-5, -np.sqrt(10), 0, -5],
)
def test_similarities_by_each_measure(similarity, expected):
    assert_allclose(pair_similarities(POINTS, PAIRS, similarity), expected, atol=1e-11)
    points = comparable(POINTS, similarity)
    every = all_similarities(points, points, similarity)
    assert_allclose(every[PAIRS[:, 0], PAIRS[:, 1]], expected, atol=1e-7)


def test_ranks_use_the_similarity():
    triplets = np.array([[0, 1, 2]])
    found = [is_nearer(POINTS, triplets, how).mean() for how in get_args(Similarity)]
    assert found == [1, 1, 0, 0]
    pairs = np.array([[0, 1], [0, 2], [1, 0]])  # nearest by each is another
    for how in ("dot", "euclidean"):
        assert reciprocal_ranks(POINTS, pairs, how).mean() == approx(1)


@parametrize("similarity", get_args(Similarity))
def test_ties_are_misses_beside_large_vectors(similarity):
    points = default_rng(0).normal(scale=30, size=(40, 8)).astype(np.float32)
    vectors = np.concatenate([points, -points, 0 * points])
    vectors[2] = vectors[1]
    # The other row is a miss too: from a point its opposite is farther than the origin.
    for row in range(3, 40):
        triplets = np.array([[0, 1, 2], [row, row + 40, row + 80]])
        assert not is_nearer(vectors, triplets, similarity).any()


# Angles on a circle: the nearer two of them, the larger the cosine.
ANGLES = dict(
    values("""
    a | 0
    b | 10
    c | 40
    d | 90
    e | 170
    """)
)


def on_circle(texts, **_):
    return tiny.on_circle([ANGLES[text] for text in texts])


def dev_metric(rows, encode=on_circle):
    return dev_scores(encode, {"dev": rows}).deciding


def examples(kind, rows, labels=None):
    texts = sorted({*chain(*rows)})
    numbers = np.array([[texts.index(text) for text in row] for row in rows])
    return Examples(
        texts, numbers, None if labels is None else np.float32(labels), kind
    )


@table(
    """
    kind, labels, expected
    graded | [5, 3, 0] | 1
    # two rows tie: ranks 2.5 2.5 1 against 3 2 1 give 1.5 / sqrt(1.5 * 2)
    binary | [1, 1, 0] | TIED
    """,
    TIED=1.5 / 3**0.5,
)
def test_labelled_pairs_give_spearman(kind, labels, expected):
    metric = dev_metric(examples(kind, ["ab", "bd", "ae"], labels))
    assert metric == ("spearman", approx(expected))


def test_triplets_give_the_share_of_correct_rows():
    rows = examples("triplet", ["abd", "adc", "acc", "eda"])  # a tie is wrong
    assert dev_metric(rows) == ("triplet_accuracy", 0.5)
    wide = examples("triplet", ["abdc", "acdb", "edab", "deac"])
    # b is 10 from a; c is 40 and b nearer; d is 80 from e, all else farther; from d, c is 50 and e 80
    assert dev_metric(wide) == ("triplet_accuracy", 0.5)
    wide.rows[3, 3] = ABSENT  # and a is 90
    assert dev_metric(wide) == ("triplet_accuracy", 0.75)


@table(
    """
    rows, expected
    # as above with a second positive of a, which is nearer to d than e is: e is third
    ['ab', 'cd', 'de', 'ac'] | THIRDS
    # c is 40 from a, and the negative b nearer; d is first of e, whose other negative is not its own
    ['acb', 'eda'] | {'mrr': 0.75, 'recall@1': 0.5, 'triplet_accuracy': 0.5, 'n': 2}
    # b is first of a, and the negative c nearer than d; the repeated positive b counts once
    ['abe', 'abc', 'ade'] | {'mrr': 1, 'recall@1': 0.5, 'triplet_accuracy': 1, 'n': 1}
    """,
    THIRDS={"mrr": 11 / 18, "recall@1": 1 / 3, "n": 3},
)
def test_evaluate_ranks_positives_and_triplets(rows, expected):
    data = [
        dict(zip(("anchor", "positive", "negative"), row, strict=False)) for row in rows
    ]
    told = figures(evaluate(on_circle, data=data, resamples=0))
    assert {name: told[name] for name in expected} == approx(expected)


def test_evaluate_ranks_texts_of_one_group(capsys):
    groups = {"a": "x", "b": "x", "c": "y", "d": "y", "e": "alone"}
    data = [{"text": text, "intent": group} for text, group in groups.items()]
    columns = {"text": "text", "group": "intent"}
    ranked = partial(evaluate, on_circle, columns=columns, resamples=0)
    told = figures(ranked(data=data))
    # first are b of a, a of b, b of c (d is third), c of d
    assert (told["P@1"], told["n"]) == (3 / 4, 4)
    assert told["map@10"] == approx((1 + 1 + 1 / 3 + 1) / 4)
    repeated = [*data, {"text": "a", "intent": "y"}]
    assert figures(ranked(data=repeated)) == told
    assert "left out 1 rows with repeated texts" in stderr(capsys)
    with_lone_text = [*data, {"text": "f", "intent": None}]
    assert figures(ranked(data=with_lone_text, bad_rows="skip")) == told
    for wrong, words in values(
        """
            LONE | group is empty
            ALONE | each group has one text
            {'columns': {'group': 'intent', 'label': 'x'}} | takes only text and group
            {'labels': 'x=1'} | labels= has no effect, because the list given has no labels
            """,
        LONE={"data": with_lone_text},
        ALONE={"data": data[3:]},
    ):
        with input_error(words):
            ranked(**{"data": data, **wrong})


def test_the_verdict_on_positives_is_by_mrr():
    pairs = [
        {"anchor": f"question {n} ?", "positive": f"answer {n} ."} for n in range(60)
    ]

    def encode(texts):
        return np.eye(60, dtype=np.float32)[[int(text.split()[1]) for text in texts]]

    def worse(texts):
        return encode(texts) + 3 * default_rng(1).random((len(texts), 60), np.float32)

    (gain,) = evaluate(encode, data=pairs, against=worse).gains.values()
    assert (gain.word, gain.metric, gain.after) == ("better", "mrr", 1)
    assert re.search(r"^MRR \d.* -> 100.00 \(.*, 60 queries\)$", str(gain))
    with config_error("labels= has no effect, because the list given has no labels"):
        evaluate(encode, data=pairs, labels="1=1")


def test_searches_use_the_prompts_for_queries_and_documents():
    calls = []

    def encode(texts, prompt=None):
        calls.append((prompt, texts))
        return on_circle(texts)

    task = RetrievalTask("pairs", examples("positive", ["ab", "bc"]))
    prompts = NamedPrompts({"query": "q: ", "document": "d: "})
    prompted = TaskVectors(encode, [task.texts, ["a"]], prompts=prompts)
    assert calls == [("q: ", ["a", "b"]), ("d: ", ["b", "c"]), (None, ["a"])]
    plain = TaskVectors(encode, [task.texts, ["a"]], prompts=NamedPrompts({}))
    assert calls[3:] == [(None, ["a", "b", "c"])]
    assert task.measure(prompted).scores() == task.measure(plain).scores()


@table(
    """
    rows, error, words
    TEXTS | ConfigError | single texts
    NONE | DataError | no examples
    """,
    TEXTS=examples("single", ["a"]),
    NONE=Examples([], np.empty((0, 2), np.int64), None, "positive"),
)
def test_unscorable_data(rows, error, words):
    with raises(error, match=words):
        dev_metric(rows)
    with data_error("contain NaN or infinity"):
        dev_metric(
            examples("positive", ["ab"]), lambda texts, **_: on_circle(texts) * np.nan
        )


def slow_mrr(vectors, pairs):
    """A simple implementation, row by row."""
    directions = tiny.unit(vectors)
    cosines = directions @ directions.T
    known = {*map(tuple, pairs)}
    ranks = []
    for anchor, positive in pairs:
        rivals = {
            other
            for other in pairs[:, 1]
            if other != anchor and (anchor, other) not in known
        }
        limit = cosines[anchor, positive] - 1e-12
        ranks.append(1 + sum(cosines[anchor, other] >= limit for other in rivals))
    return np.mean(1 / np.array(ranks))


@settings(max_examples=20)
@given(
    arrays(np.float64, (300, 3), elements=st.integers(-4, 4)),
    arrays(np.int64, (200, 2), elements=st.integers(0, 299)),
)
def test_mean_reciprocal_rank_equals_a_loop(vectors, pairs):
    vectors += [0.5, 0.25, 0.125]  # no zero vectors
    expected = slow_mrr(vectors, pairs)
    assert reciprocal_ranks(vectors, pairs).mean() == approx(expected, abs=1e-12)


def test_collapsed_vectors_have_the_worst_rank():
    # One direction.
    collapsed = np.outer(np.linspace(1, 2, 300), [0.3, 0.1, 0.7])
    ranks = reciprocal_ranks(collapsed, np.arange(20).reshape(10, 2))
    assert ranks.mean() == approx(0.1)


def flipped(texts, **_):
    return on_circle(texts)[:, ::-1] * [1, 0.2]


@table(
    """
    kind, labels, rows, count
    binary | [1, 0] | ['ab', 'ec'] | 8
    graded | [5, 0] | ['ab', 'ec'] | 40
    triplet | None | ['abd', 'ecd'] | 40
    positive | None | ['ab', 'ec'] | 40
    """,
)
def test_a_gain_on_held_out_rows_has_an_interval(kind, labels, rows, count):
    dev = examples(kind, rows * (count // 2), labels and labels * (count // 2))
    after, before = (
        dev_scores(encode, {"dev": dev}) for encode in (on_circle, flipped)
    )
    found = after.gain_over(before, seed=1)
    low, high = found["ci95"]
    assert low <= found["difference"] <= high
    assert found["difference"] == approx(after.deciding.value - before.deciding.value)
    assert (found["rows"], found["too_few"]) == (count, kind == "binary")
    many = examples("triplet", ["abd"] * 1001)
    for without, chosen in (
        ({"dev": dev, "two": dev}, None),  # a mean of sets
        ({"one": many}, None),
        ({"dev": dev, "one": many}, "dev"),  # many rows, all of which are scored
    ):
        scores = dev_scores(on_circle, without, chosen=chosen)
        assert scores.gain_over(scores, seed=1) is None
