"""Encoder and `aoe encode`: any texts, saving and loading, prompts, quantized vectors, and SIGKILL."""

import json
import random
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from numpy.testing import assert_allclose
from transformers import BartConfig, BartModel

from aoe_train import Encoder, encode
from pairkit import ConfigError
from tests import forked
from tests.aoe_train.refusals import config_error, data_error
from tests.aoe_train.shell import aoe
from tests.aoe_train.tiny import WORDS, around, read_json, save_bert

TEXTS = [
    "a man playing a flute",
    "the cat",
    "compiler crash when opening a large file",
    "x",
    "the cat",
]
PROMPT = "the {text} is:"


def test_order_batches_and_repeats_do_not_matter(bert):
    encoder = Encoder.load(bert)
    encoder.model.train()
    vectors = encoder.encode(TEXTS)
    assert encoder.model.training  # as it was
    assert encoder.device == torch.device("cpu")
    assert (vectors.dtype, vectors.shape) == (np.float32, (5, 32))
    assert np.array_equal(vectors[1], vectors[4])
    assert_allclose(encoder.encode(TEXTS[::-1], batch_tokens=1)[::-1], vectors, atol=1e-5)
    assert_allclose(encoder.encode(TEXTS[0]), vectors[0], atol=1e-5)
    assert encoder.encode([]).shape == (0, 32)
    with data_error(r"text 1 \(from 0\) is float; expected a string"):
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
    [
        {},
        {**around(PROMPT), "pooling": "cls-avg", "normalize": True},
        {"long_text": "chunks", "overlap": 2},
    ],
)
def test_saved_and_loaded_it_is_the_same(which, more, out, request):
    encoder = Encoder.load(request.getfixturevalue(which), max_length=12, **more)
    encoder.save(out)
    assert len({path.stat().st_mode for path in out.iterdir() if path.is_file()}) == 1
    again = Encoder.load(out)
    assert again.settings == encoder.settings
    np.testing.assert_array_equal(again.encode(TEXTS), encoder.encode(TEXTS))
    for content, message in (
        (json.dumps({"format": 99}), "use the release"),
        ("{", "not readable"),
    ):
        (out / "aoe.json").write_text(content)
        with data_error(message):
            Encoder.load(out)


def test_decoders_pool_their_last_token(llama, caplog):
    assert Encoder.load(llama, inference_only=True).settings.pooling == "last"
    assert "stores no pooling, so texts are pooled by last" in caplog.text
    both = Encoder.load(llama, bidirectional=True, pooling="cls")
    assert not np.allclose(both.encode("ab"), both.encode("ac"))
    causal = Encoder.load(llama, pooling="cls")
    assert np.allclose(causal.encode("ab"), causal.encode("ac"))


@pytest.mark.parametrize(
    "overrides, message",
    [
        ({"pooling": "median"}, "pooling"),
        ({"pooling": "cells"}, "Recurrent Attention Network"),
        ({"max_length": 9999}, "at most 64 tokens"),
        ({"prompts": {"a": "{text} or {text}"}}, "{text}"),
        ({"poolling": "cls"}, "unknown setting 'poolling'"),
    ],
)
def test_impossible_settings(bert, overrides, message):
    with config_error(message):
        Encoder.load(bert, **overrides)


def test_out_of_memory_halves_all_later_batches(bert, monkeypatch):
    encoder = Encoder.load(bert)
    texts = [f"{'the dog ' * (number % 5 + 1)}{number}" for number in range(40)]
    expected, sizes = encoder.encode(texts), []

    def short_of_memory(*args, forward=encoder.model.forward):
        sizes.append(len(args[1]))
        if len(args[1]) > 6:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return forward(*args)

    monkeypatch.setattr(encoder.model, "forward", short_of_memory)
    assert_allclose(encoder.encode(texts, batch_tokens=100), expected, atol=1e-5)
    too_many = [size for size in sizes if size > 6]
    assert too_many
    assert len(too_many) <= 4  # not again for each batch
    assert sum(size for size in sizes if size <= 6) == 40
    with pytest.raises(torch.OutOfMemoryError):
        encoder.encode(texts, halve=False)


@pytest.mark.parametrize(
    "raised, error, message",
    [
        (
            torch.OutOfMemoryError("CUDA out of memory."),
            ConfigError,
            "out of memory for one text of",
        ),
        (RuntimeError("shapes differ"), RuntimeError, "shapes differ"),
    ],
)
def test_out_of_memory_for_one_text(raised, error, message, bert, monkeypatch):
    def refuse(*_):
        raise raised

    encoder = Encoder.load(bert)
    monkeypatch.setattr(encoder.model, "forward", refuse)
    with pytest.raises(error, match=message):
        encoder.encode(TEXTS)


def test_encoder_decoders_are_refused(bert, tmp_path):
    shape = {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 200}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    BartModel(BartConfig(**shape, **heads, encoder_ffn_dim=8, decoder_ffn_dim=8)).save_pretrained(
        tmp_path
    )
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(bert / name, tmp_path)
    with config_error("BartModel is an encoder-decoder"):
        Encoder.load(tmp_path)


def write_texts(path, count):
    choose = random.Random(0)
    texts = [" ".join(choose.choices(WORDS, k=choose.randint(1, 12))) for _ in range(count)]
    path.write_text("\n".join(texts) + "\n")
    return texts


def test_flags_and_the_json_object(bert, tmp_path):
    texts = write_texts(tmp_path / "in.txt", 9)
    pl.DataFrame({"body": texts, "n": range(9)}).write_parquet(tmp_path / "in.parquet")
    out = tmp_path / "out.parquet"
    flags = (
        "--columns",
        "text=body",
        "--normalize",
        "--batch-tokens",
        "16",
        "--precision",
        "fp32",
        "--json",
    )
    result = json.loads(
        aoe("encode", tmp_path / "in.parquet", "--model", bert, "--out", out, *flags)
    )
    expected = {"out": str(out), "texts": 9, "dim": 32, "quantize": "float32", "resumed": 0}
    assert result == {
        **expected,
        "seconds": result["seconds"],
        "texts_per_s": result["texts_per_s"],
    }
    found = pl.read_parquet(out)
    assert found.columns == ["body", "n", "vector"]
    wanted = Encoder.load(bert).encode(texts, normalize=True)
    assert found["vector"].to_numpy() == pytest.approx(wanted, abs=1e-6)


def test_quantized_vectors_and_queries_with_the_same_ranges(bert, tmp_path):
    texts = write_texts(tmp_path / "in.txt", 40)
    vectors = Encoder.load(bert).encode(texts)[:, :12]
    out, query = tmp_path / "out.npy", tmp_path / "query.npy"
    flags = ("--model", bert, "--dim", "12", "--precision", "fp32", "-q")
    aoe("encode", tmp_path / "in.txt", "--out", out, "--quantize", "int8", *flags)
    codes = np.load(out)
    assert (codes.shape, codes.dtype) == ((40, 12), np.int8)
    record = read_json(tmp_path / "out.npy.run.json")
    ranges = np.array(record["ranges"], np.float32)
    assert (record["dim"], record["quantize"]) == (12, "int8")
    assert ranges == pytest.approx(np.stack([vectors.min(0), vectors.max(0)]), abs=1e-6)

    (tmp_path / "one.txt").write_text(texts[7] + "\n")
    one = ("encode", tmp_path / "one.txt", "--out", query, "--quantize", "int8", *flags)
    with config_error("calibration"):
        aoe(*one)
    aoe(*one, "--calibration", out)
    assert np.abs(np.load(query)[0].astype(int) - codes[7]).max() <= 1  # as other batches round
    again = encode([texts[7]], model=str(bert), dim=12, quantize="int8", calibration=out)
    assert (again == np.load(query)).all()
    with config_error(r"other settings: quantize"):
        aoe("encode", tmp_path / "in.txt", "--out", out, "--quantize", "binary", *flags)
    bits = tmp_path / "bits.parquet"
    aoe("encode", tmp_path / "in.txt", "--out", bits, "--quantize", "ubinary", *flags)
    found = pl.read_parquet(bits)["vector"]
    assert found.dtype == pl.Array(pl.UInt8, 2)
    assert (found.to_numpy() == np.packbits(vectors > 0, axis=1)).all()


def test_identity_depends_on_weights_settings_and_precision(bert, tmp_path):
    encoders = [
        *(Encoder.load(bert) for _ in range(3)),
        Encoder.load(save_bert(tmp_path / "other", seed=1)),
        *(
            Encoder.load(bert, **how)
            for how in ({"pooling": "max"}, {"precision": "fp16"}, around("the {text} of"))
        ),
    ]
    encoders[2].model.backbone.config.layer_norm_eps *= 2
    same, again, *others = (json.dumps(encoder.identity(), sort_keys=True) for encoder in encoders)
    assert same == again
    assert len({same, *others}) == 6


def test_prompts_by_name_and_by_text(bert, tmp_path):
    texts, out = write_texts(tmp_path / "in.txt", 9), tmp_path / "out.npy"
    encoder = Encoder.load(
        bert, prompts={"query": "the man: ", "t": "a car "}, default_prompt_name="t"
    )
    encoder.save(tmp_path / "m")
    command = ("encode", tmp_path / "in.txt", "--model", tmp_path / "m", "--out", out)
    for flags, asked in (
        (("--prompt-name", "query"), {"prompt_name": "query"}),
        (("--prompt", "the {text} or"), {"prompt": "the {text} or"}),
        (("--prompt", ""), {"prompt": ""}),
        ((), {}),
    ):
        aoe(*command, *flags, "--fresh", "-q")
        assert_allclose(np.load(out), encoder.encode(texts, **asked), atol=1e-6)
    for flags, words in (
        (
            ("--prompt-name", "q", "--fresh"),
            "no prompt 'q'; this model has 'query', 'document', 't'",
        ),
        (
            ("--prompt-name", "query", "--prompt", "x"),
            "prompt= and prompt_name=: give only one of them",
        ),
        (("--prompt-name", "query"), r"other settings: prompt \(a car there, the man: now\)"),
    ):
        with config_error(words):
            aoe(*command, *flags)


def test_a_killed_process_is_resumed(bert, tmp_path):
    texts, out, whole = tmp_path / "in.txt", tmp_path / "out.npy", tmp_path / "whole.npy"
    write_texts(texts, 4000)
    command = ["encode", str(texts), "--model", str(bert), "--batch-tokens", "512"]
    aoe(*command, "--out", whole, "-q")
    process = forked.begin("aoe_train", *command, "--out", str(out), cwd=Path.cwd())
    manifest = tmp_path / "out.npy.partial/manifest.json"
    while process.exitcode is None and not (manifest.exists() and read_json(manifest)["done"]):
        process.join(0.001)
    process.kill()
    process.join()
    assert not out.exists()
    assert 1000 <= json.loads(aoe(*command, "--out", out, "--json"))["resumed"] < 4000
    assert out.read_bytes() == whole.read_bytes()
    assert not manifest.parent.exists()


def test_minilm_equals_sentence_transformers(minilm):
    from sentence_transformers import SentenceTransformer

    texts = [*TEXTS, "Long text. " * 400, "Angles: naïve café, 日本語!"]
    encoder = Encoder.load("minilm")
    assert encoder.settings.pooling == "avg"
    assert encoder.settings.max_length == 256
    assert_allclose(encoder.encode(texts), SentenceTransformer(str(minilm)).encode(texts), 0, 1e-5)


@pytest.mark.parametrize("normalize", [False, True])
def test_truncated_vectors_equal_sentence_transformers(bert, tmp_path, *, normalize):
    from sentence_transformers import SentenceTransformer

    encoder = Encoder.load(bert, precision="fp32", normalize=normalize)
    encoder.save(tmp_path)
    texts = ["a dog is running", "the red car", "a man was eating bread on the road"]
    theirs = SentenceTransformer(str(tmp_path), truncate_dim=12)
    found = encoder.encode(texts, dim=12)
    assert found == pytest.approx(theirs.encode(texts, normalize_embeddings=normalize), abs=1e-5)
    bits = encoder.encode(texts, dim=12, quantize="ubinary")
    assert bits.tolist() == theirs.encode(texts, precision="ubinary").tolist()
    int8 = {"quantize": "int8", "calibration": found}
    one, all_of_them = (
        encoder.encode(texts[1], dim=12, **int8),
        encoder.encode(texts, dim=12, quantize="int8"),
    )
    assert one == pytest.approx(all_of_them[1], abs=1)
    with config_error("calibration: its vectors have 12 dimensions; expected 8"):
        encoder.encode(texts, dim=8, **int8)
    with config_error("dim 33"):
        encoder.encode(texts, dim=33)
