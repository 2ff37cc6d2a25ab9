"""The average of a run's weights."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from aoe_train.training.callbacks import WeightAverage


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
