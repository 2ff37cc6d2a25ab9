"""The mean of a run's weights, and weights between the backbone's and the trained ones."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import nn

import aoe_train
from aoe_train.training.callbacks import WeightAverage, WeightMix
from pairkit.app.errors import ConfigError
from tests.aoe_train.conftest import Killed
from tests.aoe_train.test_dense_layers import ROWS
from tests.aoe_train.tiny import save_bert, save_llama

RUN: dict[str, Any] = {"epochs": 2, "batch_size": 4, "lr": 1e-3, "progress": False}


def at(step: int, steps: int) -> Any:
    return SimpleNamespace(global_step=step, max_steps=steps)


def pass_through(average: WeightAverage, model: nn.Module, values: list[float]) -> None:
    """Let the model's weights be `values`, one after each step."""
    for step, value in enumerate(values, start=1):
        with torch.no_grad():
            for weight in model.parameters():
                weight.fill_(value)
        average.on_step_end(None, at(step, len(values)), None, model=model)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("share", "mean"),
    [(1.0, (1 + 2 + 3 + 8 + 11) / 5), (0.6, (3 + 8 + 11) / 3), (0.2, 11.0), (0.01, 11.0)],
)
def test_the_mean_of_the_last_share(share: float, mean: float) -> None:
    average, model = WeightAverage(share), nn.Linear(2, 1)
    model.bias.requires_grad_(requires_grad=False)
    pass_through(average, model, [1, 2, 3, 8, 11])
    assert average.mean is not None
    assert average.mean.keys() == {"weight"}
    torch.testing.assert_close(average.mean["weight"], torch.full((1, 2), mean))


@given(st.floats(0.001, 1), st.integers(1, 1000))
def test_samples_are_few_and_the_last_is_at_the_end(share: float, steps: int) -> None:
    average = WeightAverage(share)
    counts = [average.samples(step, steps) for step in range(steps + 1)]
    taken = [step for step in range(1, steps + 1) if counts[step] > counts[step - 1]]
    assert counts[0] == 0
    assert counts[-1] == len(taken) <= 100
    assert taken[-1] == steps
    assert len({after - before for before, after in pairwise(taken)}) <= 1
    assert steps - taken[0] < max(1, round(share * steps))


def test_the_model_gets_its_own_weights_back_to_the_bit() -> None:
    average, model = WeightAverage(1.0), nn.Linear(3, 2)
    with average.applied(model):  # before the first sample: its own
        own = model.weight.detach().clone()
    assert torch.equal(model.weight, own)
    pass_through(average, model, [0.1, 0.7])
    with average.applied(model):
        torch.testing.assert_close(model.weight.detach(), torch.full((2, 3), 0.4))
    assert torch.equal(model.weight.detach(), torch.full((2, 3), 0.7))
    assert average.mean is not None
    torch.testing.assert_close(average.mean["weight"], torch.full((2, 3), 0.4))


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def test_a_quarter_of_the_way() -> None:
    model = nn.Linear(1, 1)
    with torch.no_grad():
        model.weight.fill_(1.0), model.bias.fill_(-2.0)
    mix = WeightMix(model, 0.25)
    with torch.no_grad():
        model.weight.fill_(5.0), model.bias.fill_(2.0)
    mixed = mix.mixed({name: weight.detach() for name, weight in model.named_parameters()})
    assert (float(mixed["weight"]), float(mixed["bias"])) == (2.0, -1.0)
    average = WeightAverage(0.0, mix)
    with average.applied(model):
        assert model.weight.item() == 2.0
    assert model.weight.item() == 5.0


def test_what_is_kept_lies_between_backbone_and_trained_weights(tmp_path: Path, kill_at: Any) -> None:
    backbone = save_bert(tmp_path / "bert", layers=1)
    how = {**RUN, "settings": {"log.checkpoint_steps": 1}}
    aoe_train.train(ROWS, backbone=backbone, out=tmp_path / "trained", **how)
    aoe_train.train(ROWS, backbone=backbone, out=tmp_path / "mixed", weight_mix=0.25, **how)
    first, trained, mixed = (weights(tmp_path / name) for name in ("bert", "trained", "mixed"))
    moved = 0
    for name, weight in mixed.items():
        torch.testing.assert_close(weight, first[name].lerp(trained[name], 0.25))
        moved += not torch.equal(weight, first[name])
    assert moved > 5
    kill_at(3)
    out = tmp_path / "killed"
    with pytest.raises(Killed):
        aoe_train.train(ROWS, backbone=backbone, out=out, weight_mix=0.25, **how)
    aoe_train.train(ROWS, backbone=backbone, out=out, weight_mix=0.25, **how)
    assert all(torch.equal(weight, mixed[name]) for name, weight in weights(out).items())


def test_adapters_are_mixed_by_their_products(tmp_path: Path) -> None:
    backbone = save_llama(tmp_path / "llama", layers=1)
    settings = {"lora.rank": 2, "lora.dropout": 0.0}
    for share in (1.0, 0.5):
        out = tmp_path / f"{share}"
        aoe_train.train(
            ROWS, backbone=backbone, out=out, weight_mix=share, lora=True, settings=settings, **RUN
        )
        aoe_train.export(out, out=tmp_path / f"whole-{share}")
    first, trained, mixed = (weights(tmp_path / name) for name in ("llama", "whole-1.0", "whole-0.5"))
    moved = [name for name, weight in mixed.items() if not torch.equal(weight, first[name])]
    assert any("mlp" in name for name in moved)
    for name in moved:
        torch.testing.assert_close(mixed[name], first[name].lerp(trained[name], 0.5))


@pytest.mark.parametrize("share", [1.5, -0.1])
def test_shares_that_are_none(tmp_path: Path, share: float) -> None:
    with pytest.raises(ConfigError, match=r"optim\.weight_mix"):
        aoe_train.train(ROWS, backbone=tmp_path, out=tmp_path / "out", weight_mix=share)
