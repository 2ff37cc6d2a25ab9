from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from aoe_train.model.ran import RanConfig
from pairkit.app.errors import ConfigError, DataError
from papers.ran.convert import convert_checkpoint
from papers.ran.masked_lm import RanForMaskedLM
from papers.ran.tensor_bundle import read_bundle
from tests.aoe_train.ran_reference import Reference, second_moment, standard

CHECKPOINT = Path(__file__).parents[1] / "aoe_train" / "data" / "ran.ckpt"
TEXTS = [list(np.random.default_rng(n).integers(1, 20, n)) for n in (1, 5, 8, 10, 11, 16, 29)]


def batch(model: RanForMaskedLM):
    ids = torch.tensor([number for text in TEXTS for number in text])
    with torch.no_grad():
        return model.ran.forward_packed(ids, torch.tensor([len(text) for text in TEXTS]))


def check(model: RanForMaskedLM, reference: Reference) -> None:
    packed = batch(model)
    hidden = packed.hidden.split([len(text) for text in TEXTS])
    for row, text in enumerate(TEXTS):
        expected, cells, memory = reference.encode(text, layers=2)
        np.testing.assert_allclose(hidden[row], expected, atol=1e-5)
        np.testing.assert_allclose(packed.cells[row], cells.mean(axis=0), atol=1e-5)
        np.testing.assert_allclose(packed.memory[row], memory, atol=1e-5)


def test_computes_what_the_published_equations_say():
    model = convert_checkpoint(CHECKPOINT, heads=3)
    model.config.window_size, model.config.min_window_size = 8, 3
    reference = Reference(read_bundle(CHECKPOINT), 3, 8, 3, norm=second_moment, project=False)
    check(model, reference)
    with torch.no_grad():
        logits = model(torch.tensor([TEXTS[-1]])).logits[0]
    np.testing.assert_allclose(logits, reference.logits(reference.encode(TEXTS[-1], 2)[0]), atol=1e-4)


def test_our_own_style_is_the_same_but_for_the_norm_and_the_start():
    variables = read_bundle(CHECKPOINT)
    published = convert_checkpoint(CHECKPOINT, heads=3)
    config = RanConfig(
        **published.config.to_diff_dict() | {"ln_style": "standard", "memory_start": "projected"}
    )
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


def test_sizes_are_inferred_and_survive_a_model_folder(tmp_path: Path):
    model = convert_checkpoint(CHECKPOINT.with_name("ran.ckpt.index"), heads=3)
    config = model.config
    sizes = (
        config.vocab_size,
        config.hidden_size,
        config.num_hidden_layers,
        config.head_dim,
        config.window_size,
    )
    assert sizes == (20, 8, 2, 4, 256)
    model.save_pretrained(tmp_path)
    again = RanForMaskedLM.from_pretrained(tmp_path)
    assert torch.equal(batch(again).cells, batch(model).cells)


def copy(folder: Path) -> Path:
    for path in CHECKPOINT.parent.glob("ran.ckpt.[id]*"):
        shutil.copy(path, folder)
    return folder


def test_the_published_config_tells_heads_and_windows(tmp_path: Path):
    (copy(tmp_path) / "config.json").write_text(
        json.dumps({"head_num": 6, "window_size": 32, "vocab_size": 20})
    )
    config = convert_checkpoint(tmp_path).config
    assert (config.num_attention_heads, config.head_dim, config.window_size) == (6, 2, 32)


def test_heads_must_be_known_and_fit(tmp_path: Path):
    with pytest.raises(ConfigError, match="number of heads"):
        convert_checkpoint(CHECKPOINT)
    with pytest.raises(ConfigError, match="5 heads don't divide an attention of 12"):
        convert_checkpoint(CHECKPOINT, heads=5)
    with pytest.raises(DataError, match="0 checkpoints"):
        convert_checkpoint(tmp_path, heads=3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v.pop("rannet/ran-1/cell-glu/dense-t/bias"), "missing .*ran-1/cell-glu/dense-t/bias"),
        (lambda v: v.update({"rannet/global_step": np.zeros(1)}), "unknown .*global_step"),
        (lambda v: v.update({"rannet/mlm-matching/bias": np.zeros(7)}), r"make \(7,\), expected \(20,\)"),
        (lambda v: v.pop("rannet/token-embedding/embeddings"), "no variables of a RAN"),
    ],
)
def test_other_variables_are_refused(change, message: str, monkeypatch: pytest.MonkeyPatch):
    variables = read_bundle(CHECKPOINT)
    change(variables)
    monkeypatch.setattr("papers.ran.convert.read_bundle", lambda _: variables)
    with pytest.raises(DataError, match=message):
        convert_checkpoint(CHECKPOINT, heads=3)
