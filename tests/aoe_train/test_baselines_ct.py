"""Contrastive Tension's loss by hand."""

from __future__ import annotations

import math

import pytest
import torch

from aoe_train._baselines.ct import tension_loss


def softplus(x: float) -> float:
    return math.log1p(math.exp(x))


def test_three_texts_by_hand():
    first = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    second = torch.tensor([[1.0, 1.0], [0.0, 1.0], [2.0, 0.0]])
    # Scores: [[1, 0, 2], [2, 2, 0], [2, 1, 2]]; one negative each: (0, 1), (1, 2), (2, 0)
    same = softplus(-1) + softplus(-2) + softplus(-2)
    other = softplus(0) + softplus(0) + softplus(2)
    found = tension_loss(first, second, torch.arange(3), 1)
    assert found.item() == pytest.approx((same + other) / 6)
    every = other + softplus(2) + softplus(2) + softplus(1)
    assert tension_loss(first, second, torch.arange(3), 7).item() == pytest.approx((same + every) / 9)


def test_a_copy_of_a_text_is_no_negative():
    first = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 3.0]])
    found = tension_loss(first, first, torch.tensor([4, 4, 9]), 7)
    same, other = 2 * softplus(-1) + softplus(-9), 4 * softplus(0)
    assert found.item() == pytest.approx((same + other) / 7)


def test_a_lone_text_has_no_negative():
    assert tension_loss(torch.ones(1, 1), torch.ones(1, 1), torch.arange(1), 7).item() == pytest.approx(
        softplus(-1)
    )
