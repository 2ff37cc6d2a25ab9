"""Encoder: any number and order of texts, saving and loading, equality with sentence-transformers."""

import json
import threading
from typing import Any

import numpy as np
import pytest
import torch

from aoe_train import Encoder
from aoe_train.model.batch_runner import BatchRunner
from aoe_train.model.memory import batches
from aoe_train.model.text_model import TextModel
from aoe_train.model.tokens.tokenised import TokenStore
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


def test_batches_keep_the_budget():
    lengths = np.array([3, 50, 4, 4, 5, 5])
    found = [part.tolist() for part in batches(lengths, 10)]
    assert sorted(number for part in found for number in part) == list(range(6))
    assert all(len(part) == 1 or lengths[part].sum() <= 10 for part in found)
    assert found[0] == [1]


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


def test_out_of_memory_halves_all_later_batches(bert, monkeypatch):
    encoder = Encoder.load(bert)
    texts = [f"{'the dog ' * (number % 5 + 1)}{number}" for number in range(40)]
    expected, sizes = encoder.encode(texts), []

    def short_of_memory(model: TextModel, *args: torch.Tensor, forward: Any = TextModel.forward) -> Any:
        sizes.append(len(args[1]))
        if len(args[1]) > 6:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return forward(model, *args)

    monkeypatch.setattr(TextModel, "forward", short_of_memory)
    np.testing.assert_allclose(encoder.encode(texts, batch_tokens=100), expected, atol=1e-5)
    too_many = [size for size in sizes if size > 6]
    assert too_many
    assert len(too_many) <= 4  # not again for each batch
    assert sum(size for size in sizes if size <= 6) == 40
    with pytest.raises(torch.OutOfMemoryError):
        encoder.encode(texts, halve=False)


def ahead(monkeypatch: pytest.MonkeyPatch, fails: BaseException | None = None) -> list[str]:
    """Tokenise while the model runs, as on a GPU; returns the events, and `fails` at the fourth slice."""
    events: list[str] = []
    build, forward = TokenStore.build, TextModel.forward

    def tokenised(*args: Any, **options: Any) -> TokenStore:
        if fails is not None and events.count("tokens") == 3:
            raise fails
        events.append("tokens")
        return build(*args, **options)

    def computed(*args: Any) -> Any:
        events.append("vectors")
        return forward(*args)

    monkeypatch.setattr(BatchRunner, "_tokenises_ahead", property(lambda _: True))
    monkeypatch.setattr(TokenStore, "build", tokenised)
    monkeypatch.setattr(TextModel, "forward", computed)
    return events


LONG_AND_SHORT = [f"{'the dog ' * (number % 7)}{number}" for number in range(80)]


def test_texts_are_tokenised_while_the_model_runs(bert, monkeypatch):
    encoder = Encoder.load(bert)
    expected = {prompt: encoder.encode(LONG_AND_SHORT, prompt=prompt) for prompt in ("", PROMPT)}
    by_text = encoder.encode(LONG_AND_SHORT, prompt=[PROMPT] * 80)
    events = ahead(monkeypatch)
    for prompt, vectors in expected.items():
        events.clear()
        np.testing.assert_allclose(
            encoder.encode(LONG_AND_SHORT, prompt=prompt, batch_tokens=60), vectors, 0, 1e-5
        )
        slices = events.count("tokens")
        assert slices > 6
        assert events.index("vectors") < len(events) - events[::-1].index("tokens")
        waiting = [events[:at].count("tokens") - events[:at].count("vectors") for at in range(len(events))]
        assert max(waiting) <= 4  # one in use, three ahead
    np.testing.assert_array_equal(encoder.encode(LONG_AND_SHORT), expected[""])  # of one batch
    np.testing.assert_array_equal(encoder.encode(LONG_AND_SHORT, prompt=[PROMPT] * 80), by_text)
    assert encoder.encode([]).shape == (0, 32)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("the fourth")])
@pytest.mark.parametrize("where", ["tokens", "vectors"])
def test_errors_of_both_threads_end_encoding(error, where, bert, monkeypatch):
    encoder, threads = Encoder.load(bert), threading.active_count()
    ahead(monkeypatch, error if where == "tokens" else None)
    if where == "vectors":
        monkeypatch.setattr(TextModel, "forward", lambda *_: (_ for _ in ()).throw(error))
    with pytest.raises(type(error)) as caught:
        encoder.encode(LONG_AND_SHORT, batch_tokens=60)
    assert caught.value is error
    assert threading.active_count() == threads


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
    monkeypatch.setattr(TextModel, "forward", refuse)
    with pytest.raises(error, match=message):
        encoder.encode(TEXTS)


def test_encoder_decoders_are_refused(bert):
    from transformers import AutoTokenizer, T5Config, T5Model

    from aoe_train.settings.train_settings import EncoderSettings

    shape = {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2, "vocab_size": 200}
    with pytest.raises(ConfigError, match="T5Model is an encoder-decoder"):
        Encoder.build(T5Model(T5Config(**shape)), AutoTokenizer.from_pretrained(bert), EncoderSettings())
