"""The correlation of cosines and labels, by hand and beside scipy's."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import pearsonr
from torch import nn

from aoe_train.objectives.kinds import check_objective
from aoe_train.objectives.mix import Objective
from aoe_train.objectives.pearson import pearson_loss
from aoe_train.objectives.settings import ObjectiveSettings, Weights
from pairkit.app.errors import ConfigError

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


@pytest.mark.parametrize("kind", ["binary", "graded"])
def test_it_is_for_labelled_pairs(kind):
    check_objective(PEARSON, dim=7, kind=kind, label_range=(0.0, 5.0))


@pytest.mark.parametrize("kind", ["triplet", "positive", "single"])
def test_it_is_for_nothing_else(kind):
    with pytest.raises(ConfigError, match=f"objective pearson: found {kind}"):
        check_objective(PEARSON, dim=7, kind=kind)
