"""Runs on texts without labels, also with objectives that run the model themselves."""

import math
from string import ascii_lowercase

import numpy as np
import torch

import aoe_train
from aoe_train import TextObjective, plan
from tests.aoe_train.test_train_teachers import sentences
from tests.aoe_train.tiny import card_of, load, save_bert, write_lines
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
