"""Texts without labels: the smoothed teacher, batches of neighbourhoods, and whole runs."""

import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

import aoe_train
from aoe_train.data.examples import read_examples
from aoe_train.data.neighbourhoods import MAX_TEXTS, NeighbourBatches, draw_texts, neighbour_teacher
from aoe_train.settings.run_settings import TeacherSettings
from pairkit import ConfigError, DataError
from tests.aoe_train.tiny import WORDS, same_weights, save_bert

quick = settings(max_examples=25, deadline=None)


def sentences(count: int, seed: int = 0) -> list[str]:
    drawn = random.Random(seed)
    return [" ".join(drawn.sample(WORDS, drawn.randint(3, 7))) for _ in range(count)]


TEXTS = list(dict.fromkeys(sentences(80)))


def dense_teacher(texts, vectors, smoothing, neighbours, weight):
    """The formulas with dense matrices and sklearn's words: the teacher, and each text's neighbourhood."""

    def unit(rows):
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

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
    seed=st.integers(0, 10**6),
    smoothing=st.sampled_from([0, 0.25, 1]),
    neighbours=st.integers(1, 30),
    weight=st.sampled_from([0, 0.2, 0.9]),
)
def test_the_teacher_equals_its_formulas(seed, smoothing, neighbours, weight):
    vectors = np.random.default_rng(seed).normal(size=(len(TEXTS), 6))
    given = TeacherSettings(smoothing=smoothing, neighbours=neighbours, lexical_weight=weight)
    teacher = neighbour_teacher(TEXTS, vectors.astype(np.float32), given)
    expected, nearest = dense_teacher(TEXTS, vectors, smoothing, neighbours, weight)
    rows = np.random.default_rng(seed).permutation(len(TEXTS))[:12]
    found = teacher.of_rows(rows).numpy()
    assert (found[:, 0] == found[:, 1]).all()
    np.testing.assert_allclose(found[:, 0] @ found[:, 0].T, expected[np.ix_(rows, rows)], atol=2e-5)
    assert (teacher.nearest == nearest).mean() > 0.99  # but for ties in float32


def test_smoothing_by_hand():
    """Texts 0 and 1 are each other's nearest; 2 prefers 3, and 3 prefers 1, so neither is averaged."""
    angles = np.radians([0, 10, 100, 60])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    vectors = np.concatenate([vectors, -vectors])  # centred
    given = TeacherSettings(smoothing=1, neighbours=1, lexical_weight=0)
    rows = neighbour_teacher([f"w{text}" for text in range(8)], vectors, given).of_rows(np.arange(4))
    found = np.degrees(np.arctan2(*rows[:, 0, :2].numpy().T[::-1]))
    assert found.tolist() == pytest.approx([5, 5, 80, 80], abs=1e-3)


def test_words_of_chinese_texts_count():
    """Without a blank between words, two of four characters in common are a similarity."""
    texts = ["无法保存文件", "文件保存失败", "天气很好", "打开编辑器"]
    given = TeacherSettings(smoothing=0, lexical_weight=0.5)
    rows = neighbour_teacher(texts, np.eye(4, dtype=np.float32), given).of_rows(np.arange(4))[:, 0]
    similarity = (rows @ rows.T).numpy()
    assert similarity[0, 1] > similarity[0, 2] + 0.1
    assert similarity[0, 2] == pytest.approx(similarity[0, 3], abs=1e-6)


def test_texts_without_words_and_collapsed_vectors_are_finite():
    given = TeacherSettings(smoothing=1, lexical_weight=0.2)
    rows = neighbour_teacher(["!", "?", "a b"], np.ones((3, 4), np.float32), given)
    assert rows.of_rows(np.arange(3)).isfinite().all()


@quick
@given(size=st.integers(2, 60), batch_size=st.integers(2, 50), seed=st.integers(0, 99))
def test_batches_are_seeds_with_neighbours(size, batch_size, seed):
    examples = read_examples(TEXTS[:size])
    nearest = np.array([[other for other in range(size) if other != text][:7] for text in range(size)])
    batches = NeighbourBatches(examples, np.ones(size, np.int64), batch_size, nearest, seed=seed, world=1)
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
    examples = draw_texts(read_examples([long, *TEXTS, long + " today", TEXTS[0]]), seed=1)
    assert list(examples.texts) == [long, *TEXTS]
    assert examples.reading.record()["left_out"] == {"near_duplicate": 1}
    assert (examples.rows[:, 0] == np.arange(len(examples))).all()


def test_many_texts_are_drawn_at_random():
    examples = read_examples([f"text {number} {'abc'[number % 3]}" for number in range(MAX_TEXTS + 50)])
    one, other = draw_texts(examples, seed=1), draw_texts(examples, seed=2)
    assert len(one) == MAX_TEXTS
    assert one.reading.left_out == {"not_drawn": 50}
    assert draw_texts(examples, seed=1).texts == one.texts != other.texts


FEW = {"preset": "domain", "top_layers": 1, "lr": 1e-2, "progress": False, "seed": 3}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AOE_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("arguments", "smoothing"),
    [({}, 0.25), ({"purpose": "group"}, 1), ({"purpose": "match"}, 0),
     ({"purpose": "match", "settings": {"teacher.smoothing": 0.5}}, 0.5)],
)  # fmt: skip
def test_plain_texts_become_a_model(shallow, tmp_path, arguments, smoothing):
    run = aoe_train.train(TEXTS, backbone=shallow, out=tmp_path / "model", **FEW, **arguments)
    record = json.loads((tmp_path / "model" / "run.json").read_text())
    assert run.steps == (150 if arguments.get("purpose") == "group" else 75)
    assert record["origin"]["settings"]["teacher"]["smoothing"] == smoothing
    assert record["origin"]["settings"]["objective"]["score_form"] == "kl"
    first, last = run.history[0]["score_distill"], run.history[-1]["score_distill"]
    assert last < first
    card = (tmp_path / "model" / "README.md").read_text()
    assert f"Smoothing {smoothing:g} over 8 mutual neighbours" in card


def test_a_killed_run_resumes_to_the_same_weights(shallow, tmp_path, kill_at):
    flags = {**FEW, "backbone": shallow, "epochs": 1, "settings": {"log.checkpoint_steps": 1}}
    aoe_train.train(TEXTS, out=tmp_path / "whole", **flags)
    kill_at(3, lambda: aoe_train.train(TEXTS, out=tmp_path / "killed", **flags))
    assert same_weights(tmp_path / "whole", tmp_path / "killed")
    assert not same_weights(tmp_path / "whole", shallow)


def test_another_teacher_is_smoothed_the_same_way(shallow, tmp_path):
    save_bert(tmp_path / "teacher", dim=16, layers=1, seed=7)
    run = aoe_train.train(
        TEXTS, backbone=shallow, out=tmp_path / "model", teacher=tmp_path / "teacher", **FEW
    )
    assert run.record["advisers"]["teacher"]["dim"] == 16
    assert run.record["origin"]["settings"]["teacher"]["smoothing"] == 0.25


def test_plain_texts_need_no_preset(tmp_path):
    """With enough layers the preset domain is the default; below that, SimCSE."""
    for layers, preset in ((3, "domain"), (2, "auto")):
        backbone = save_bert(tmp_path / f"bert{layers}", layers=layers)
        run = aoe_train.train(TEXTS, backbone=backbone, out=tmp_path / f"out{layers}", progress=False)
        assert run.record["origin"]["settings"]["preset"] == preset
        assert ("score_distill" in run.history[-1]) == (preset == "domain")


@pytest.mark.parametrize(
    ("arguments", "steps"),
    [({}, ["sample-pairs", "review", "evaluate"]), ({"interpolate": 0}, [])],
)
def test_steps_to_judge_follow_only_a_changed_model(shallow, tmp_path, arguments, steps):
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    run = aoe_train.train(tmp_path / "texts.txt", backbone=shallow, out=tmp_path / "m", **FEW, **arguments)
    commands = [command for _, command in run.next_steps()]
    assert [command[1] for command in commands] == steps
    assert all(str(tmp_path / "texts.txt") in command for command in commands[:1])


def test_a_dry_run_plans_75_steps(shallow, tmp_path):
    planned = aoe_train.plan(TEXTS, backbone=shallow, out=tmp_path / "model", preset="domain", top_layers=1,
                             progress=False)  # fmt: skip
    assert planned.record["steps"] == 75


PAIRS = [{"text1": "a b", "text2": "b c", "label": 1}, {"text1": "a b", "text2": "c d", "label": 0}] * 4


@pytest.mark.parametrize(
    ("data", "arguments", "error", "message"),
    [
        (PAIRS, {"preset": "domain", "purpose": "group"}, ConfigError, "purpose: no effect here"),
        (TEXTS, {"preset": "simcse", "purpose": "group"}, ConfigError, "purpose: no effect here"),
        ({"one": TEXTS, "two": PAIRS}, {"preset": "domain"}, ConfigError, "in a run of their own"),
        (PAIRS, {"settings": {"teacher.neighbours": 4}}, ConfigError, "teacher.neighbours: no effect here"),
        (["a b", "a b"], {"preset": "domain"}, DataError, "fewer than two distinct texts"),
        (TEXTS, {"preset": "domain", "purpose": "clustering"}, ConfigError, "group"),
    ],
)
def test_refusals(shallow, tmp_path, data, arguments, error, message):
    with pytest.raises(error, match=message):
        aoe_train.train(
            data, backbone=shallow, out=tmp_path / "model", top_layers=1, progress=False, **arguments
        )
