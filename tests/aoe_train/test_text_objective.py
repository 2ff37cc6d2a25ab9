"""Objectives that run the model themselves, and batches of tokens."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import aoe_train
from aoe_train import Encoder, TextBatch, TextObjective

TEXTS = ["a plane", "the dog runs", "a dog", "two planes are taking off", "off", "runs", "a man", "men run"]


class Halves(TextObjective):
    """Compares each text, through a trained matrix, with itself without the last token."""

    def begin(self, encoder: Encoder, kind: str) -> None:
        self.kind = kind
        self.map = torch.nn.Linear(encoder.dim, encoder.dim)

    def forward(self, model: Any, batch: TextBatch) -> dict[str, torch.Tensor]:
        shorter = batch.with_sequences([tokens[:-1] for tokens in batch.sequences()])
        near = torch.cosine_similarity(self.map(batch.vectors(model)), shorter.vectors(model)).mean()
        return {"loss": 2 - near, "near": near.detach()}

    def save(self, folder: Path) -> None:
        np.save(folder / "map.npy", self.map.weight.detach().numpy())


def train(shallow: Path, out: Path, objective: Any = None, **given: Any) -> aoe_train.Trained:
    options = {"batch_size": 4, "lr": 1e-3, "progress": False, **given}
    return aoe_train.train(TEXTS, backbone=shallow, out=out, objective=objective or Halves(), **options)


def test_weights_are_trained_and_saved(shallow, tmp_path):
    objective = Halves()
    run = train(shallow, tmp_path / "m", objective, epochs=3)
    assert objective.kind == "single"
    assert run.steps == 6
    first, *_, last = [entry for entry in run.history if "loss" in entry]
    assert last["loss"] < first["loss"]
    assert "near" in first
    assert np.load(tmp_path / "m/map.npy").shape == (run.encoder.dim, run.encoder.dim)
    assert "Halves" in (tmp_path / "m/README.md").read_text()
    again = train(shallow, tmp_path / "again", epochs=3)
    assert np.array_equal(np.load(tmp_path / "again/map.npy"), np.load(tmp_path / "m/map.npy"))
    assert again.encoder.encode(TEXTS) == pytest.approx(run.encoder.encode(TEXTS))
    assert aoe_train.plan(TEXTS, backbone=shallow, objective=Halves(), progress=False).memory_mb > 0


@pytest.mark.parametrize("prompt", [None, "q: "])
def test_token_batches_give_the_encoders_vectors(prompt, shallow):
    encoder = Encoder.load(shallow, device="cpu", inference_only=True)
    found = np.empty((len(TEXTS), encoder.dim), np.float32)
    sizes = []
    with torch.inference_mode():
        for places, batch in encoder.token_batches(TEXTS, prompt=prompt, batch_tokens=16):
            assert len(batch.states(encoder.model)) == batch.lengths.sum()
            found[places] = batch.vectors(encoder.model).numpy()
            sizes.append(len(places))
    assert sum(sizes) == len(TEXTS)
    assert len(sizes) > 1
    assert found == pytest.approx(encoder.encode(TEXTS, prompt=prompt, normalize=False), abs=1e-5)
