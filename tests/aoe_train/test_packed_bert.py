"""BERT without transformers' model code: equal vectors, and no slow imports."""

import os
import shutil

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers import BertModel

from aoe_train import __main__, encode
from aoe_train.model.backbones.packed_bert import PackedBert, read_bert
from tests.aoe_train.shorthand import python
from tests.aoe_train.tiny import edit, load, save_bert
from tests.support.shorthand import (
    config_error,
    data_error,
    parametrize,
    table,
    text_lines,
)

TEXTS = text_lines("""
    the man is playing
    a dog
    the old city of the river and the small red boat
    a dog
    x
""")
# What each imports is no part of encoding: training, compiling, data sets, other libraries' mathematics.
_HEAVY = """
torch._dynamo torch._inductor torch.distributed.tensor sympy
transformers.modeling_utils transformers.trainer accelerate peft
datasets polars pandas pyarrow scipy sklearn openai sentence_transformers
aoe_train.training.fit aoe_train.model.ran
"""


@table(
    """
    precision, pooling
    fp32 | cls
    fp32 | first-last-avg
    bf16 | avg
    """,
)
def test_vectors_and_identity_equal_transformers(bert, pooling, precision):
    ours, theirs = (
        load(bert, precision=precision, inference_only=only, pooling=pooling)
        for only in (True, False)
    )
    assert type(ours.model.backbone) is PackedBert
    assert type(theirs.model.backbone) is BertModel
    assert ours.identity() == theirs.identity()
    assert np.array_equal(ours.encode(TEXTS), theirs.encode(TEXTS))
    assert np.array_equal(ours.encode(TEXTS[0]), theirs.encode(TEXTS[0]))


def test_networks_of_other_sizes(tmp_path):
    folder = save_bert(tmp_path, dim=20, layers=3, seed=3)
    # With a pooler, which is kept.
    BertModel.from_pretrained(folder).save_pretrained(folder)
    ours, theirs = (load(folder, inference_only=only) for only in (True, False))
    assert type(ours.model.backbone) is PackedBert
    assert np.array_equal(ours.encode(TEXTS), theirs.encode(TEXTS))
    assert "backbone.pooler.dense.weight" in dict(ours.model.named_parameters())
    assert ours.identity() == theirs.identity()
    with config_error("inference_only"):
        ours.save(tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


@table(
    """
    name, value
    hidden_act | relu
    is_decoder | True
    chunk_size_feed_forward | 2
    position_embedding_type | relative_key
    model_type | electra
    is_causal | False
    """
)
def test_other_configurations_are_left_to_transformers(copy, name, value):
    edit(copy / "config.json", **{name: value})
    assert read_bert(copy, torch.float32) is None


def test_other_weight_files_are_left_to_transformers(copy):
    path = copy / "model.safetensors"
    weights = load_file(path)
    # Of older files.
    for names, taken in (
        ({f"bert.{name}": part for name, part in weights.items()}, False),
        ({**weights, "embeddings.position_ids": torch.arange(64)[None]}, True),
        (weights, True),
    ):
        save_file(names, path)
        assert (read_bert(copy, torch.float32) is not None) is taken
    shutil.copy(path, copy / "other.safetensors")
    assert read_bert(copy, torch.float32) is None
    (copy / "other.safetensors").unlink()
    path.write_bytes(path.read_bytes()[:-100])
    with data_error("copy or download it again"):
        load(copy, inference_only=True)


@parametrize("options", [{"packing": False}, {"bidirectional": True}])
def test_unsupported_options_are_left_to_transformers(bert, options):
    assert type(load(bert, inference_only=True, **options).model.backbone) is BertModel


def test_encoding_imports_nothing_heavy(bert, tmp_path):
    program = (
        "import sys; from aoe_train.api.cli import app\n"
        "for how in ('fp32', 'int8'):\n"
        f"    app(['encode', 'texts.txt', '-m', {str(bert)!r}, '-o', how + '.npy', '-q', '--precision', how],"
        " standalone_mode=False)\n"
        "print(*sys.modules)"
    )
    (tmp_path / "texts.txt").write_text("a dog\n")
    told = python(program, cwd=tmp_path, check=True)
    loaded = set(told.stdout.split())
    assert "transformers.models.bert.configuration_bert" in loaded
    assert loaded & {*_HEAVY.split()} == set()
    for precision in ("fp32", "int8"):
        again = encode(["a dog"], model=str(bert), precision=precision)
        assert np.array_equal(np.load(tmp_path / f"{precision}.npy"), again)


@parametrize("chosen", [{}, {"OMP_WAIT_POLICY": "ACTIVE"}])
def test_commands_let_idle_threads_sleep(monkeypatch, chosen):
    monkeypatch.setattr(__main__, "start", lambda _: None)
    monkeypatch.setattr(os, "environ", chosen.copy())
    __main__.main()
    assert os.environ == {"OMP_WAIT_POLICY": "PASSIVE", **chosen}
