"""InferSent's loss, what of it learns, and the way from a file of word vectors to a model."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from aoe_train import Encoder
from aoe_train._backbones.bilstm import write_bilstm
from aoe_train._baselines.infersent import InferSent, features
from aoe_train._baselines.way import Rows, Texts, TrainedOn
from aoe_train._records import ABSENT
from aoe_train._run_data import Sources
from aoe_train._settings import TrainSettings
from aoe_train._train import train
from pairkit.config import load_settings
from pairkit.errors import ConfigError
from tests.aoe_train.tiny import WORDS, save_words

PAIRS = TrainedOn("binary")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("infersent")
    write_bilstm(save_words(home / "words.txt"), home / "bilstm", size=6)
    return home / "bilstm"


def test_features_by_hand():
    found = features(torch.tensor([[1.0, -2.0]]), torch.tensor([[3.0, 0.5]]))
    assert found.tolist() == [[1.0, -2.0, 3.0, 0.5, 2.0, 2.5, 3.0, -1.0]]


def test_the_loss_is_that_of_the_classes_and_words_do_not_learn(folder: Path):
    encoder = Encoder.load(folder, device="cpu", pooling="max")
    way = InferSent(encoder, PAIRS)
    batch = encoder.tokens(WORDS[:3]).batch(np.arange(3))
    places, labels = torch.tensor([[0, 1], [2, 0]]), torch.tensor([1.0, 0.0])
    texts = Texts(batch["input_ids"], batch["lengths"])
    loss = way(encoder.model, texts, torch.arange(3), Rows(places, labels))["loss"]
    vectors = torch.from_numpy(encoder.encode(WORDS[:3]))
    total = 0.0
    for (one, other), label in zip(places.tolist(), labels.long().tolist(), strict=True):
        u, v = vectors[one], vectors[other]
        hidden = torch.cat([u, v, (u - v).abs(), u * v])
        for layer in way.classifier:
            hidden = layer.weight @ hidden + layer.bias
        total -= torch.log_softmax(hidden, 0)[label].item()
    assert loss.item() == pytest.approx(total / 2, rel=1e-5)
    loss.backward()
    backbone = encoder.model.backbone
    assert backbone.embeddings.weight.grad is None
    assert all(weight.grad is not None for weight in backbone.lstm.parameters())


def test_a_triplet_is_two_pairs(folder: Path):
    encoder = Encoder.load(folder, device="cpu", pooling="max")
    way = InferSent(encoder, TrainedOn("triplet"))
    batch = encoder.tokens(WORDS[:4]).batch(np.arange(4))
    texts, numbers = Texts(batch["input_ids"], batch["lengths"]), torch.arange(4)
    triplets = Rows(torch.tensor([[0, 1, 2], [3, 2, ABSENT]]), None)
    pairs = Rows(torch.tensor([[0, 1], [0, 2], [3, 2]]), torch.tensor([1.0, 0.0, 1.0]))
    found, expected = (way(encoder.model, texts, numbers, rows)["loss"] for rows in (triplets, pairs))
    torch.testing.assert_close(found, expected)


def test_from_a_file_of_word_vectors_to_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AOE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(write_bilstm, "__defaults__", (6,))
    words = save_words(tmp_path / "words.txt")
    draw = random.Random(1)
    rows = [[" ".join(draw.sample(WORDS, 4)) for _ in range(2)] + [str(n % 2)] for n in range(24)]
    data = tmp_path / "nli.tsv"
    data.write_text("sentence1\tsentence2\tlabel\n" + "".join("\t".join(row) + "\n" for row in rows))
    settings = load_settings(TrainSettings, flags={"preset": "infersent", "optim.epochs": 1})
    sources = Sources({"nli": str(data)}, str(words), tmp_path / "m")
    record = train(sources, settings, say=lambda _: None, progress=False)
    assert record["sources"]["backbone"] == str(words)
    model = Encoder.load(tmp_path / "m", device="cpu")
    assert (model.settings.pooling, model.dim) == ("max", 12)
    (made,) = (tmp_path / "cache/backbones").glob("bilstm-*/model.safetensors")
    before, trained = load_file(made), load_file(tmp_path / "m/model.safetensors")
    assert torch.equal(trained["embeddings.weight"], before["embeddings.weight"])
    assert not torch.equal(trained["lstm.weight_hh_l0"], before["lstm.weight_hh_l0"])


def test_other_backbones_are_refused(bert: Path):
    with pytest.raises(ConfigError, match=r"no BertModel; give a file of them, such as --backbone glove"):
        InferSent(Encoder.load(bert, device="cpu"), PAIRS)
