"""Hostile model folders: each is refused with one line, and none of its code runs."""

import json
import os
import pickle
import random
import shutil
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import aoe_train
from aoe_train import Encoder
from aoe_train.model.backbones.load_backbone import outline
from benchmarks.aoe_parsers import AOE, SIGNS
from benchmarks.hostile_texts import MARKUP
from benchmarks.mutated import mutated
from pairkit import ConfigError, DataError, PairkitError
from tests.aoe_train.conftest import Killed
from tests.aoe_train.tiny import edit, load
from tests.support.linear import assert_linear, repeated
from tests.support.shorthand import (
    each_line,
    module_fixture,
    parametrize,
    raises,
    table,
    text_lines,
)


def refused(call, error, message):
    with raises(error, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def unloadable(folder, error, message):
    refused(partial(load, folder), error, message)


@table(
    """
    fields, error, message
    {'attn_implementation': 'evil/kernel'} | ConfigError | would download and run code
    {'_attn_implementation': 'evil/kernel@main:x'} | ConfigError | would download and run code
    {'text_config': {'attn_implementation': 'evil/kernel'}} | ConfigError | would download and run code
    {'attn_implementation': {'text': 'evil/kernel'}} | ConfigError | would download and run code
    {'experts_implementation': 'evil/kernel'} | ConfigError | would download and run code
    {'use_kernels': True} | ConfigError | would download and run code
    {'quantization_config': {'quant_method': 'mxfp4'}} | ConfigError | quantized by 'mxfp4'
    {'num_hidden_layers': 1000000000} | ConfigError | num_hidden_layers = 1000000000: expected at most 1,000
    {'text_config': {'num_labels': 1000000000}} | ConfigError | num_labels = 1000000000
    {'hidden_size': 'wide'} | DataError | not loadable
    """,
)
def test_refused_configurations(copy, fields, error, message):
    edit(copy / "config.json", **fields)
    unloadable(copy, error, message)
    refused(partial(outline, copy), error, message)


def test_accepted_configurations(copy):
    edit(copy / "config.json", attn_implementation="sdpa", quantization_config=None)
    write_modules(copy, "Transformer", "Pooling")
    # As for a RoBERTa, whose first two positions have no tokens.
    edit(copy / "sentence_bert_config.json", max_seq_length=66)
    assert load(copy).settings.max_length == 64
    quantized = {"quant_method": "bitsandbytes", "load_in_4bit": True}
    edit(copy / "config.json", quantization_config=quantized)
    unloadable(copy, ConfigError, "needs another package .*bitsandbytes")


@each_line(
    """
    name
    config.json
    tokenizer.json
    tokenizer_config.json
    aoe.json
    modules.json
    """
)
@parametrize("content", [b"[" * 200_000, b"{", b"\xff", b"[]", b"1" * 5000])
def test_hostile_json(copy, name, content):
    (copy / name).write_bytes(content)
    unloadable(copy, DataError, rf"{name}")


@table(
    """
    fields, message
    {'megatron_config': {'a': 1}, 'megatron_core': 'evil'} | megatron_co
    {'megatron_core': 'evil'} | megatron_core is set
    {'layer_replication': [[0, 1000000000]]} | layer_replication is set
    {'peft_type': 'XLORA'} | plain low-rank adapters
    {} | consists of adapters
    {'base_model_name_or_path': '/nowhere'} | its adapters, /nowhere, can't be loaded
    """,
)
def test_only_plain_low_rank_adapters_are_accepted(copy, fields, message):
    shutil.copy(copy / "model.safetensors", copy / "adapter_model.safetensors")
    own = {"peft_type": "LORA", "r": 4, "target_modules": ["query"]}
    own["base_model_name_or_path"] = str(copy)
    edit(copy / "adapter_config.json", **own | fields)
    unloadable(copy, PairkitError, message)


def test_a_tokenizer_rule_that_takes_too_long(copy):
    split = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated"}
    edit(copy / "tokenizer.json", pre_tokenizer=split | {"invert": False})
    encoder = load(copy)
    refused(lambda: encoder.encode(["a" * 40 + "!"]), DataError, "tokenizer failed on")
    merged = {"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}
    model = {"type": "BPE", "continuing_subword_prefix": "###", **merged}
    edit(copy / "tokenizer.json", model=model)
    unloadable(copy, DataError, "tokenizer failed on its own rules")


# Folders of sentence-transformers


def list_modules(folder, kinds):
    """Write modules.json, with the modules' kinds by path."""
    models = "sentence_transformers.models."
    listed = [
        {
            "idx": number,
            "name": str(number),
            "path": path,
            "type": kind if "." in kind else models + kind,
        }
        for number, (path, kind) in enumerate(kinds.items())
    ]
    (folder / "modules.json").write_text(json.dumps(listed))


def write_modules(folder, *kinds, pooling=None):
    """Write modules.json, with the transformer in the folder itself, and the others' settings."""
    paths = ["", *(f"{number}_m" for number in range(1, len(kinds)))]
    list_modules(folder, dict(zip(paths, kinds, strict=True)))
    for path in paths[1:]:
        edit(folder / path / "config.json")
    if len(kinds) > 1:
        edit(
            folder / "1_m/config.json", **pooling or {"pooling_mode_mean_tokens": True}
        )


class Bomb:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_router_of_release_5_is_not_opened(copy, tmp_path):
    write_modules(copy, "Transformer", "Pooling", "Router")
    (copy / "2_m" / "evil.pkl").write_bytes(pickle.dumps(Bomb(tmp_path / "ran")))
    told = {"types": {"evil.pkl": "pickle.load"}, "structure": {"query": ["evil.pkl"]}}
    edit(copy / "2_m" / "router_config.json", **told)
    unloadable(copy, ConfigError, "use sentence-transformers for .*Router")
    assert not (tmp_path / "ran").exists()


@table(
    """
    kinds, pooling, message
    Transformer Pooling sentence_transformers.util.misc.import_from_string | None | for .*import_from_string
    Transformer Pooling CLIPModel | None | use sentence-transformers for .*CLIPModel
    Transformer Pooling os.system | None | use sentence-transformers for .*os.system
    Transformer Pooling Normalize Dense | None | Normalize, Dense
    StaticEmbedding Pooling | None | StaticEmbedding, Pooling
    Transformer | None | are Transformer;
    Transformer Pooling | {'pooling_mode_mean_sqrt_len_tokens': True} | mean_sqrt_len_tokens
    Transformer Pooling | {'pooling_mode_cls_token': True, 'pooling_mode_mean_tokens': True} | cls_token.*mean_tokens
    Transformer Pooling | {'pooling_mode': 'median'} | median
    """,
)
def test_unlisted_modules_and_poolings_are_refused(copy, kinds, pooling, message):
    write_modules(copy, *kinds.split(), pooling=pooling)
    unloadable(copy, ConfigError, message)


DENSE, TRANSFORMER = "2_m/config.json", "sentence_bert_config.json"


@table(
    """
    file, fields, message
    DENSE | {'activation_function': 'os.system'} | activation_function = 'os.system'
    DENSE | {'activation_function': 'torch.nn.modules.module.Module'} | activation_function
    DENSE | {'activation_function': 'torch.hub.load'} | activation_function
    DENSE | {'in_features': '32'} | in_features
    DENSE | {'own': 1} | own = 1: is an unknown setting
    TRANSFORMER | {'model_args': {'trust_remote_code': True}} | trust_remote_code
    TRANSFORMER | {'model_kwargs': {'attn_implementation': 'evil/kernel'}} | attn_implementation
    TRANSFORMER | {'tokenizer_name_or_path': 'evil/tokenizer'} | tokenizer_name_or_path
    TRANSFORMER | {'processing_kwargs': {'chat_template': {}}} | processing_kwargs
    TRANSFORMER | {'max_seq_length': -1} | max_seq_length
    """,
    DENSE=DENSE,
    TRANSFORMER=TRANSFORMER,
)
def test_unlisted_settings_of_modules_are_refused(copy, file, fields, message):
    write_modules(copy, "Transformer", "Pooling", "Dense")
    shutil.copy(copy / "model.safetensors", copy / "2_m" / "model.safetensors")
    edit(copy / DENSE, in_features=32, out_features=8, bias=False)
    edit(copy / file, **fields)
    unloadable(copy, DataError, message)


@each_line(
    """
    path
    ../other
    /etc
    a/b
    ..
    1_m/../..
    """
)
def test_module_paths_outside_the_folder_are_refused(copy, path):
    list_modules(copy, {"": "Transformer", path: "Pooling"})
    unloadable(copy, DataError, "path = ")


# Other untrusted files

ROWS = [
    {"text1": "a dog", "text2": f"the {word}", "score": len(word)}
    for word in ("cat", "house", "is")
]


def test_hash_files_that_are_pickles_or_too_large(copy, tmp_path):
    evaluate = partial(aoe_train.evaluate, copy, data=ROWS, resamples=0)
    path = copy / "training_texts.npy"
    np.save(path, np.array([Bomb(tmp_path / "ran")], dtype=object), allow_pickle=True)
    refused(evaluate, DataError, "not readable")
    assert not (tmp_path / "ran").exists()
    with path.open("wb") as file:
        header = {"descr": "<u8", "fortran_order": False, "shape": (10**15,)}
        np.lib.format.write_array_header_1_0(file, header)
    short = b"\x93NUMPY\x01\x00\xff\xff"
    for content in (path.read_bytes(), b"\x93NUMPY", b"PK\x03\x04", b"", short):
        path.write_bytes(content)
        refused(evaluate, DataError, r"training_texts\.npy: not readable")
    np.save(path, np.zeros(3))
    refused(evaluate, DataError, "expected hashes of texts")


def test_pickled_training_states_are_refused(bert, tmp_path, kill_at):
    train = partial(
        aoe_train.train,
        ROWS,
        backbone=bert,
        out=tmp_path / "m",
        preset="cosent",
        epochs=3,
        batch_size=2,
        settings={"log.checkpoint_steps": 1},
    )

    kill_at(2)
    with raises(Killed):
        train()
    (state,) = (tmp_path / "m.work").glob("step-*.pt")
    torch.save({"optimiser": Bomb(tmp_path / "ran")}, state)
    refused(train, DataError, r"step-\d.pt: can't continue from this file .*fresh=True")
    assert not (tmp_path / "ran").exists()


def test_a_modified_packaged_model_is_refused(minilm, tmp_path, monkeypatch):
    assert load("minilm").dim == 384
    copy = shutil.copytree(minilm, tmp_path / "model")
    found = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: found)
    for name in text_lines("""
            tokenizer.json
            config.json
            1_Pooling/config.json
            own.py
            model.safetensors
            """):
        size = (copy / name).stat().st_size if (copy / name).exists() else 0
        with (copy / name).open("a") as file:
            file.write(" ")
        message = rf"{name} differs from the published.*give the folder"
        unloadable("minilm", ConfigError, message)
        if name == "config.json":
            assert load(copy).dim == 384
        if size:
            os.truncate(copy / name, size)
        else:
            (copy / name).unlink()


@module_fixture
def saved(shallow, tmp_path_factory):
    """A folder of sentence-transformers with all kinds of settings, and one of ours."""
    folder = tmp_path_factory.mktemp("saved")
    options = {"prompts": {"q": "find: "}, "default_prompt_name": "q", "dense": [4]}
    encoder = load(shallow, pooling="avg", normalize=True, **options)
    encoder.save(folder / "theirs")
    shutil.copytree(folder / "theirs", folder / "ours")
    (folder / "theirs/aoe.json").unlink()
    return folder


SETTINGS = text_lines("""
    theirs/config_sentence_transformers.json
    theirs/modules.json
    theirs/sentence_bert_config.json
    theirs/tokenizer_config.json
    theirs/1_Pooling/config.json
    theirs/dense_1/config.json
    ours/aoe.json
""")


@settings(max_examples=90)
@given(st.sampled_from(SETTINGS), st.integers(0, 2**48))
def test_mutated_values_are_refused_in_one_line(saved, file, seed):
    path = saved / file
    before = path.read_text()
    path.write_text(json.dumps(mutated(json.loads(before), random.Random(seed))))
    folder = saved / Path(file).parts[0]
    told = refusal_of(lambda: Encoder.load(folder, inference_only=True))
    path.write_text(before)
    assert ("\n" in told, len(told) < 2000) == (False, True)


def refusal_of(call):
    try:
        call()
    except (ConfigError, DataError) as error:
        return str(error)
    return ""


UNITS = [*SIGNS[::4], *MARKUP[::40], "[CLS]##", "\r\n\u0301", "a/..", "{text} "]


@parametrize("name", AOE)
def test_repetitions_take_linear_time(name):
    parse = AOE[name]()
    for unit in UNITS:
        assert_linear(parse, repeated(unit))
