"""The average of a run's weights, and the average with the backbone."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import aoe_train
from aoe_train.training.callbacks import WeightAverage
from tests.aoe_train.test_dense_layers import ROWS
from tests.aoe_train.tiny import same_weights, save_bert, save_llama, weights

RUN: dict[str, Any] = {"epochs": 2, "batch_size": 4, "lr": 1e-3, "progress": False}


def pass_through(average: WeightAverage, model: nn.Module, values: list[float]) -> None:
    """Set the model's weights to one of `values` after each step."""
    for step, value in enumerate(values, start=1):
        with torch.no_grad():
            for weight in model.parameters():
                weight.fill_(value)
        average.add(model, step, len(values))


@pytest.mark.parametrize(
    ("share", "mean"), [(1.0, (1 + 2 + 3 + 8 + 11) / 5), (0.6, (3 + 8 + 11) / 3), (0.2, 11.0), (0.01, 11.0)]
)
def test_the_mean_of_the_last_share(share, mean):
    model = nn.Linear(2, 1)
    average = WeightAverage(model, share)
    model.bias.requires_grad_(requires_grad=False)
    pass_through(average, model, [1, 2, 3, 8, 11])
    torch.testing.assert_close(average.mean, {"weight": torch.full((1, 2), mean)})


@given(st.floats(0.001, 1), st.integers(1, 1000))
def test_number_of_samples_is_limited(share, steps):
    average = WeightAverage(nn.Linear(1, 1), share)
    counts = [average.samples(step, steps) for step in range(steps + 1)]
    taken = [step for step in range(1, steps + 1) if counts[step] > counts[step - 1]]
    assert counts[0] == 0
    assert counts[-1] == len(taken) <= 100
    assert taken[-1] == steps
    assert len({after - before for before, after in pairwise(taken)}) <= 1
    assert steps - taken[0] < max(1, round(share * steps))


def test_applied_restores_the_exact_weights():
    model = nn.Linear(3, 2)
    average = WeightAverage(model, 1.0)
    with average.applied(model):  # before the first sample: its own
        own = model.weight.detach().clone()
    assert torch.equal(model.weight, own)
    pass_through(average, model, [0.1, 0.7])
    with average.applied(model):
        torch.testing.assert_close(model.weight.detach(), torch.full((2, 3), 0.4))
    assert torch.equal(model.weight.detach(), torch.full((2, 3), 0.7))


def test_interpolate_averages_backbone_and_trained_weights(tmp_path, kill_at):
    backbone = save_bert(tmp_path / "bert", layers=1)

    def train(name: str, share: float = 0.25) -> None:
        how = {**RUN, "settings": {"log.checkpoint_steps": 1}, "interpolate": share}
        aoe_train.train(ROWS, backbone=backbone, out=tmp_path / name, **how)

    train("trained", 1)
    train("mixed")
    first, trained, mixed = (weights(tmp_path / name) for name in ("bert", "trained", "mixed"))
    torch.testing.assert_close(mixed, {name: first[name].lerp(trained[name], 0.25) for name in mixed})
    assert sum(not torch.equal(weight, first[name]) for name, weight in mixed.items()) > 5
    kill_at(3, lambda: train("killed"))
    assert same_weights(tmp_path / "killed", tmp_path / "mixed")


def test_interpolate_averages_products_of_adapters(tmp_path):
    backbone = save_llama(tmp_path / "llama", layers=1)
    how = {**RUN, "lora": True, "settings": {"lora.rank": 2, "lora.dropout": 0.0}}
    for share in (1.0, 0.5):
        aoe_train.train(ROWS, backbone=backbone, out=tmp_path / f"{share}", interpolate=share, **how)
        aoe_train.export(tmp_path / f"{share}", out=tmp_path / f"whole-{share}")
    first, trained, mixed = (weights(tmp_path / name) for name in ("llama", "whole-1.0", "whole-0.5"))
    moved = [name for name, weight in mixed.items() if not torch.equal(weight, first[name])]
    assert any("mlp" in name for name in moved)
    for name in moved:
        torch.testing.assert_close(mixed[name], first[name].lerp(trained[name], 0.5))
