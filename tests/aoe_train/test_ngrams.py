"""N-gram features: what a filter sees, and what becomes of filters on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from aoe_train import Encoder
from aoe_train._ngrams import NGrams
from aoe_train._run_data import Sources
from aoe_train._settings import EncoderSettings, TrainSettings
from aoe_train._train import train
from pairkit.config import load_settings
from pairkit.errors import ConfigError, DataError

TEXTS = ["a man is playing the flute", "the cat", "dog"]


def test_each_token_by_hand_and_none_sees_another_piece():
    torch.manual_seed(0)
    ngrams = NGrams([1, 3, 5], 7)
    assert [part.weight.shape for part in ngrams] == [(3, 7, 1), (2, 7, 3), (2, 7, 5)]
    lengths = [4, 1, 6]
    tokens = torch.randn(sum(lengths), 7)
    found = torch.split(ngrams(tokens, torch.tensor(lengths)), lengths)
    for piece, features in zip(torch.split(tokens, lengths), found, strict=True):
        for place in range(len(piece)):
            expected = []
            for part in ngrams:
                reach = part.weight.shape[2] // 2
                total = part.bias.clone()
                for step in range(-reach, reach + 1):
                    if 0 <= place + step < len(piece):
                        total += part.weight[:, :, step + reach] @ piece[place + step]
                expected.append(total.relu())
            torch.testing.assert_close(features[place], torch.cat(expected), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("packing", [True, False])
def test_a_saved_model_gives_the_same_vectors(packing: bool, bert: Path, tmp_path: Path):
    encoder = Encoder.load(bert, device="cpu", ngrams=(1, 3), packing=packing)
    encoder.save(tmp_path)
    loaded = Encoder.load(tmp_path, device="cpu", inference_only=True)
    assert loaded.settings.ngrams == (1, 3)
    vectors = loaded.encode(TEXTS)
    np.testing.assert_allclose(vectors, encoder.encode(TEXTS), atol=1e-6)
    np.testing.assert_allclose(vectors[1], loaded.encode("the cat"), atol=1e-6)
    assert not np.allclose(vectors, Encoder.load(bert, device="cpu").encode(TEXTS), atol=0.1)


def test_sentence_transformers_reads_them_by_our_module(bert: Path, tmp_path: Path):
    from sentence_transformers import SentenceTransformer

    encoder = Encoder.load(bert, device="cpu", ngrams=(1, 3, 5))
    encoder.save(tmp_path)
    theirs = SentenceTransformer(str(tmp_path), trust_remote_code=True, device="cpu")
    np.testing.assert_allclose(theirs.encode(TEXTS), encoder.encode(TEXTS), atol=1e-5)


def test_other_filters_and_damaged_ones_are_refused(bert: Path, tmp_path: Path):
    Encoder.load(bert, device="cpu", ngrams=(1, 3)).save(tmp_path)
    with pytest.raises(ConfigError, match=r"leave encoder\.ngrams out"):
        Encoder.load(tmp_path, device="cpu", ngrams=(1, 5))
    weights = tmp_path / "ngrams/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:60])
    with pytest.raises(DataError, match="not readable"):
        Encoder.load(tmp_path, device="cpu")


def test_what_filters_do_not_go_with(bert: Path, tmp_path: Path):
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(TEXTS * 3) + "\n")
    flags = {"encoder.ngrams": 3, "objective.layers": 1, "preset": "simcse"}
    sources = Sources({"texts": str(texts)}, str(bert), tmp_path / "m")
    with pytest.raises(ConfigError, match="reads the last layer alone"):
        train(sources, load_settings(TrainSettings, flags=flags), say=lambda _: None, progress=False)
    with pytest.raises(ConfigError, match="more than a token's 32 numbers"):
        Encoder.load(bert, device="cpu", ngrams=(1,) * 33)


@pytest.mark.parametrize(
    ("given", "named"),
    [({"ngrams": "1,4"}, "expected odd numbers"), ({"ngrams": 3, "pooling": "first-last-avg"}, "take avg")],
)
def test_settings_that_mean_nothing(given: dict[str, object], named: str):
    with pytest.raises(ConfigError, match=named):
        load_settings(EncoderSettings, flags=given)
