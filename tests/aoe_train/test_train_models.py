"""Training of several backbones, adapters and prompts, and averaging with the backbone."""

import random
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from safetensors.torch import load_file
from torch.testing import assert_close
from transformers import OPTConfig, OPTModel

import aoe_train
from aoe_train import export
from aoe_train.training.build import _check_dropout
from tests.aoe_train.shorthand import stderr
from tests.aoe_train.test_train import Watch, run
from tests.aoe_train.tiny import (
    WORDS,
    load,
    refusal,
    same_weights,
    save_bert,
    save_ran,
    sentence_transformer,
    weights,
    write_lines,
)
from tests.support.shorthand import approx, config_error, pair, parametrize, table

FAST = {"epochs": 2, "batch_size": 4, "lr": 1e-3}
PAIRS = [pair(f"a {WORDS[n]}", f"the {WORDS[n + 8]}", n % 2) for n in range(8)]


def write_columns(path, rows, seed):
    """Rows whose texts occur in several columns."""
    words = random.Random(seed)
    texts = [" ".join(words.sample(WORDS, 4)) for _ in range(rows)]
    lines = ["\t".join(words.sample(texts, 3)) for _ in range(rows)]
    return write_lines(path, ["anchor\tpositive\tnegative", *lines])


def train(backbone, out, **how):
    return aoe_train.train(PAIRS, backbone=backbone, out=out, **FAST, **how)


BY_COLUMN = {"anchor": "the man: ", "positive": "a road "}


def farthest(one, other):
    return max(float((one[name] - other[name]).abs().max()) for name in other)


def test_recomputation_chunks_and_padding_keep_the_weights(tmp_path):
    """With prompts, which the pooling leaves out."""
    backbone = save_bert(tmp_path / "bert", dropout=0.0)
    data = {"data": write_columns(tmp_path / "data.tsv", 32, 1)}
    flags = {"optim__lr": 1e-4, "prompts": BY_COLUMN, "encoder__include_prompt": False}
    run(data, backbone, tmp_path / "plain", **flags)
    plain, begun = weights(tmp_path / "plain"), weights(backbone)
    assert farthest(plain, begun) > 1e-4
    for name, more in {
        "layers": {"run__gradient_checkpointing": True},
        "chunks": {"run__chunk": 9},
        "padded": {"run__packing": False, "run__gradient_checkpointing": True},
    }.items():
        run(data, backbone, tmp_path / name, **flags, **more)
        assert farthest(weights(tmp_path / name), plain) < 2e-5
    assert load(tmp_path / "plain").settings.include_prompt is False


@pytest.fixture
def ran(tmp_path):
    return save_ran(tmp_path / "ran")


def test_gradient_checkpointing_of_ran_keeps_the_weights(data, ran, tmp_path):
    run(data, ran, tmp_path / "kept")
    run(data, ran, tmp_path / "again", run__gradient_checkpointing=True)
    assert same_weights(tmp_path / "kept", tmp_path / "again")
    assert not same_weights(tmp_path / "kept", ran)


@parametrize("pooling", ["cells", "avg"])
def test_adapters_of_ran_encode_as_in_training(ran, out, tmp_path, pooling):
    texts, seen = [row["text1"] for row in PAIRS], []

    def metric(encoder):
        seen.append(encoder.encode(texts))
        return len(seen) / 9

    how = {"lora": True, "pooling": pooling, "dev_metric": metric}
    run = train(ran, out, **how)
    assert np.abs(seen[0] - seen[-1]).max() > 1e-3
    assert_allclose(run.encoder.encode(texts), seen[-1], atol=1e-5)
    theirs = sentence_transformer(out, trust_remote_code=True)
    assert_allclose(theirs.encode(texts), seen[-1], atol=1e-5)
    assert export(out, out=tmp_path / "merged").merged


def test_lora_model_can_be_trained_again(data, llama, tmp_path):
    def vectors(folder, **more):
        return load(folder, **more).encode(["the man is eating", "a dog"])

    run(data, llama, tmp_path / "first", lora={"rank": 2}, optim__lr=0.005)
    first = vectors(tmp_path / "first")
    assert abs(first - vectors(llama, pooling="last")).max() > 1e-3
    for name, further in {"whole": {}, "lora": {"lora": {"rank": 2}}}.items():
        run(data, tmp_path / "first", tmp_path / name, optim__lr=1e-7, **further)
        assert abs(vectors(tmp_path / name) - first).max() < 1e-3
        assert (tmp_path / name / "model.safetensors").exists()


@table(
    """
    lora, frozen
    {'rank': 2} | bf16
    None | fp32
    """,
    bf16=torch.bfloat16,
    fp32=torch.float32,
)
def test_only_weights_frozen_under_adapters_have_the_runs_precision(
    data, llama, out, lora, frozen, monkeypatch
):
    # Also if it's emulated.
    monkeypatch.setattr("aoe_train.model.precision._cpu_has_bf16", lambda: True)
    kinds = set()
    watch = Watch(
        "on_train_begin",
        lambda model: kinds.add(model.text_model.backbone.norm.weight.dtype),
    )
    record = run(data, llama, out, callbacks=[watch], lora=lora, run__precision="bf16")
    assert kinds == {frozen}
    assert np.isfinite(record["history"][-1]["loss"])
    assert record["encoder"]["pooling"] == "last"
    assert np.isfinite(load(out).encode(["the man is eating", "a dog"])).all()
    name = "adapter_model.safetensors" if lora else "model.safetensors"
    saved = load_file(out / name).values()
    assert {weight.dtype for weight in saved} == {torch.float32}


def test_single_texts_need_dropout(out, tmp_path):
    texts = write_lines(tmp_path / "texts.txt", WORDS)
    still = save_bert(tmp_path / "bert", dropout=0.0)
    fit = partial(run, {"data": str(texts)}, still, out)
    with refusal(r"need a backbone with dropout.*lora=True"):
        fit(preset="simcse-paper")
    assert not (tmp_path / "m.work").exists()  # or the next run would need --fresh
    assert fit(preset="simcse-paper", lora={"rank": 2})["result"]["steps"] > 0


@parametrize("rate", ["dropout", "attention_dropout", None])
def test_dropout_without_modules(rate):
    """OPT applies its rates with a function."""
    rates = {"dropout": 0.0, "attention_dropout": 0.0} | ({rate: 0.1} if rate else {})
    sizes = {"hidden_size": 8, "ffn_dim": 8, "word_embed_proj_dim": 8}
    layers = {"num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 9}
    backbone = OPTModel(OPTConfig(**sizes, **layers, **rates))
    with nullcontext() if rate else config_error("need a backbone with dropout"):
        _check_dropout(backbone)


def test_column_prompts_equal_prompted_texts(tmp_path):
    plain = write_columns(tmp_path / "plain.tsv", 24, 1)
    header, *lines = plain.read_text().splitlines()
    prompted = ["the man: " + line.replace("\t", "\ta road ", 1) for line in lines]
    written = write_lines(tmp_path / "written.tsv", [header, *prompted])
    # Equal texts are recognised in spite of prompts, but not of other words.
    flags = {"preset": "cosent-paper", "batches__strategy": "shuffle"}
    base = save_bert(tmp_path / "bert", dropout=0)
    run({"data": str(plain)}, base, tmp_path / "a", prompts=BY_COLUMN, **flags)
    run({"data": str(written)}, base, tmp_path / "b", **flags)
    assert_close(weights(tmp_path / "a"), weights(tmp_path / "b"), atol=1e-5, rtol=1e-4)


def test_trained_model_stores_its_prompts(out, tmp_path, capsys):
    # So that rounding decides no row.
    backbone = save_bert(tmp_path / "bert", spread=0.2)
    data = write_columns(tmp_path / "data.tsv", 24, 1)
    dev = write_columns(tmp_path / "dev.tsv", 8, 2)
    record = run({"data": data, "dev_data": str(dev)}, backbone, out, prompts=BY_COLUMN)
    aoe_train.train(PAIRS, backbone=out, out=tmp_path / "again", epochs=0.1)
    assert "texts get none of the model's prompts (document, query)" in stderr(capsys)
    expected = {"query": "the man: ", "document": "a road "}
    ours, theirs = load(out), sentence_transformer(out)
    assert record["encoder"]["prompts"] == ours.prompts == theirs.prompts == expected
    for name in expected:
        found = theirs.encode(["a cat"], prompt_name=name)
        assert_allclose(ours.encode(["a cat"], prompt_name=name), found, atol=1e-6)
    # The saved weights score best on texts with their prompts.
    columns = zip(
        *(line.split("\t") for line in dev.read_text().splitlines()[1:]), strict=True
    )
    anchor, positive, negative = (
        ours.encode(list(texts), prompt=words, normalize=True)
        for texts, words in zip(columns, [*BY_COLUMN.values(), ""], strict=True)
    )
    nearer = (anchor * (positive - negative)).sum(1) / np.linalg.norm(anchor, axis=1)
    assert np.abs(nearer).min() > 1e-4
    assert record["result"]["dev"] == approx(np.mean(nearer > 0))


def test_interpolate_averages_backbone_and_trained_weights(tmp_path):
    backbone = save_bert(tmp_path / "bert", layers=1)

    train(backbone, tmp_path / "trained", interpolate=1)
    train(backbone, tmp_path / "mixed", interpolate=0.25)
    first, trained, mixed = (
        weights(tmp_path / name) for name in ("bert", "trained", "mixed")
    )
    assert_close(mixed, {name: first[name].lerp(trained[name], 0.25) for name in mixed})
    changed = [name for name in mixed if not torch.equal(mixed[name], first[name])]
    assert len(changed) > 5
