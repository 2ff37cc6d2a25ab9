"""A BiLSTM over word vectors: its words, its states against an LSTM step by step, and its folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from aoe_train import Encoder
from aoe_train._backbones.bilstm import bilstm_folder, write_bilstm
from pairkit.errors import DataError

LINES = {
    "<s>": [0.1, 0.2, 0.3],
    "it": [1.0, 0.0, -1.0],
    "'s": [0.5, 0.5, 0.5],
    "raining": [-1.0, 2.0, 0.0],
    ".": [0.0, 0.0, 1.0],
}


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_text("".join(f"{word} {' '.join(map(str, numbers))}\n" for word, numbers in LINES.items()))
    return path


@pytest.fixture
def folder(words: Path, tmp_path: Path) -> Path:
    write_bilstm(words, tmp_path / "bilstm", size=4)
    return tmp_path / "bilstm"


def steps(states: torch.nn.LSTM, numbers: torch.Tensor, suffix: str) -> torch.Tensor:
    """The states of one direction, by the LSTM's equations."""
    inner, outer, one, two = (
        getattr(states, f"{name}_l0{suffix}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    hidden = cell = torch.zeros(outer.shape[1])
    found = []
    for number in numbers:
        take, forget, new, give = (inner @ number + outer @ hidden + one + two).chunk(4)
        cell = forget.sigmoid() * cell + take.sigmoid() * new.tanh()
        hidden = give.sigmoid() * cell.tanh()
        found.append(hidden)
    return torch.stack(found)


def test_a_vector_is_the_largest_value_of_each_state(folder: Path):
    encoder = Encoder.load(folder, device="cpu", pooling="max")
    texts = ["It\u2019s raining.", "it", "snow raining"]
    read = [["<s>", "it", "'s", "raining", ".", None], ["<s>", "it", None], ["<s>", None, "raining", None]]
    for vector, names in zip(encoder.encode(texts), read, strict=True):
        numbers = torch.tensor([LINES.get(name or "", [0.0, 0.0, 0.0]) for name in names])
        lstm = encoder.model.backbone.lstm
        there = steps(lstm, numbers, "")
        back = steps(lstm, numbers.flip(0), "_reverse").flip(0)
        expected = torch.cat([there, back], dim=1).amax(0)
        np.testing.assert_allclose(vector, expected.detach(), atol=1e-6)


def test_a_file_with_capitals_is_read_as_it_is_written(words: Path, tmp_path: Path):
    words.write_text(words.read_text() + "Rust 1 2 3\n")
    write_bilstm(words, tmp_path / "cased", size=4)
    tokenizer = Encoder.load(tmp_path / "cased", device="cpu").tokenizer
    assert tokenizer.tokenize("Rust rust It it") == ["Rust", "[UNK]", "[UNK]", "it"]


def test_a_saved_model_gives_the_same_vectors_here_and_by_our_module(folder: Path, tmp_path: Path):
    from sentence_transformers import SentenceTransformer

    encoder = Encoder.load(folder, device="cpu", pooling="max", normalize=True)
    encoder.save(tmp_path / "saved")
    texts = ["it's raining", "raining", ""]
    expected = encoder.encode(texts)
    loaded = Encoder.load(tmp_path / "saved", device="cpu", inference_only=True)
    assert loaded.settings.pooling == "max"
    np.testing.assert_allclose(loaded.encode(texts), expected, atol=1e-6)
    theirs = SentenceTransformer(str(tmp_path / "saved"), trust_remote_code=True, device="cpu")
    np.testing.assert_allclose(theirs.encode(texts), expected, atol=1e-6)


def test_sizes_that_two_directions_can_not_share_are_refused(folder: Path):
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"hidden_size": 8', '"hidden_size": 7'))
    with pytest.raises(DataError, match="hidden_size 7 is odd"):
        Encoder.load(folder, device="cpu")


def test_a_folder_is_made_once_of_a_file(words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AOE_CACHE", str(tmp_path / "cache"))
    made = bilstm_folder(words)
    before = (made / "model.safetensors").stat().st_mtime_ns
    assert bilstm_folder(words) == made
    assert (made / "model.safetensors").stat().st_mtime_ns == before
    words.write_text("no vectors\n")
    with pytest.raises(DataError, match="expected a word and"):
        bilstm_folder(words)
