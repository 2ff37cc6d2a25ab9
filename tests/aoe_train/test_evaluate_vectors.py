"""Vectors: each input once, two texts in one, and refusals of what is no vector."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from aoe_train.evaluation.dev import dev_metric, mean_reciprocal_rank, triplet_accuracy
from aoe_train.evaluation.pairs import PairTask
from aoe_train.evaluation.task import Vectors
from aoe_train.model.similarity import all_similarities, comparable, pair_similarities
from aoe_train.records import Examples
from aoe_train.settings.training import Similarity
from pairkit.app.errors import DataError


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
def test_pairs_are_compared_as_the_model_says(similarity: Similarity, expected: list[float]) -> None:
    from sentence_transformers.util import SimilarityFunction

    np.testing.assert_allclose(pair_similarities(POINTS, PAIRS, similarity), expected, atol=1e-10)
    points = comparable(POINTS, similarity)
    every = all_similarities(points, points, similarity)
    np.testing.assert_allclose(every[PAIRS[:, 0], PAIRS[:, 1]], expected, atol=1e-7)
    theirs = SimilarityFunction.to_similarity_fn(similarity)(POINTS, POINTS)
    np.testing.assert_allclose(every, theirs, atol=1e-5)


def test_held_out_rows_and_tasks_are_scored_by_it() -> None:
    def encode(texts: list[str]) -> np.ndarray:
        return POINTS[[int(text) for text in texts]]

    labels = np.array([2.0, 1.0, 3.0], np.float32)
    found = {}
    for similarity in get_args(Similarity):
        rows = Examples(["0", "1", "2"], PAIRS, labels, "graded")
        task = PairTask("t", *([str(place) for place in side] for side in PAIRS.T), labels, {})
        judged = task.measure(Vectors(encode, [task.texts], similarity=similarity)).whole.scores()["spearman"]
        found[similarity] = dev_metric(encode, rows, similarity).value
        assert judged == pytest.approx(found[similarity])
    assert found == pytest.approx(
        {"cosine": 0.866025, "dot": 1, "euclidean": 0.5, "manhattan": 0.5}, abs=1e-6
    )
    triplets = np.array([[0, 1, 2]])
    assert [triplet_accuracy(POINTS, triplets, how) for how in get_args(Similarity)] == [1, 1, 0, 0]
    pairs = np.array([[0, 1], [0, 2], [1, 0]])  # nearest by each is another
    assert mean_reciprocal_rank(POINTS, pairs, "dot") == pytest.approx(1)
    assert mean_reciprocal_rank(POINTS, pairs, "euclidean") == pytest.approx(1)


@pytest.mark.parametrize("similarity", get_args(Similarity))
def test_a_tie_is_a_miss_however_large_the_other_rows_are(similarity: Similarity) -> None:
    points = np.random.default_rng(0).normal(scale=30, size=(40, 8)).astype(np.float32)
    vectors = np.concatenate([points, -points, 0 * points])
    vectors[2] = vectors[1]
    # The other row is a miss too: from a point its opposite is farther than the origin.
    found = [
        triplet_accuracy(vectors, np.array([[0, 1, 2], [row, row + 40, row + 80]]), similarity)
        for row in range(3, 40)
    ]
    assert found == [0.0] * 37
