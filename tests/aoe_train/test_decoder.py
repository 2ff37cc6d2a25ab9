"""Decoders as encoders: adapters, bidirectional attention and padding."""

import shutil
from itertools import product

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel, LlamaModel

from tests.aoe_train.test_dense_layers import fit
from tests.aoe_train.tiny import (
    edit,
    load,
    read_json,
    save_llama,
    sentence_transformer,
)
from tests.support.shorthand import (
    config_error,
    data_error,
    module_fixture,
    pair,
    values,
)

TEXTS = [
    "a cat is playing",
    "large error when opening the file",
    "no",
    "bread or apple " * 30,
]
ROWS = [pair(one, other, float(one == other)) for one, other in product(TEXTS, TEXTS)]


def train(backbone, out, epochs=2, **settings):
    """Train adapters for a few steps."""
    given = {"encoder.pooling": "last", "lora.rank": 4, "lora.dropout": 0, **settings}
    how = {"lora": True, "prompts": "{text}", "epochs": epochs, "lr": 0.02}
    return fit(backbone, out, settings=given, data=ROWS, **how).encoder


@module_fixture
def tuned(llama, tmp_path_factory):
    out = tmp_path_factory.mktemp("tuned") / "m"
    train(llama, out)
    return out


def test_adapters_of_every_linear_layer_learn_and_the_backbone_stays(llama, tuned):
    backbone = AutoModel.from_pretrained(llama)
    stored = load_file(tuned / "adapter_model.safetensors")
    adapted = {name.partition(".lora_")[0] for name in stored}
    assert len(adapted) == 14  # q, k, v, o, gate, up, down in two layers
    assert not (tuned / "model.safetensors").exists()
    encoder = load(tuned)
    weights = dict(encoder.model.backbone.named_parameters())
    for name, weight in backbone.named_parameters():
        kept = weights.get(name, weights.get(name.replace("proj.", "proj.base_layer.")))
        assert kept is not None
        assert torch.equal(kept, weight)
    plain = load(llama, pooling="last").encode(TEXTS)
    assert abs(encoder.encode(TEXTS) - plain).max() > 0.01


def test_sentence_transformers_loads_adapters_and_damaged_ones_are_refused(
    tuned, tmp_path
):
    expected = load(tuned).encode(TEXTS)
    assert abs(sentence_transformer(tuned).encode(TEXTS) - expected).max() < 1e-5
    damaged = shutil.copytree(tuned, tmp_path / "damaged")
    weights = load_file(damaged / "adapter_model.safetensors")
    del weights[min(weights)]
    save_file(weights, damaged / "adapter_model.safetensors")
    with data_error(r"don't match config\.json: 1 are missing"):
        load(damaged)


def test_a_saved_model_replaces_adapters(llama, tuned, tmp_path):
    folder = shutil.copytree(tuned, tmp_path / "m")
    plain = load(llama)
    plain.save(folder)
    assert abs(load(folder).encode(TEXTS) - plain.encode(TEXTS)).max() < 1e-5


def test_impossible_adapters(llama, out, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for settings, message in values("""
            # names the layers that exist
            {'lora.targets': 'query,key'} | query.*key.*down_proj.*q_proj
            {'lora.four_bit': True} | four_bit needs a CUDA device
            """):
        with config_error(message):
            train(llama, out, **settings)


def test_adapters_store_the_commit_of_a_hub_base(llama, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    kept = tmp_path / "hub" / "models--org--llama"
    commits = {"a" * 40: llama, "b" * 40: save_llama(tmp_path / "other", seed=1)}
    for commit, folder in commits.items():
        shutil.copytree(folder, kept / "snapshots" / commit)
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("a" * 40)
    encoder = train("org/llama", tmp_path / "adapters", epochs=1)
    about = read_json(tmp_path / "adapters/adapter_config.json")
    assert about["base_model_name_or_path"] == "org/llama"
    assert about["revision"] == "a" * 40
    # A new commit doesn't change the base of the adapters.
    (kept / "refs" / "main").write_text("b" * 40)
    again = load(tmp_path / "adapters")
    assert abs(again.encode(TEXTS) - encoder.encode(TEXTS)).max() < 1e-5
    again.save(tmp_path / "copied")
    copied = read_json(tmp_path / "copied/adapter_config.json")
    for written in (about, copied):
        written["target_modules"].sort()  # peft writes a set
    assert {**copied, "inference_mode": False} == about


def test_a_model_that_stays_causal_is_refused(llama, monkeypatch):
    forward = LlamaModel.forward
    monkeypatch.setattr(
        LlamaModel, "forward", lambda *a, **k: forward(*a, **{**k, "is_causal": True})
    )
    with config_error("both directions"):
        load(llama, bidirectional=True)


def test_the_padding_token_is_an_existing_token(llama, out):
    tokenizer = load(llama).tokenizer
    assert tokenizer.pad_token == "</s>"
    assert tokenizer.pad_token_id < len(tokenizer)
    folder = shutil.copytree(llama, out)
    edit(folder / "tokenizer_config.json", eos_token=None, bos_token=None)
    with config_error("no padding token"):
        load(folder)


@pytest.mark.gpu
@pytest.mark.skipif(
    not torch.cuda.is_available(), reason="4-bit weights need a CUDA device"
)
def test_qlora_learns(llama, tmp_path):
    pytest.importorskip("bitsandbytes", reason="4-bit weights need bitsandbytes")
    train(llama, tmp_path / "m", **{"lora.four_bit": True})
    assert any(
        weight.any()
        for name, weight in load_file(tmp_path / "m/adapter_model.safetensors").items()
        if "lora_B" in name
    )
