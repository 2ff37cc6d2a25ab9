"""Models on the way from their backbone: the same as training with that share, and what can't be mixed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import aoe_train
from pairkit.app.errors import ConfigError
from tests.aoe_train.test_heads import ROWS
from tests.aoe_train.tiny import save_bert, save_llama

RUN: dict[str, Any] = {"epochs": 1, "batch_size": 4, "lr": 1e-3, "progress": False}


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


@pytest.mark.parametrize("adapters", [False, True])
def test_a_share_afterwards_is_a_share_in_training(adapters: bool, tmp_path: Path) -> None:
    save = save_llama if adapters else save_bert
    backbone = save(tmp_path / "backbone", layers=1)
    how = {**RUN, "lora": adapters, **({"settings": {"lora.dropout": 0.0}} if adapters else {})}
    for name, share in (("whole", 1.0), ("half", 0.5)):
        aoe_train.train(ROWS, backbone=backbone, out=tmp_path / name, soup=share, **how)
        if adapters:
            aoe_train.export(tmp_path / name, out=tmp_path / f"{name}-merged", progress=False)
    done = aoe_train.export(tmp_path / "whole", out=tmp_path / "mixed", soup=0.5, progress=False)
    assert (done.soup, done.merged) == (0.5, adapters)
    assert json.loads((tmp_path / "mixed/run.json").read_text())["export"]["soup"] == 0.5
    card = (tmp_path / "mixed/README.md").read_text()
    assert "Weights: 0.5 of the trained ones, the rest of the backbone's" in card
    assert "Objective" not in card  # nor anything else of the card of the model that was trained
    half, mixed = (weights(tmp_path / name) for name in ("half-merged" if adapters else "half", "mixed"))
    for name, weight in mixed.items():
        torch.testing.assert_close(weight, half[name])


def test_what_it_was_trained_from_must_be_known_and_fit(tmp_path: Path) -> None:
    one, wide = save_bert(tmp_path / "one", layers=1), save_bert(tmp_path / "wide", layers=2)
    out = tmp_path / "out"
    with pytest.raises(ConfigError, match="has no record of what it was trained from; give --backbone"):
        aoe_train.export(one, out=out, soup=0.5, progress=False)
    with pytest.raises(ConfigError, match="other weights than its backbone"):
        aoe_train.export(one, out=out, soup=0.5, backbone=wide, progress=False)
    with pytest.raises(ConfigError, match=r"found 1\.5; expected a share above 0, and 1 at most"):
        aoe_train.export(one, out=out, soup=1.5, backbone=one, progress=False)
    with pytest.raises(ConfigError, match="--backbone: says what --soup mixes"):
        aoe_train.export(one, out=out, backbone=one, progress=False)
    assert not out.exists()
