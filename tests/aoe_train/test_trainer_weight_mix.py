"""Weights between the backbone's and the trained ones: by hand, of adapters, and through runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import aoe_train
from aoe_train.training.trainer.average import WeightAverage, WeightMix
from pairkit.app.errors import ConfigError
from tests.aoe_train.conftest import Killed
from tests.aoe_train.test_dense_layers import ROWS
from tests.aoe_train.tiny import save_bert, save_llama

RUN: dict[str, Any] = {"epochs": 2, "batch_size": 4, "lr": 1e-3, "progress": False}


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def test_a_quarter_of_the_way() -> None:
    model = nn.Linear(1, 1)
    with torch.no_grad():
        model.weight.fill_(1.0), model.bias.fill_(-2.0)
    soup = WeightMix(model, 0.25)
    with torch.no_grad():
        model.weight.fill_(5.0), model.bias.fill_(2.0)
    mixed = soup.mixed({name: weight.detach() for name, weight in model.named_parameters()})
    assert (float(mixed["weight"]), float(mixed["bias"])) == (2.0, -1.0)
    average = WeightAverage(0.0, soup)
    with average.applied(model):
        assert model.weight.item() == 2.0
    assert model.weight.item() == 5.0


def test_what_is_kept_lies_between_backbone_and_trained_weights(tmp_path: Path) -> None:
    backbone = save_bert(tmp_path / "bert", layers=1)
    for share in (1.0, 0.25):
        aoe_train.train(ROWS, backbone=backbone, out=tmp_path / f"{share}", soup=share, **RUN)
    first, trained, mixed = (weights(tmp_path / name) for name in ("bert", "1.0", "0.25"))
    moved = 0
    for name, weight in mixed.items():
        torch.testing.assert_close(weight, first[name].lerp(trained[name], 0.25))
        moved += not torch.equal(weight, first[name])
    assert moved > 5


def test_adapters_are_mixed_by_their_products(tmp_path: Path) -> None:
    backbone = save_llama(tmp_path / "llama", layers=1)
    settings = {"lora.rank": 2, "lora.dropout": 0.0}
    for share in (1.0, 0.5):
        out = tmp_path / f"{share}"
        aoe_train.train(ROWS, backbone=backbone, out=out, soup=share, lora=True, settings=settings, **RUN)
        aoe_train.export(out, out=tmp_path / f"whole-{share}")
    first, trained, mixed = (weights(tmp_path / name) for name in ("llama", "whole-1.0", "whole-0.5"))
    moved = [name for name, weight in mixed.items() if not torch.equal(weight, first[name])]
    assert any("mlp" in name for name in moved)
    for name in moved:
        torch.testing.assert_close(mixed[name], first[name].lerp(trained[name], 0.5))


def test_a_killed_run_ends_as_the_whole_one(tmp_path: Path, kill_at: Any) -> None:
    backbone = save_bert(tmp_path / "bert", layers=1)
    how = {**RUN, "soup": 0.5, "dev_data": ROWS, "settings": {"log.checkpoint_steps": 1}}
    aoe_train.train(ROWS, backbone=backbone, out=tmp_path / "whole", **how)
    kill_at(3)
    with pytest.raises(Killed):
        aoe_train.train(ROWS, backbone=backbone, out=tmp_path / "killed", **how)
    aoe_train.train(ROWS, backbone=backbone, out=tmp_path / "killed", **how)
    whole = weights(tmp_path / "whole")
    assert all(torch.equal(weight, whole[name]) for name, weight in weights(tmp_path / "killed").items())


@pytest.mark.parametrize("share", [0, 1.5, -0.1])
def test_shares_that_are_none(tmp_path: Path, share: float) -> None:
    with pytest.raises(ConfigError, match=r"optim\.soup"):
        aoe_train.train(ROWS, backbone=tmp_path, out=tmp_path / "out", soup=share)
