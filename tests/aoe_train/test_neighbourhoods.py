"""Texts without labels: the smoothed teacher, and batches of neighbourhoods."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from sklearn.feature_extraction.text import TfidfVectorizer

from aoe_train.data.examples import read_examples
from aoe_train.data.neighbourhoods import (
    MAX_TEXTS,
    NeighbourBatches,
    draw_texts,
    neighbour_teacher,
)
from aoe_train.settings.run_settings import TeacherSettings
from tests.aoe_train.test_objectives_mix import quick, seeds
from tests.aoe_train.test_train_texts import TEXTS
from tests.aoe_train.tiny import WORDS, unit
from tests.support.shorthand import approx


def dense_teacher(texts, vectors, smoothing, neighbours, weight):
    """The formulas with dense matrices and sklearn's words: the teacher, and each text's neighbourhood."""

    own = unit(vectors - vectors.mean(0))
    pattern = TfidfVectorizer(sublinear_tf=True, token_pattern=r"(?u)\b\w+\b")
    lexical = (pattern.fit_transform(texts) @ pattern.transform(texts).T).toarray()
    graph = (1 - weight) * own @ own.T + weight * lexical - 9 * np.eye(len(texts))
    nearest = np.argsort(-graph, axis=1)
    linked = np.zeros_like(graph)
    for text, near in enumerate(nearest):
        linked[text, near[:neighbours]] = 1
    smoothed = unit((linked * linked.T + np.eye(len(texts))) @ own)
    cosines = smoothing * smoothed @ smoothed.T + (1 - smoothing) * own @ own.T
    return (1 - weight) * cosines + weight * lexical, nearest[:, : max(20, neighbours)]


@quick
@given(
    seed=seeds,
    smoothing=st.sampled_from([0, 0.25, 1]),
    neighbours=st.integers(1, 30),
    weight=st.sampled_from([0, 0.2, 0.9]),
)
def test_the_teacher_equals_its_formulas(seed, smoothing, neighbours, weight):
    vectors = default_rng(seed).normal(size=(len(TEXTS), 6))
    given = TeacherSettings(
        smoothing=smoothing, neighbours=neighbours, lexical_weight=weight
    )
    teacher = neighbour_teacher(TEXTS, vectors.astype(np.float32), given)
    expected, nearest = dense_teacher(TEXTS, vectors, smoothing, neighbours, weight)
    rows = default_rng(seed).permutation(len(TEXTS))[:12]
    found = teacher.of_rows(rows).numpy()
    assert found.dtype == np.float32
    assert (found[:, 0] == found[:, 1]).all()
    np.testing.assert_allclose(
        found[:, 0] @ found[:, 0].T, expected[np.ix_(rows, rows)], atol=2e-5
    )
    assert (teacher.nearest == nearest).mean() > 0.99  # but for ties in float32


def test_words_of_chinese_texts_count():
    """Without a blank between words, two of four characters in common are a similarity."""
    texts = ["无法保存文件", "文件保存失败", "天气很好", "打开编辑器"]
    given = TeacherSettings(smoothing=0, lexical_weight=0.5)
    teacher = neighbour_teacher(texts, np.eye(4, dtype=np.float32), given)
    rows = teacher.of_rows(np.arange(4))[:, 0]
    similarity = (rows @ rows.T).numpy()
    assert similarity[0, 1] > similarity[0, 2] + 0.1
    assert similarity[0, 2] == approx(similarity[0, 3], abs=1e-6)


def test_texts_without_words_and_collapsed_vectors_are_finite():
    given = TeacherSettings(smoothing=1, lexical_weight=0.2)
    rows = neighbour_teacher(["!", "?", "a b"], np.ones((3, 4), np.float32), given)
    assert rows.of_rows(np.arange(3)).isfinite().all()


@quick
@given(size=st.integers(2, 60), batch_size=st.integers(2, 50), seed=st.integers(0, 99))
def test_batches_are_seeds_with_neighbours(size, batch_size, seed):
    examples = read_examples(TEXTS[:size])
    nearest = np.array(
        [[other for other in range(size) if other != text][:7] for text in range(size)]
    )
    batches = NeighbourBatches(
        examples, np.ones(size, np.int64), batch_size, nearest, seed=seed, world=1
    )
    plans = [batches.plan(0), batches.plan(1)]
    for plan in plans:
        assert len(plan) == len(batches)
        assert max(map(len, plan)) <= max(batch_size, 4)
        assert all(len(np.unique(rows)) == len(rows) > 1 for rows in plan)
        assert set(np.concatenate(plan).tolist()) == set(range(size))
    assert batches.rows_seen(2) == sum(len(rows) for plan in plans for rows in plan)
    for one, again in zip(plans[0], batches.plan(0), strict=True):
        assert (one == again).all()


def test_near_duplicates_are_left_out_and_counted():
    long = " ".join(WORDS[:12])
    examples = draw_texts(
        read_examples([long, *TEXTS, long + " today", TEXTS[0]]), seed=1
    )
    assert list(examples.texts) == [long, *TEXTS]
    assert examples.reading.record()["left_out"] == {"near_duplicate": 1}
    assert (examples.rows[:, 0] == np.arange(len(examples))).all()


def test_many_texts_are_drawn_at_random():
    examples = read_examples(
        [f"text {number} {'abc'[number % 3]}" for number in range(MAX_TEXTS + 50)]
    )
    one, other = draw_texts(examples, seed=1), draw_texts(examples, seed=2)
    assert len(one) == MAX_TEXTS
    assert one.reading.left_out == {"not_drawn": 50}
    assert draw_texts(examples, seed=1).texts == one.texts != other.texts
