"""Pearson's correlation and SBERT's two losses: by hand, beside scipy, and against plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import pearsonr
from torch import nn

from aoe_train.objectives.objective import Objective
from aoe_train.objectives.ranking import pearson_loss
from aoe_train.objectives.sbert import regression_loss, softmax_loss
from aoe_train.objectives.settings import ObjectiveSettings, Weights

PEARSON = ObjectiveSettings(weights=Weights(pearson=1))


def test_three_pairs_by_hand():
    # Less their means: scores (-0.2, 0, 0.2), labels (-1, 1, 0): r = 0.2 / sqrt(0.08 * 2) = 0.5
    loss = pearson_loss(torch.tensor([0.1, 0.3, 0.5]), torch.tensor([0.0, 2.0, 1.0]))
    assert loss.item() == pytest.approx(0.5)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(2, 100), st.floats(-3, 3), st.floats(0.1, 10))
def test_it_is_scipys_and_knows_neither_place_nor_spread(seed, size, shift, spread):
    generator = torch.Generator().manual_seed(seed)
    scores, labels = torch.rand(2, size, generator=generator, dtype=torch.float64)
    loss = pearson_loss(scores, labels)
    assert loss.item() == pytest.approx(1 - pearsonr(scores, labels).statistic, abs=1e-9)
    assert pearson_loss(spread * scores + shift, labels).item() == pytest.approx(loss.item(), abs=1e-9)


@pytest.mark.parametrize(
    ("scores", "labels", "loss"),
    [
        ([0.2, 0.9, 0.4], [3.0, 3.0, 3.0], 0.0),  # nothing is asked
        ([0.7, 0.7, 0.7], [0.0, 1.0, 5.0], 1.0),  # no correlation
        ([0.7], [1.0], 0.0),
        ([0.7, 0.7], [1.0, 1.0], 0.0),
    ],
)
def test_what_is_constant_has_a_loss_and_a_bounded_gradient(scores, labels, loss):
    given = torch.tensor(scores, requires_grad=True)
    found = pearson_loss(given, torch.tensor(labels))
    found.backward()
    assert found.item() == loss
    assert given.grad is not None
    assert given.grad.isfinite().all()
    if loss == 0:
        assert not given.grad.any()


def test_a_batch_of_equal_labels_teaches_nothing_and_others_do():
    vectors = nn.Parameter(torch.randn(4, 2, 6, generator=torch.Generator().manual_seed(1)))
    objective = Objective(PEARSON, dim=6, kind="graded", label_range=(0.0, 5.0))
    texts = torch.arange(8).view(4, 2)
    objective(vectors, torch.full((4,), 2.0), texts)["loss"].backward()
    assert vectors.grad is not None
    assert not vectors.grad.any()
    found = objective(vectors, torch.tensor([0.0, 5.0, 2.0, 1.0]), texts)
    assert math.isclose(found["loss"].item(), found["pearson"].item())
    found["loss"].backward()
    assert vectors.grad.any()


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
