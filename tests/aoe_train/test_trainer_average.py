"""The mean of a run's weights: which steps count, and that a run keeps what the mean scores."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from aoe_train.training.trainer.average import WeightAverage


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
