"""The baseline's two losses against hand-worked numbers and plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from aoe_train.objectives.sbert import regression_loss, softmax_loss

quick = settings(max_examples=25)
seeds = st.integers(0, 10**6)


def test_softmax_by_hand():
    # One dimension: features (1, 3, 2); logits 1 and 3 + 6 - 2 - 5.5 = 1.5; label 1: log(1 + e^-0.5)
    weight, bias = torch.tensor([[1.0, 0, 0], [3, 2, -1]]), torch.tensor([0.0, -5.5])
    loss = softmax_loss(torch.ones(1, 1), 3 * torch.ones(1, 1), torch.tensor([1]), weight, bias)
    assert loss.item() == pytest.approx(math.log(1 + math.exp(-0.5)), abs=1e-6)


def test_regression_by_hand():
    # cosines 1 and 0, targets 0.8 and 0.4: (0.04 + 0.16) / 2
    first, second = torch.tensor([[1.0, 0], [1, 0]]), torch.tensor([[2.0, 0], [0, 1]])
    assert regression_loss(first, second, torch.tensor([0.8, 0.4])).item() == pytest.approx(0.1)


@quick
@given(seeds)
def test_softmax_against_loops(seed):
    rng = np.random.default_rng(seed)
    u, v, weight, bias = (
        rng.normal(size=(5, 3)),
        rng.normal(size=(5, 3)),
        rng.normal(size=(2, 9)),
        rng.normal(size=2),
    )
    labels = rng.integers(2, size=5)
    losses = []
    for x, y, label in zip(u, v, labels, strict=True):
        scores = [
            sum(w * f for w, f in zip(row, [*x, *y, *abs(x - y)], strict=True)) for row in weight
        ] + bias
        losses.append(math.log(sum(math.exp(s - scores[label]) for s in scores)))
    loss = softmax_loss(*map(torch.from_numpy, (u, v, labels, weight, bias)))
    assert loss.item() == pytest.approx(np.mean(losses))


@quick
@given(seeds)
def test_gradients_against_finite_differences(seed):
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()

    labels = torch.tensor([0, 1, 1])
    first, second = normal(3, 4), normal(3, 4)
    assert torch.autograd.gradcheck(
        lambda u, v, w, b: softmax_loss(u, v, labels, w, b), (first, second, normal(2, 12), normal(2))
    )
    assert torch.autograd.gradcheck(lambda u, v: regression_loss(u, v, labels.double()), (first, second))
