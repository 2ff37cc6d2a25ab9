"""Texts without labels: runs, objectives that run the model themselves, the smoothed teacher and its batches."""

import math
from string import ascii_lowercase

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import default_rng
from sklearn.feature_extraction.text import TfidfVectorizer

import aoe_train
from aoe_train import TextObjective, plan
from aoe_train.data.examples import read_examples
from aoe_train.data.neighbourhoods import (
    MAX_TEXTS,
    NeighbourBatches,
    draw_texts,
    neighbour_teacher,
)
from aoe_train.settings.run_settings import TeacherSettings
from tests.aoe_train.test_objectives_mix import quick, seeds
from tests.aoe_train.test_train_teachers import sentences
from tests.aoe_train.tiny import WORDS, card_of, load, save_bert, unit, write_lines
from tests.support.shorthand import approx, parametrize, table, text_lines, values

TEXTS = list(dict.fromkeys(sentences(80)))
FEW = {"preset": "domain", "top_layers": 1, "lr": 1e-2, "seed": 3}


@table(
    """
    arguments, smoothing, question
    {} | 0.25 | None
    {'purpose': 'group'} | 1 | Do both texts belong to the same topic or intent?
    {'purpose': 'match'} | 0 | None
    {'purpose': 'search'} | 0.25 | Does the second text answer the first, or ask the same?
    """,
)
def test_plain_texts_become_a_model(
    shallow, out, tmp_path, arguments, smoothing, question
):
    texts = write_lines(tmp_path / "texts.txt", TEXTS)
    how = {"backbone": shallow, **FEW, **arguments}
    run = aoe_train.train(texts, out=out, **how)
    steps = math.ceil(2.7 * math.ceil(len(TEXTS) / 12))
    assert run.steps == plan(TEXTS, **how).record["steps"] == steps
    settings = run.record["origin"]["settings"]
    assert settings["teacher"]["smoothing"] == smoothing
    assert settings["objective"]["score_form"] == "kl"
    assert run.history[-1]["score_distill"] < run.history[0]["score_distill"]
    assert f"Smoothing {smoothing:g} over 3 mutual neighbours" in card_of(out)
    (_, sample), (_, review), (_, compare) = run.next_steps()
    assert (sample[1], review[1], compare[1]) == ("sample-pairs", "review", "evaluate")
    assert sample[-2:] == (
        ["--purpose", arguments["purpose"]] if arguments else ["--out", "to-judge"]
    )
    assert review[5:] == ["400", *(("--question", question) if question else ())]


def test_plain_texts_need_no_preset(tmp_path):
    """With enough layers the preset domain is the default; below that, SimCSE."""
    for layers, preset in values("""
            3 | domain
            2 | auto
            """):
        backbone = save_bert(tmp_path / f"bert{layers}", layers=layers)
        run = aoe_train.train(TEXTS, backbone=backbone, out=tmp_path / f"out{layers}")
        assert run.record["origin"]["settings"]["preset"] == preset
        assert ("score_distill" in run.history[-1]) == (preset == "domain")


def test_an_unchanged_model_has_no_next_steps(shallow, out):
    run = aoe_train.train(TEXTS, backbone=shallow, out=out, **FEW, interpolate=0)
    assert run.next_steps() == []


SHORT = text_lines("""
    a plane
    the dog runs
    a dog
    two planes are taking off
    off
    runs
    a man
    men run
""")


class Halves(TextObjective):
    """Compares each text, through a trained matrix, with itself without the last token."""

    def begin(self, encoder, kind):
        self.kind = kind
        self.map = torch.nn.Linear(encoder.dim, encoder.dim)

    def forward(self, model, batch):
        shorter = batch.with_sequences([tokens[:-1] for tokens in batch.sequences()])
        near = torch.cosine_similarity(
            self.map(batch.vectors(model)), shorter.vectors(model)
        ).mean()
        return {"loss": 2 - near, "near": near.detach()}

    def save(self, folder):
        np.save(folder / "map.npy", self.map.weight.detach().numpy())


def train(shallow, out, objective=None, **given):
    options = {"batch_size": 4, "lr": 1e-3, **given}
    return aoe_train.train(
        SHORT, backbone=shallow, out=out, objective=objective or Halves(), **options
    )


def test_weights_are_trained_and_saved(shallow, tmp_path):
    objective = Halves()
    run = train(shallow, tmp_path / "m", objective, epochs=3)
    assert objective.kind == "single"
    assert run.steps == 6
    first, *_, last = [entry for entry in run.history if "loss" in entry]
    assert last["loss"] < first["loss"]
    assert "near" in first
    again = train(shallow, tmp_path / "again", epochs=3)
    one, other = (np.load(found.out / "map.npy") for found in (run, again))
    assert one.shape == (run.encoder.dim, run.encoder.dim)
    assert "Halves" in card_of(tmp_path / "m")
    assert np.array_equal(one, other)
    assert again.encoder.encode(SHORT) == approx(run.encoder.encode(SHORT))
    assert plan(SHORT, backbone=shallow, objective=Halves()).memory_mb > 0


@parametrize("prompt", [None, "q: "])
def test_token_batches_give_the_encoders_vectors(prompt, shallow):
    encoder = load(shallow, inference_only=True)
    found = np.empty((len(SHORT), encoder.dim), np.float32)
    sizes = []
    with torch.inference_mode():
        for places, batch in encoder.token_batches(
            SHORT, prompt=prompt, batch_tokens=16
        ):
            assert len(batch.states(encoder.model)) == batch.lengths.sum()
            found[places] = batch.vectors(encoder.model).numpy()
            sizes.append(len(places))
            assert batch.rows.flatten().tolist() == [*range(len(places))]
    assert sum(sizes) == len(SHORT)
    assert len(sizes) > 1
    assert found == approx(
        encoder.encode(SHORT, prompt=prompt, normalize=False), abs=1e-5
    )


@table(
    """
    texts, purpose, steps
    # 2.7 epochs of 25 steps
    300 | group | 68
    1800 | search | 75
    # 2,000 are drawn
    2500 | group | 450
    """,
)
def test_steps_follow_the_number_of_texts(shallow, texts, purpose, steps):
    random = np.random.default_rng(0)
    distinct = ["".join(random.choice([*ascii_lowercase], 24)) for _ in range(texts)]
    found = plan(distinct, backbone=shallow, **FEW, purpose=purpose)
    assert found.record["steps"] == steps


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
    for made in plans:
        assert len(made) == len(batches)
        assert max(map(len, made)) <= max(batch_size, 4)
        assert all(len(np.unique(rows)) == len(rows) > 1 for rows in made)
        assert set(np.concatenate(made).tolist()) == set(range(size))
    assert batches.rows_seen(2) == sum(len(rows) for made in plans for rows in made)
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
