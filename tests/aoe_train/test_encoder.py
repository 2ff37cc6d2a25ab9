"""Encoder: any number and order of texts, saving and loading, equality with sentence-transformers."""

import json
import shutil
from typing import Any

import numpy as np
import pytest
import torch
from transformers import BartConfig, BartModel

from aoe_train import Encoder
from pairkit import ConfigError, DataError
from tests.aoe_train.tiny import around

TEXTS = ["a man playing a flute", "the cat", "compiler crash when opening a large file", "x", "the cat"]
PROMPT = "the {text} is:"


def test_order_batches_and_repeats_do_not_matter(bert):
    encoder = Encoder.load(bert, device="cpu")
    encoder.model.train()
    vectors = encoder.encode(TEXTS)
    assert encoder.model.training  # as it was
    assert encoder.device == torch.device("cpu")
    assert (vectors.dtype, vectors.shape) == (np.float32, (5, 32))
    assert np.array_equal(vectors[1], vectors[4])
    np.testing.assert_allclose(encoder.encode(TEXTS[::-1], batch_tokens=1)[::-1], vectors, atol=1e-5)
    np.testing.assert_allclose(encoder.encode(TEXTS[0]), vectors[0], atol=1e-5)
    assert encoder.encode([]).shape == (0, 32)
    with pytest.raises(DataError, match=r"text 1 \(from 0\) is float; expected a string"):
        encoder.encode(["a cat", float("nan")])
    exact = encoder.encode(TEXTS, normalize=True)
    for precision in ("bf16", "fp16"):
        rough = Encoder.load(bert, precision=precision).encode(TEXTS, normalize=True)
        assert (rough * exact).sum(1).min() > 0.999, precision


def test_encoding_does_not_change_the_identity(bert):
    encoder = Encoder.load(bert)
    other = encoder.tokenizer.backend_tokenizer
    other.enable_truncation(8)  # as many a saved tokenizer has it
    other.enable_padding(length=8)
    before = encoder.identity()
    encoder.encode(TEXTS)
    assert encoder.identity() == before
    other.normalizer = None
    assert encoder.identity() != before


@pytest.mark.parametrize("which", ["bert", "llama"])
@pytest.mark.parametrize(
    "more",
    [{}, {**around(PROMPT), "pooling": "cls-avg", "normalize": True}, {"long_text": "chunks", "overlap": 2}],
)
def test_saved_and_loaded_it_is_the_same(which, more, tmp_path, request):
    encoder = Encoder.load(request.getfixturevalue(which), max_length=12, **more)
    encoder.save(tmp_path / "m")
    assert len({path.stat().st_mode for path in (tmp_path / "m").iterdir() if path.is_file()}) == 1
    again = Encoder.load(tmp_path / "m")
    assert again.settings == encoder.settings
    np.testing.assert_array_equal(again.encode(TEXTS), encoder.encode(TEXTS))
    for content, message in ((json.dumps({"format": 99}), "use the release"), ("{", "not readable")):
        (tmp_path / "m" / "aoe.json").write_text(content)
        with pytest.raises(DataError, match=message):
            Encoder.load(tmp_path / "m")


def test_decoders_pool_their_last_token(llama):
    assert Encoder.load(llama).settings.pooling == "last"
    both = Encoder.load(llama, bidirectional=True, pooling="cls")
    assert not np.allclose(both.encode("ab"), both.encode("ac"))
    causal = Encoder.load(llama, pooling="cls")
    assert np.allclose(causal.encode("ab"), causal.encode("ac"))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"pooling": "median"}, "pooling"),
        ({"pooling": "cells"}, "Recurrent Attention Network"),
        ({"max_length": 9999}, "at most 64 tokens"),
        ({"prompts": {"a": "{text} or {text}"}}, "{text}"),
        ({"poolling": "cls"}, "unknown setting 'poolling'"),
    ],
)
def test_impossible_settings(bert, overrides, message):
    with pytest.raises(ConfigError, match=message):
        Encoder.load(bert, **overrides)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quantize": "int8"}, r"int8 of 1 vector: .*calibration set"),
        ({"quantize": "int8", "calibration": np.zeros(32)}, r"int8 of 1 vector: .*calibration set"),
        ({"quantize": "int4"}, "quantize = 'int4': input should be 'float32', 'int8', 'binary' or 'ubinary'"),
        ({"dim": 0}, "vectors have 32 dimensions; expected 1 to 32"),
    ],
)
def test_impossible_vectors(bert, options, message):
    with pytest.raises(ConfigError, match=message):
        Encoder.load(bert).encode("a dog", **options)


def test_out_of_memory_halves_all_later_batches(bert, monkeypatch):
    encoder = Encoder.load(bert)
    texts = [f"{'the dog ' * (number % 5 + 1)}{number}" for number in range(40)]
    expected, sizes = encoder.encode(texts), []

    def short_of_memory(*args: torch.Tensor, forward: Any = encoder.model.forward) -> Any:
        sizes.append(len(args[1]))
        if len(args[1]) > 6:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return forward(*args)

    monkeypatch.setattr(encoder.model, "forward", short_of_memory)
    np.testing.assert_allclose(encoder.encode(texts, batch_tokens=100), expected, atol=1e-5)
    too_many = [size for size in sizes if size > 6]
    assert too_many
    assert len(too_many) <= 4  # not again for each batch
    assert sum(size for size in sizes if size <= 6) == 40
    with pytest.raises(torch.OutOfMemoryError):
        encoder.encode(texts, halve=False)


@pytest.mark.parametrize(
    ("raised", "error", "message"),
    [
        (torch.OutOfMemoryError("CUDA out of memory."), ConfigError, "out of memory for one text of"),
        (RuntimeError("shapes differ"), RuntimeError, "shapes differ"),
    ],
)
def test_out_of_memory_for_one_text(raised, error, message, bert, monkeypatch):
    def refuse(*_: Any) -> Any:
        raise raised

    encoder = Encoder.load(bert)
    monkeypatch.setattr(encoder.model, "forward", refuse)
    with pytest.raises(error, match=message):
        encoder.encode(TEXTS)


def test_encoder_decoders_are_refused(bert, tmp_path):
    shape = {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 200}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    BartModel(BartConfig(**shape, **heads, encoder_ffn_dim=8, decoder_ffn_dim=8)).save_pretrained(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(bert / name, tmp_path)
    with pytest.raises(ConfigError, match="BartModel is an encoder-decoder"):
        Encoder.load(tmp_path, device="cpu")
