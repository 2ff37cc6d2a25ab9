"""BERT without transformers' code for models: the same vectors, and nothing heavy is imported for them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertModel

from aoe_train import Encoder, __main__, encode
from aoe_train.model.backbones.packed_bert import PackedBert, read_bert
from pairkit.app.errors import ConfigError, DataError
from tests.aoe_train.tiny import save_bert

TEXTS = ["the man is playing", "a dog", "the old city of the river and the small red boat", "a dog", "x"]
# What each imports is no part of encoding: training, compiling, data sets, other libraries' mathematics.
HEAVY = {
    *("torch._dynamo", "torch._inductor", "torch.distributed.tensor", "sympy"),
    *("transformers.modeling_utils", "transformers.trainer", "accelerate", "peft"),
    *("datasets", "polars", "pandas", "pyarrow", "scipy", "sklearn", "openai", "sentence_transformers"),
    *("aoe_train.training.trainer", "aoe_train.model.ran"),
}


@pytest.fixture
def copy(bert: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(bert, tmp_path / "copy"))


def edit(folder: Path, **fields: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


@pytest.mark.parametrize(
    ("precision", "pooling"), [("fp32", "cls"), ("fp32", "first-last-avg"), ("bf16", "avg")]
)
def test_vectors_and_identity_are_those_of_transformers(bert: Path, pooling: Any, precision: Any) -> None:
    ours, theirs = (
        Encoder.load(bert, precision=precision, inference_only=only, pooling=pooling)
        for only in (True, False)
    )
    assert type(ours.model.backbone) is PackedBert
    assert type(theirs.model.backbone) is BertModel
    assert ours.identity() == theirs.identity()
    assert np.array_equal(ours.encode(TEXTS), theirs.encode(TEXTS))
    assert np.array_equal(ours.encode(TEXTS[0]), theirs.encode(TEXTS[0]))


@pytest.mark.parametrize(("dim", "layers", "seed"), [(8, 1, 1), (20, 3, 3)])
def test_networks_of_other_sizes(tmp_path: Path, dim: int, layers: int, seed: int) -> None:
    folder = save_bert(tmp_path, dim=dim, layers=layers, seed=seed)
    ours, theirs = (Encoder.load(folder, inference_only=only) for only in (True, False))
    assert type(ours.model.backbone) is PackedBert
    assert np.array_equal(ours.encode(TEXTS), theirs.encode(TEXTS))


def test_a_pooler_is_kept_among_the_weights(copy: Path) -> None:
    BertModel.from_pretrained(copy).save_pretrained(copy)
    ours, theirs = (Encoder.load(copy, inference_only=only) for only in (True, False))
    assert "backbone.pooler.dense.weight" in dict(ours.model.named_parameters())
    assert ours.identity() == theirs.identity()


def test_positions_of_older_files_are_left_out(copy: Path) -> None:
    weights = load_file(copy / "model.safetensors")
    save_file({**weights, "embeddings.position_ids": torch.arange(64)[None]}, copy / "model.safetensors")
    assert read_bert(copy, torch.float32) is not None


@pytest.mark.parametrize(
    "fields",
    [
        {"hidden_act": "relu"},
        {"is_decoder": True},
        {"chunk_size_feed_forward": 2},
        {"position_embedding_type": "relative_key"},
        {"model_type": "electra"},
        {"is_causal": False},
    ],
)
def test_what_is_no_plain_bert_is_left_to_transformers(copy: Path, fields: dict) -> None:
    edit(copy, **fields)
    assert read_bert(copy, torch.float32) is None


def test_weights_under_other_names_or_in_several_files_are_left_to_transformers(copy: Path) -> None:
    weights = load_file(copy / "model.safetensors")
    save_file({f"bert.{name}": part for name, part in weights.items()}, copy / "model.safetensors")
    assert read_bert(copy, torch.float32) is None
    save_file(weights, copy / "model.safetensors")
    assert read_bert(copy, torch.float32) is not None
    shutil.copy(copy / "model.safetensors", copy / "other.safetensors")
    assert read_bert(copy, torch.float32) is None


def test_damaged_weights_are_refused_as_ever(copy: Path) -> None:
    path = copy / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="copy or download it again"):
        Encoder.load(copy, inference_only=True)


@pytest.mark.parametrize("options", [{"packing": False}, {"bidirectional": True}])
def test_what_it_can_not_do_is_left_to_transformers(bert: Path, options: dict) -> None:
    encoder = Encoder.load(bert, inference_only=True, **options)
    assert type(encoder.model.backbone) is BertModel


def test_it_is_not_saved(bert: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="inference_only"):
        Encoder.load(bert, inference_only=True).save(tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_encoding_imports_nothing_heavy(bert: Path, tmp_path: Path, precision: str) -> None:
    (tmp_path / "texts.txt").write_text("a dog\n")
    program = (
        "import sys; from aoe_train.cli import app\n"
        f"app(['encode', 'texts.txt', '-m', {str(bert)!r}, '-o', 'v.npy', '-q',"
        f" '--precision', {precision!r}], standalone_mode=False)\n"
        "print(*sys.modules)"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    loaded = set(told.stdout.split())
    assert "transformers.models.bert.configuration_bert" in loaded
    assert loaded & HEAVY == set()
    again = encode(["a dog"], model=str(bert), precision=precision, progress=False)
    assert np.array_equal(np.load(tmp_path / "v.npy"), again)


@pytest.mark.parametrize("chosen", [None, "ACTIVE"])
def test_commands_let_idle_threads_sleep(monkeypatch: pytest.MonkeyPatch, chosen: str | None) -> None:
    monkeypatch.setattr(__main__, "start", lambda _: None)
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if chosen is not None:
        monkeypatch.setenv("OMP_WAIT_POLICY", chosen)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    __main__.main()
    assert os.environ["OMP_WAIT_POLICY"] == (chosen or "PASSIVE")


def test_little_work_is_done_on_one_thread(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, seen = Encoder.load(bert, inference_only=True), []
    encoder.model.register_forward_hook(lambda *_: seen.append(torch.get_num_threads()))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        encoder.encode("a dog")
        monkeypatch.setattr("aoe_train.model.encoder._LITTLE", 1)
        encoder.encode("a dog")
        assert seen == [1, 2]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
