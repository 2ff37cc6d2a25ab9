"""Hostile model folders: each is refused with one line, and none of its code runs."""

import json
import pickle
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from aoe_train.evaluation.overlap import read_digests
from aoe_train.model.backbones.load_backbone import load_backbone
from aoe_train.model.backbones.packaged import check_published
from aoe_train.model.encoder import Encoder
from aoe_train.model.encoder_settings import stored_settings
from aoe_train.model.folder_checks import check_modules, check_settings
from aoe_train.settings.train_settings import EncoderSettings
from aoe_train.training import checkpoints
from benchmarks.aoe_parsers import AOE, SIGNS
from benchmarks.hostile_texts import MARKUP
from benchmarks.mutated import mutated
from pairkit.base.errors import ConfigError, DataError, PairkitError
from tests.aoe_train.tiny import edit
from tests.support.linear import assert_linear, repeated


def refused(load: Callable[[], object], error: type[PairkitError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        load()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"attn_implementation": "evil/kernel"}, ConfigError, "would download and run code"),
        ({"_attn_implementation": "evil/kernel@main:x"}, ConfigError, "would download and run code"),
        ({"text_config": {"attn_implementation": "evil/kernel"}}, ConfigError, "would download and run code"),
        ({"attn_implementation": {"text": "evil/kernel"}}, ConfigError, "would download and run code"),
        ({"experts_implementation": "evil/kernel"}, ConfigError, "would download and run code"),
        ({"use_kernels": True}, ConfigError, "would download and run code"),
        ({"quantization_config": {"quant_method": "mxfp4"}}, ConfigError, "quantized by 'mxfp4'"),
        ({"hidden_size": "wide"}, DataError, "not loadable"),
    ],
)
def test_refused_configurations(copy, fields, error, message):
    edit(copy / "config.json", **fields)
    for load in (load_backbone, Encoder.load):
        refused(lambda load=load: load(copy), error, message)  # type: ignore[misc]


@pytest.mark.parametrize(
    "fields",
    [
        {"attn_implementation": "sdpa", "quantization_config": None},
        {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}},
    ],
)
def test_accepted_configurations(copy, fields):
    edit(copy / "config.json", **fields)
    check_settings(copy)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json", "aoe.json"])
@pytest.mark.parametrize("content", [b"[" * 200_000, b"{", b"\xff", b"[]", b"1" * 5000])
def test_hostile_json(copy, name, content):
    (copy / name).write_bytes(content)
    refused(lambda: Encoder.load(copy), DataError, rf"{name}")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"megatron_config": {"a": 1}, "megatron_core": "evil"}, "megatron_co"),
        ({"megatron_core": "evil"}, "megatron_core is set"),
        ({"layer_replication": [[0, 10**9]]}, "layer_replication is set"),
        ({"peft_type": "XLORA"}, "plain low-rank adapters"),
        ({}, "consists of adapters"),
        ({"base_model_name_or_path": "/nowhere"}, "its adapters, /nowhere, can't be loaded"),
    ],
)
def test_only_plain_low_rank_adapters_are_accepted(copy, fields, message):
    shutil.copy(copy / "model.safetensors", copy / "adapter_model.safetensors")
    own = {"peft_type": "LORA", "r": 4, "target_modules": ["query"], "base_model_name_or_path": str(copy)}
    edit(copy / "adapter_config.json", **{**own, **fields})
    refused(lambda: load_backbone(copy), PairkitError, message)


def test_a_tokenizer_rule_that_takes_too_long(copy):
    split = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    edit(copy / "tokenizer.json", pre_tokenizer=split)
    encoder = Encoder.load(copy, device="cpu")
    refused(lambda: encoder.encode(["a" * 40 + "!"]), DataError, "tokenizer failed on")


# Folders of sentence-transformers


def write_modules(folder: Path, *kinds: str) -> Path:
    """Write modules.json, with the transformer in the folder itself."""
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
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_a_router_of_release_5_is_not_opened(copy, tmp_path):
    write_modules(copy, "Transformer", "Pooling", "Router")
    (copy / "2_m" / "evil.pkl").write_bytes(pickle.dumps(Bomb(tmp_path / "ran")))
    told = {"types": {"evil.pkl": "pickle.load"}, "structure": {"query": ["evil.pkl"]}}
    edit(copy / "2_m" / "router_config.json", **told)
    refused(lambda: check_modules(copy), ConfigError, "Router isn't supported")
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
def test_unlisted_modules_are_refused(copy, kind):
    write_modules(copy, "Transformer", "Pooling", kind)
    refused(lambda: check_modules(copy), ConfigError, "isn't supported")


DENSE, TRANSFORMER = "2_m/config.json", "sentence_bert_config.json"


@pytest.mark.parametrize(
    ("file", "fields", "message"),
    [
        (DENSE, {"activation_function": "os.system"}, "activation_function = 'os.system'"),
        (DENSE, {"activation_function": "torch.nn.modules.module.Module"}, "activation_function"),
        (DENSE, {"activation_function": "torch.hub.load"}, "activation_function"),
        (DENSE, {"in_features": "32"}, "in_features"),
        (DENSE, {"own": 1}, "own = 1: is an unknown setting"),
        (TRANSFORMER, {"model_args": {"trust_remote_code": True}}, "trust_remote_code"),
        (TRANSFORMER, {"model_kwargs": {"attn_implementation": "evil/kernel"}}, "attn_implementation"),
        (TRANSFORMER, {"tokenizer_name_or_path": "evil/tokenizer"}, "tokenizer_name_or_path"),
        (TRANSFORMER, {"processing_kwargs": {"chat_template": {}}}, "processing_kwargs"),
        (TRANSFORMER, {"max_seq_length": -1}, "max_seq_length"),
    ],
)
def test_unlisted_settings_of_modules_are_refused(copy, file, fields, message):
    write_modules(copy, "Transformer", "Pooling", "Dense")
    shutil.copy(copy / "model.safetensors", copy / "2_m" / "model.safetensors")
    edit(copy / DENSE, in_features=32, out_features=8, bias=False)
    edit(copy / file, **fields)
    refused(lambda: Encoder.load(copy), DataError, message)


@pytest.mark.parametrize("path", ["../other", "/etc", "a/b", "..", "1_m/../.."])
def test_module_paths_outside_the_folder_are_refused(copy, path):
    write_modules(copy, "Transformer", "Pooling")
    listed = json.loads((copy / "modules.json").read_text())
    listed[1]["path"] = path
    (copy / "modules.json").write_text(json.dumps(listed))
    refused(lambda: Encoder.load(copy), DataError, "path = ")


def test_folders_of_sentence_transformers_are_accepted(bert, tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules as st

    parts = [st.Transformer(str(bert)), st.Pooling(32), st.Dense(32, 8), st.LayerNorm(8), st.Normalize()]
    SentenceTransformer(modules=parts, device="cpu").save(str(tmp_path / "m"))
    check_modules(tmp_path / "m")


# Other files of a stranger's


def test_hash_files_that_are_pickles_or_too_large(tmp_path):
    path = tmp_path / "training_texts.npy"
    np.save(path, np.array([Bomb(tmp_path / "ran")], dtype=object), allow_pickle=True)
    refused(lambda: read_digests(tmp_path), DataError, "not readable")
    assert not (tmp_path / "ran").exists()
    with path.open("wb") as file:
        header = {"descr": "<u8", "fortran_order": False, "shape": (10**15,)}
        np.lib.format.write_array_header_1_0(file, header)
    for content in (path.read_bytes(), b"\x93NUMPY", b"PK\x03\x04", b"", b"\x93NUMPY\x01\x00\xff\xff"):
        path.write_bytes(content)
        refused(lambda: read_digests(tmp_path), DataError, "not readable")


def test_pickled_training_states_are_refused(tmp_path):
    path = tmp_path / "step-3.pt"
    torch.save({"optimiser": Bomb(tmp_path / "ran")}, path)
    refused(
        lambda: checkpoints.read(path), DataError, r"step-3.pt: can't continue from this file .*fresh=True"
    )
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "name", ["tokenizer.json", "config.json", "1_Pooling/config.json", "own.py", "model.safetensors"]
)
def test_a_modified_packaged_model_is_refused(minilm, tmp_path, name, monkeypatch):
    check_published(minilm)
    copy = Path(shutil.copytree(minilm, tmp_path / "model"))
    with (copy / name).open("a") as file:
        file.write(" ")
    found = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: found)
    message = rf"{name} differs from the published.*give the folder"
    refused(lambda: Encoder.load("minilm"), ConfigError, message)
    if name == "config.json":
        assert Encoder.load(copy, device="cpu").dim == 384


HOME = "sentence_transformers.models"
FILES: dict[str, Any] = {
    "modules.json": [
        {"idx": 0, "name": "0", "path": "", "type": f"{HOME}.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": f"{HOME}.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Dense", "type": f"{HOME}.Dense"},
    ],
    "1_Pooling/config.json": {"word_embedding_dimension": 8, "pooling_mode_mean_tokens": True},
    "2_Dense/config.json": {"in_features": 8, "out_features": 4},
    "sentence_bert_config.json": {"max_seq_length": 16, "model_args": {"dtype": "float32"}},
    "config_sentence_transformers.json": {"prompts": {"q": "find: "}, "default_prompt_name": "q"},
    "tokenizer_config.json": {"model_max_length": 16},
    "config.json": {"model_type": "bert", "hidden_size": 8, "max_position_embeddings": 32},
    "adapter_config.json": {"peft_type": "LORA", "r": 4, "target_modules": ["query"], "auto_mapping": None},
    "aoe.json": {"format": 1, **EncoderSettings(dense=[{"size": 4}]).model_dump()},  # type: ignore[list-item]
}
READERS: tuple[Callable[[Path], object], ...] = (stored_settings, check_settings, check_modules)


@settings(max_examples=90)
@given(st.sampled_from(list(FILES)), st.sampled_from(READERS), st.integers(0, 2**48))
def test_mutated_values_are_refused_in_one_line(name, read, seed):
    with TemporaryDirectory() as made:
        folder = Path(made)
        for file, content in FILES.items():
            (folder / file).parent.mkdir(exist_ok=True)
            if file != "aoe.json" or name == file:
                (folder / file).write_text(json.dumps(content))
        (folder / name).write_text(json.dumps(mutated(FILES[name], random.Random(seed))))
        told = refusal_of(lambda: read(folder))
        assert ("\n" in told, len(told) < 2000) == (False, True)


def refusal_of(call: Callable[[], object]) -> str:
    try:
        call()
    except (ConfigError, DataError) as error:
        return str(error)
    return ""


UNITS = [*SIGNS[::4], *MARKUP[::40], "[CLS]##", "\r\n\u0301", "a/..", "{text} "]


@pytest.mark.parametrize("name", AOE)
def test_repetitions_take_linear_time(name):
    parse = AOE[name]()
    for unit in UNITS:
        assert_linear(parse, repeated(unit))
