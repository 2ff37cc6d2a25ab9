"""Unusable or untrusted models are refused before any of their code runs."""

import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from aoe_train.model.backbones.load_backbone import outline
from tests.aoe_train.tiny import edit, load
from tests.support.shorthand import config_error, parametrize, raises, table


def pickled(path):
    torch.save({}, path.with_name("pytorch_model.bin"))
    path.unlink()


def cut_in_half(path):
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


@table(
    r"""
    source, error, message
    ./nowhere | ConfigError | no such folder
    /nowhere | ConfigError | no such folder
    a/b/c | ConfigError | no such folder
    with space | ConfigError | no such folder
    FILE | ConfigError | a file
    FOLDER | ConfigError | config\.json
    nobody/nothing-of-this-name | RemoteError | Hub could not be reached
    """,
    FILE=__file__,
    FOLDER=str(Path(__file__).parent),
)
def test_invalid_model_names_are_refused(source, error, message):
    with raises(error, match=message):
        load(source)


def pointer(path):
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:1\n")


@table(
    """
    file, harm, error, message
    model.safetensors | pickled | ConfigError | pickle
    model.safetensors | unlink | ConfigError | no weights
    model.safetensors | cut_in_half | DataError | not loadable
    model.safetensors | pointer | DataError | run `git lfs pull`
    tokenizer.json | unlink | DataError | has no tokenizer
    """,
    pickled=pickled,
    unlink=Path.unlink,
    cut_in_half=cut_in_half,
    pointer=pointer,
)
def test_damaged_folders_are_refused(copy, file, harm, error, message):
    harm(copy / file)
    refused(copy, error, message)


def refused(folder, error, message):
    for only in (True, False):
        with raises(error, match=message):
            load(folder, inference_only=only)


@table(
    """
    fields, error, message
    {'num_hidden_layers': 3} | DataError | match config.json
    {'num_hidden_layers': 1} | DataError | match config.json
    {'intermediate_size': 40} | DataError | match config.json
    {'num_attention_heads': 0} | DataError | copy or download it again
    {'model_type': 'quantum'} | ConfigError | architecture
    """,
)
def test_configurations_of_other_weights_are_refused(copy, fields, error, message):
    edit(copy / "config.json", **fields)
    refused(copy, error, message)


@table(
    """
    source, failing, cause, error, message
    org/m | huggingface_hub.snapshot_download | CUT | RemoteError | could not be reached .connection cut.;
    COPY | torch.nn.Module.to | FULL | ConfigError | out of memory: loading
    COPY | transformers.BertModel.from_pretrained | FULL | ConfigError | out of memory: loading
    """,
    CUT=Exception("connection cut"),  # httpx2's errors are no OSErrors
    FULL=MemoryError(),
)
def test_failures_of_network_and_memory(
    copy, source, failing, cause, error, message, monkeypatch
):
    monkeypatch.setattr(failing, Mock(side_effect=cause))
    with raises(error, match=message):
        load(source.replace("COPY", str(copy)))


CODE = """
from transformers import BertConfig, BertModel
class OwnConfig(BertConfig):
    model_type = "own"
class FunctionEmbedder(BertModel):
    config_class = OwnConfig
"""
OWN = {"AutoConfig": "own.OwnConfig", "AutoModel": "own.FunctionEmbedder"}
OTHERS = {"AutoModel": "other/m--own.FunctionEmbedder"}


@pytest.fixture
def own(copy, monkeypatch):
    """A folder with its own Python code."""
    modules = str(copy.parent / "modules")
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", modules)
    monkeypatch.syspath_prepend(modules)
    (copy / "own.py").write_text(CODE)
    edit(copy / "config.json", model_type="own", auto_map=OWN)
    return copy


@pytest.fixture
def offline(monkeypatch):
    """Fail if anything is downloaded."""
    monkeypatch.setattr(
        "huggingface_hub.snapshot_download", lambda *_, **__: pytest.fail("downloaded")
    )


@pytest.mark.usefixtures("offline")
@parametrize("revision", [None, "main", "abc123"])
def test_unpinned_code_is_refused_before_any_download(revision):
    with config_error("pin the commit"):
        load("org/m", trust_remote_code=True, revision=revision)


def test_pinned_or_local_code_runs(own, monkeypatch):
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: own)
    for source, revision in ((own, None), ("org/m", "a" * 40)):
        encoder = load(source, revision=revision, trust_remote_code=True)
        assert type(encoder.model.backbone).__name__ == "FunctionEmbedder"
    with config_error("trust_remote_code=True"):
        load(own)


@parametrize("name", ["config.json", "tokenizer_config.json"])
def test_code_of_another_repository_is_refused(own, name, monkeypatch):
    edit(own / name, auto_map=OTHERS)
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: own)
    for source in (own, "org/m"):
        with config_error("another repository"):
            load(source, revision="a" * 40, trust_remote_code=True)


def adapters(folder, copy, base):
    folder.mkdir()
    shutil.copy(copy / "model.safetensors", folder / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "base_model_name_or_path": base}
    edit(folder / "adapter_config.json", **config)
    return folder


@table(
    """
    base, expected, message
    nobody/nothing-of-this-name | RemoteError | Hub could not be reached
    /nowhere/at/all | ConfigError | no such folder
    '' | DataError | base_model_name_or_path
    7 | DataError | base_model_name_or_path
    """,
)
def test_missing_base_of_adapters(copy, tmp_path, base, expected, message):
    folder = adapters(tmp_path / "adapters", copy, base)
    for read in (load, outline):
        with raises(expected, match=message) as caught:
            read(folder)
        assert str(folder) in str(caught.value)
    assert isinstance(base, int) or base in str(caught.value)


@pytest.mark.usefixtures("offline")
def test_base_of_adapters_is_checked_like_a_model(own, tmp_path):
    with config_error("pin the commit"):
        load(adapters(tmp_path / "a", own, "org/m"), trust_remote_code=True)
    edit(own / "config.json", auto_map=OTHERS)
    folder = adapters(tmp_path / "b", own, str(own))
    with config_error("another repository"):
        load(folder, trust_remote_code=True)
    edit(own / "config.json", auto_map=None, model_type="bert")
    pickled(own / "model.safetensors")
    with config_error("pickle"):
        load(folder)
    shutil.copy(folder / "adapter_model.safetensors", folder / "other.safetensors")
    pickled(folder / "adapter_model.safetensors")
    with config_error("b: its only weights are pytorch_model.bin, a pickle"):
        load(folder)
