"""What can't be loaded is refused in one line, before anything of it runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from aoe_train.backbones.load import find_folder, load_backbone
from pairkit.errors import ConfigError, DataError, RemoteError


@pytest.fixture
def copy(bert: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(bert, tmp_path / "copy"))


def _edit(folder: Path, **fields: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_a_folder_is_loaded_in_float32(bert: Path) -> None:
    found = load_backbone(bert)
    assert next(found.backbone.parameters()).dtype == torch.float32
    assert found.folder == bert


def test_the_packaged_model(minilm: Path) -> None:
    assert find_folder("minilm") == minilm


@pytest.mark.parametrize("source", ["./nowhere", "/nowhere/at/all", "a/b/c", "with space"])
def test_no_such_folder(source: str) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        load_backbone(source)


def test_a_file_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    with pytest.raises(ConfigError, match="a file"):
        load_backbone(tmp_path / "f")


def test_a_hub_id_without_a_network() -> None:
    with pytest.raises(RemoteError, match="hub could not be reached"):
        load_backbone("nobody/nothing-of-this-name")


def test_pickled_weights_are_refused_unread(copy: Path) -> None:
    torch.save(load_file(copy / "model.safetensors"), copy / "pytorch_model.bin")
    (copy / "model.safetensors").unlink()
    with pytest.raises(ConfigError, match="pickle"):
        load_backbone(copy)


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"config\.json"):
        load_backbone(tmp_path)


def test_no_weights(copy: Path) -> None:
    (copy / "model.safetensors").unlink()
    with pytest.raises(ConfigError, match="no weights"):
        load_backbone(copy)


@pytest.mark.parametrize(
    "fields", [{"num_hidden_layers": 3}, {"num_hidden_layers": 1}, {"intermediate_size": 40}]
)
def test_weights_of_another_configuration(copy: Path, fields: dict) -> None:
    _edit(copy, **fields)
    with pytest.raises(DataError, match="another configuration"):
        load_backbone(copy)


def test_damaged_weights(copy: Path) -> None:
    whole = (copy / "model.safetensors").read_bytes()
    (copy / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="not loadable"):
        load_backbone(copy)


def test_an_unknown_architecture(copy: Path) -> None:
    _edit(copy, model_type="quantum", architectures=["QuantumModel"])
    with pytest.raises(ConfigError, match="architecture"):
        load_backbone(copy)


def test_remote_code_needs_a_pinned_commit() -> None:
    for revision in (None, "main", "abc123"):
        with pytest.raises(ConfigError, match="pin the commit"):
            load_backbone("some/model", trust_remote_code=True, revision=revision)


def test_a_pooler_takes_no_part_in_training(bert: Path, copy: Path) -> None:
    assert load_backbone(bert).backbone.pooler is None
    weights = load_file(copy / "model.safetensors")
    weights |= {"pooler.dense.weight": torch.zeros(32, 32), "pooler.dense.bias": torch.zeros(32)}
    save_file(weights, copy / "model.safetensors", {"format": "pt"})
    pooler = load_backbone(copy).backbone.pooler
    assert not any(p.requires_grad for p in pooler.parameters())
