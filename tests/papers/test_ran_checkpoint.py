"""Checkpoints of TensorFlow: read, damaged, and converted to our RAN."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from itertools import chain
from pathlib import Path
from unittest.mock import ANY

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from aoe_train import ran
from pairkit import DataError
from papers.ran import tensor_bundle
from papers.ran.convert import convert_checkpoint
from papers.ran.masked_lm import RanForMaskedLM
from papers.ran.tensor_bundle import read_bundle
from tests.aoe_train.ran_reference import Reference, second_moment, standard
from tests.support.shorthand import data_error, table, values

CHECKPOINT = Path(__file__).parents[1] / "aoe_train" / "data" / "ran.ckpt"
LENGTHS = [1, 5, 8, 10, 11, 16, 29]
TEXTS = [[*np.random.default_rng(n).integers(1, 20, n)] for n in LENGTHS]


def batch(model):
    ids = torch.tensor([*chain(*TEXTS)])
    with torch.no_grad():
        return model.ran.forward_packed(ids, torch.tensor(LENGTHS))


def check(model, reference):
    packed = batch(model)
    hidden = packed.hidden.split(LENGTHS)
    for row, text in enumerate(TEXTS):
        expected, cells, memory = reference.encode(text, layers=2)
        assert_allclose(hidden[row], expected, atol=1e-5)
        assert_allclose(packed.cells[row], cells.mean(axis=0), atol=1e-5)
        assert_allclose(packed.memory[row], memory, atol=1e-5)


def test_outputs_follow_the_published_equations():
    model = convert_checkpoint(CHECKPOINT, heads=3)
    model.config.window_size, model.config.min_window_size = 8, 3
    variables = read_bundle(CHECKPOINT)
    reference = Reference(variables, 3, 8, 3, norm=second_moment, project=False)
    check(model, reference)
    with torch.no_grad():
        logits = model(torch.tensor([TEXTS[-1]])).logits[0]
    hidden, _, _ = reference.encode(TEXTS[-1], 2)
    assert_allclose(logits, reference.logits(hidden), atol=1e-4)


def test_our_style_differs_only_in_norm_and_start():
    variables = read_bundle(CHECKPOINT)
    published = convert_checkpoint(CHECKPOINT, heads=3)
    ours = {"ln_style": "standard", "memory_start": "projected"}
    config = ran.RanConfig(**published.config.to_diff_dict() | ours)
    config.window_size, config.min_window_size = 8, 3
    model = RanForMaskedLM(config).eval()
    model.load_state_dict(published.state_dict(), strict=False)
    start = model.ran.layers[1].start
    name = "rannet/ran-1/cell-initializer"
    with torch.no_grad():
        start.dense.weight.copy_(torch.tensor(variables[f"{name}/kernel"].T))
        start.norm.weight.copy_(torch.tensor(variables[f"{name}-layernorm/gamma"]))
        start.norm.bias.copy_(torch.tensor(variables[f"{name}-layernorm/beta"]))
    check(model, Reference(variables, 3, 8, 3, norm=standard, project=True))


def test_sizes_are_inferred_and_survive_a_model_folder(tmp_path):
    model = convert_checkpoint(CHECKPOINT.with_name("ran.ckpt.index"), heads=3)
    names = "vocab_size hidden_size num_hidden_layers head_dim window_size"
    found = [getattr(model.config, name) for name in names.split()]
    assert found == [20, 8, 2, 4, 256]
    model.save_pretrained(tmp_path)
    again = RanForMaskedLM.from_pretrained(tmp_path)
    assert torch.equal(batch(again).cells, batch(model).cells)


def copy(folder):
    for path in CHECKPOINT.parent.glob("ran.ckpt.[id]*"):
        shutil.copy(path, folder)
    return folder


def test_the_number_of_heads_must_be_known_and_fit(tmp_path):
    for folder, heads, error, words in values(
        """
            CHECKPOINT | None | ConfigError | number of heads
            CHECKPOINT | 5 | ConfigError | 5 heads don't divide 12 dimensions
            tmp_path | 3 | DataError | 0 checkpoints
            """,
        CHECKPOINT=CHECKPOINT,
        tmp_path=tmp_path,
    ):
        with pytest.raises(error, match=words):
            convert_checkpoint(folder, heads=heads)
    published = {"head_num": 6, "window_size": 32, "vocab_size": 20}
    (copy(tmp_path) / "config.json").write_text(json.dumps(published))
    config = convert_checkpoint(tmp_path).config
    assert (config.num_attention_heads, config.window_size) == (6, 32)


@table(
    """
    name, value, message
    ran-1/cell-glu/dense-t/bias | None | missing .*ran-1/cell-glu/dense-t/bias
    global_step | [0] | unknown .*global_step
    mlm-matching/bias | [0, 0, 0] | make .3,., expected .20,.
    token-embedding/embeddings | None | no variables of a RAN
    """
)
def test_other_variables_are_refused(name, value, message, monkeypatch):
    variables = read_bundle(CHECKPOINT)
    variables[f"rannet/{name}"] = np.array(value, float)
    if value is None:
        variables.pop(f"rannet/{name}")
    monkeypatch.setattr("papers.ran.convert.read_bundle", lambda _: variables)
    with data_error(message):
        convert_checkpoint(CHECKPOINT, heads=3)


def test_reads_the_values_that_tensorflow_reads():
    variables = read_bundle(CHECKPOINT)
    assert len(variables) == 86
    assert variables["rannet/ran-1/encode-attn/dense-o/kernel"].shape == (12, 8)
    values = np.concatenate([value.ravel() for value in variables.values()])
    assert values.dtype == np.float32
    assert_array_equal(values, np.load(f"{CHECKPOINT}.npy"))


@pytest.fixture
def checkpoint(tmp_path):
    return copy(tmp_path) / "ran.ckpt"


@table(
    """
    file, size, words
    data-00000-of-00001 | None | data-00000-of-00001: not readable
    data-00000-of-00001 | 100 | not shape .* within the file
    index | None | ckpt.index: not readable
    index | 0 | not the index of a TensorFlow checkpoint
    index | 100 | not the index of a TensorFlow checkpoint
    index | 17_000_000 | larger than 16 MiB
    """
)
def test_damaged_files_are_named(checkpoint, file, size, words):
    path = Path(f"{checkpoint}.{file}")
    if size is None:
        path.unlink()
    else:
        os.truncate(path, size)
    with data_error(words):
        read_bundle(checkpoint)


@given(
    st.lists(
        st.tuples(st.integers(0, 2**16), st.integers(0, 255)), min_size=1, max_size=8
    ),
    st.integers(0, 200),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_mutated_index_is_data_or_an_error(checkpoint, monkeypatch, places, cut):
    """Checksums are made to fit, so that the code behind them is reached."""
    monkeypatch.setattr(tensor_bundle, "_masked_crc32c", lambda _: ANY)
    content = bytearray(Path(f"{CHECKPOINT}.index").read_bytes())
    for place, value in places:
        content[place % len(content)] = value
    Path(f"{checkpoint}.index").write_bytes(content[cut:])
    with suppress(DataError):
        read_bundle(checkpoint)


def test_a_tensor_of_many_dimensions_is_refused_at_once(checkpoint):
    dimension = b"\x12\x0a\x08" + 8 * b"\x80" + b"\x40"  # 2^62
    entry = {1: [1], 2: [300_000 * dimension]}
    with data_error("not shape"):
        tensor_bundle._tensor(checkpoint, "x", entry, 1)
