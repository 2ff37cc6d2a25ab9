"""Encoder and `aoe encode`: any texts, saving and loading, prompts, quantized vectors, and SIGKILL."""

from pathlib import Path

import numpy as np
import polars as pl
import torch
from numpy.testing import assert_allclose
from transformers import BartConfig, BartModel

from aoe_train import encode
from tests import forked
from tests.aoe_train.shorthand import aoe, aoe_json
from tests.aoe_train.tiny import (
    around,
    load,
    read_json,
    save_bert,
    sentence_transformer,
    write_texts,
)
from tests.support.shorthand import (
    approx,
    config_error,
    data_error,
    parametrize,
    raises,
    table,
    text_lines,
    values,
)

TEXTS = text_lines("""
    a man playing a flute
    the cat
    compiler crash when opening a large file
    x
    the cat
""")
PROMPT = "the {text} is:"


def test_order_batches_and_repeats_do_not_matter(bert):
    encoder = load(bert)
    vectors = encoder.encode(TEXTS)
    assert encoder.device == torch.device("cpu")
    assert (vectors.dtype, vectors.shape) == (np.float32, (5, 32))
    assert np.array_equal(vectors[1], vectors[4])
    turned = encoder.encode(TEXTS[::-1], batch_tokens=1)
    assert turned[::-1] == approx(vectors, abs=1e-5)
    assert encoder.encode(TEXTS[0]) == approx(vectors[0], abs=1e-5)
    assert encoder.encode([]).shape == (0, 32)
    with data_error(r"text 1 \(from 0\) is float; expected a string"):
        encoder.encode(["a cat", float("nan")])
    with data_error("a list of texts; found ndarray"):
        encoder.encode(np.array("a cat"))
    exact = encoder.encode(TEXTS, normalize=True)
    for precision in ("bf16", "fp16"):
        rough = load(bert, precision=precision).encode(TEXTS, normalize=True)
        assert (rough * exact).sum(1).min() > 0.999


def test_the_training_mode_survives_an_exception(bert):
    encoder = load(bert)
    encoder.model.train()

    def stop(_):
        raise KeyboardInterrupt

    with raises(KeyboardInterrupt):
        encoder.encode(TEXTS, progress=stop)
    assert encoder.model.training


def test_encoding_does_not_change_the_identity(bert):
    encoder = load(bert)
    other = encoder.tokenizer.backend_tokenizer
    other.enable_truncation(8)  # as many a saved tokenizer has it
    other.enable_padding(length=8)
    before = encoder.identity()
    encoder.encode(TEXTS)
    assert encoder.identity() == before
    other.normalizer = None
    assert encoder.identity() != before


def test_unknown_formats_are_refused(copy):
    (copy / "aoe.json").write_text('{"format": 99}')
    with data_error("use the release"):
        load(copy)


def test_decoders_pool_their_last_token(llama, caplog):
    load(llama, inference_only=True, pooling="cls")
    assert "stores no pooling" not in caplog.text
    assert load(llama, inference_only=True).settings.pooling == "last"
    assert "stores no pooling, so texts are pooled by last" in caplog.text
    both = load(llama, bidirectional=True, pooling="cls")
    assert not np.allclose(both.encode("ab"), both.encode("ac"))
    causal = load(llama, pooling="cls")
    assert np.allclose(causal.encode("ab"), causal.encode("ac"))


@table(
    """
    overrides, message
    {'pooling': 'median'} | pooling
    {'pooling': 'cells'} | Recurrent Attention Network
    {'max_length': 9999} | at most 64 tokens
    {'layers': 0} | expected at least 1
    {'layers': 3} | layers 3: this backbone has 2
    {'prompts': {'a': '{text} or {text}'}} | {text}
    {'poolling': 'cls'} | unknown setting 'poolling'
    """,
)
def test_impossible_settings(bert, overrides, message):
    with config_error(message):
        load(bert, **overrides)


def test_out_of_memory_halves_all_later_batches(bert, monkeypatch):
    encoder = load(bert)
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
    with raises(torch.OutOfMemoryError):
        encoder.encode(texts, halve=False)


@table(
    """
    raised, error, message
    FULL | ConfigError | out of memory for one text of
    OTHER | RuntimeError | shapes differ
    """,
    FULL=torch.OutOfMemoryError("CUDA out of memory."),
    OTHER=RuntimeError("shapes differ"),
    RuntimeError=RuntimeError,
)
def test_out_of_memory_for_one_text(raised, error, message, bert, monkeypatch):
    def refuse(*_):
        raise raised

    encoder = load(bert)
    monkeypatch.setattr(encoder.model, "forward", refuse)
    with raises(error, match=message):
        encoder.encode(TEXTS)


def test_encoder_decoders_are_refused(copy):
    shape = {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 200}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    BartModel(BartConfig(**shape, **heads)).save_pretrained(copy)
    with config_error("BartModel is an encoder-decoder"):
        load(copy)


def test_flags_and_the_json_object(bert, tmp_path):
    texts = write_texts(tmp_path / "in.txt", 9)
    pl.DataFrame({"body": texts, "n": range(9)}).write_parquet(tmp_path / "in.parquet")
    out = tmp_path / "out.parquet"
    flags = "--columns text=body --normalize --batch-tokens 16 --precision fp32 --json"
    result = aoe_json(
        f"encode {tmp_path}/in.parquet --model {bert} --out {out} {flags}"
    )
    done = {"out": str(out), "texts": 9, "dim": 32, "quantize": "float32", "resumed": 0}
    assert done.items() <= result.items()
    assert result.keys() - done.keys() == {"seconds", "texts_per_s"}
    found = pl.read_parquet(out)
    assert found.columns == ["body", "n", "vector"]
    wanted = load(bert).encode(texts, normalize=True)
    assert found["vector"].to_numpy() == approx(wanted, abs=1e-6)


def test_quantized_vectors_and_queries_with_the_same_ranges(bert, tmp_path):
    texts = write_texts(tmp_path / "in.txt", 40)
    (tmp_path / "one.txt").write_text(texts[7])
    vectors = load(bert).encode(texts)[:, :12]
    out = tmp_path / "out.npy"
    query = tmp_path / "query.npy"

    def run(file, to, quantize, *more):
        flags = f"--model {bert} --dim 12 --precision fp32 -q --quantize {quantize}"
        aoe(f"encode {tmp_path}/{file} --out {to} {flags}", *more)

    run("in.txt", out, "int8")
    codes = np.load(out)
    assert (codes.shape, codes.dtype) == ((40, 12), np.int8)
    record = read_json(tmp_path / "out.npy.run.json")
    ranges = np.stack([vectors.min(0), vectors.max(0)])
    assert np.array(record["ranges"]) == approx(ranges, abs=1e-6)
    assert (record["dim"], record["quantize"]) == (12, "int8")
    with config_error("calibration"):
        run("one.txt", query, "int8")
    run("one.txt", query, "int8", "--calibration", out)
    # As other batches round.
    assert np.abs(np.load(query)[0].astype(int) - codes[7]).max() <= 1
    how = {"dim": 12, "quantize": "int8", "calibration": out}
    again = encode([texts[7]], model=str(bert), **how)
    assert (again == np.load(query)).all()
    bits = tmp_path / "bits.parquet"
    run("in.txt", bits, "ubinary")
    found = pl.read_parquet(bits)["vector"]
    assert found.dtype == pl.Array(pl.UInt8, 2)
    assert (found.to_numpy() == np.packbits(vectors > 0, axis=1)).all()


def test_identity_depends_on_weights_settings_and_precision(bert, tmp_path):
    changed = load(bert)
    changed.model.backbone.config.layer_norm_eps *= 2
    others = [
        changed,
        load(save_bert(tmp_path / "other", seed=1)),
        load(bert, pooling="max"),
        load(bert, precision="fp16"),
        load(bert, **around("the {text} of")),
    ]
    same = load(bert).identity()
    assert load(bert).identity() == same
    assert len({str(same), *(str(other.identity()) for other in others)}) == 6


def test_prompts_by_name_and_by_text(bert, tmp_path):
    texts = write_texts(tmp_path / "in.txt", 9)
    prompts = {"query": "the man: ", "t": "a car "}
    encoder = load(bert, prompts=prompts, default_prompt_name="t")
    encoder.save(tmp_path / "m")
    command = f"encode {tmp_path}/in.txt --model {tmp_path}/m --out {tmp_path}/out.npy "
    for flags, asked in values("""
            --prompt-name query | {'prompt_name': 'query'}
            --prompt 'the {text} or' | {'prompt': 'the {text} or'}
            --prompt '' | {'prompt': ''}
            '' | {}
            """):
        aoe(f"{command} {flags} --fresh -q")
        expected = encoder.encode(texts, **asked)
        assert np.load(tmp_path / "out.npy") == approx(expected, abs=1e-6)
    for flags, words in values(r"""
            --prompt-name q --fresh | no prompt 'q'; this model has 'query', 'document', 't'
            --prompt-name query --prompt x | prompt= and prompt_name=: give only one of them
            --prompt-name query | other settings: prompt \(a car there, the man: now\)
            """):
        with config_error(words):
            aoe(command + flags)


def test_a_killed_process_is_resumed(bert, tmp_path):
    texts = tmp_path / "in.txt"
    out = tmp_path / "out.npy"
    whole = tmp_path / "whole.npy"
    write_texts(texts, 4000)
    command = f"encode {texts} --model {bert} --batch-tokens 512 --out"
    aoe(f"{command} {whole} -q")
    process = forked.begin("aoe_train", *f"{command} {out}".split(), cwd=Path.cwd())
    manifest = tmp_path / "out.npy.partial/manifest.json"
    while process.exitcode is None and not (
        manifest.exists() and read_json(manifest)["done"]
    ):
        process.join(0.001)
    process.kill()
    process.join()
    assert not out.exists()
    assert 1000 <= aoe_json(f"{command} {out} --json")["resumed"] < 4000
    assert out.read_bytes() == whole.read_bytes()
    assert not manifest.parent.exists()


def test_minilm_equals_sentence_transformers(minilm):
    texts = [*TEXTS, "Long text. " * 400, "Angles: naïve café, 日本語!"]
    encoder = load("minilm")
    assert (encoder.settings.pooling, encoder.settings.max_length) == ("avg", 256)
    theirs = sentence_transformer(minilm).encode(texts)
    assert encoder.encode(texts) == approx(theirs, abs=1e-5)


@parametrize("normalize", [False, True])
def test_truncated_vectors_equal_sentence_transformers(bert, tmp_path, normalize):
    encoder = load(bert, normalize=normalize)
    encoder.save(tmp_path)
    texts = ["a dog is running", "the red car", "a man was eating bread on the road"]
    theirs = sentence_transformer(tmp_path, truncate_dim=12)
    found = encoder.encode(texts, dim=12)
    assert found == approx(
        theirs.encode(texts, normalize_embeddings=normalize), abs=1e-5
    )
    bits = encoder.encode(texts, dim=12, quantize="ubinary")
    assert bits.tolist() == theirs.encode(texts, precision="ubinary").tolist()
    with config_error("calibration=: its vectors have 12 dimensions, expected 8"):
        encoder.encode(texts, dim=8, quantize="int8", calibration=found)
    with config_error("calibration= is for quantize='int8', not float32"):
        encoder.encode(texts, calibration=found)
    for options, error, message in values("""
            {'dim': 33} | ConfigError | dim 33
            {'dim': 1.5} | ConfigError | dim = 1.5: expected a whole number
            {'batch_tokens': 0} | ConfigError | batch_tokens = 0:
            {'prompt': ['a ', None, '']} | DataError | prompt 1 .from 0. is NoneType
            """):
        with raises(error, match=message):
            encoder.encode(texts, **options)
    (tmp_path / "file").touch()
    with config_error("file: can't be written"):
        encoder.save(tmp_path / "file")
