"""The ranking loss against hand-worked numbers and the sum over all pairs of pairs."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from aoe_train.objectives.ranking import ranking_loss

quick = settings(max_examples=25)
seeds = st.integers(0, 10**6)
scales = st.sampled_from([0.5, 1.0, 20.0, 100.0])


def ranking_plain(scores: Tensor, labels: Tensor, scale: float) -> Tensor:
    """All B^2 differences at once."""
    differences = scale * (scores[None, :] - scores[:, None])
    terms = differences[labels[:, None] > labels[None, :]]
    return torch.cat([terms.new_zeros(1), terms]).logsumexp(0)


def draw(seed: int, size: int, levels: int) -> tuple[Tensor, Tensor]:
    """Scores in [-1, 1] and labels of at most `levels` values, in float64."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.rand(size, generator=generator, dtype=torch.float64) * 2 - 1
    return scores, torch.randint(levels, (size,), generator=generator).double()


def value_and_gradient(loss, scores: Tensor, labels: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    scores = scores.clone().requires_grad_()
    value = loss(scores, labels, scale)
    return value.detach(), torch.autograd.grad(value, scores)[0]


def test_three_pairs_by_hand():
    # Only the first ranks above others: log(1 + exp(2 (0.1 - 0.9)) + exp(2 (0.5 - 0.9))) = log(1.6512255)
    loss = ranking_loss(torch.tensor([0.9, 0.1, 0.5]), torch.tensor([1.0, 0.0, 0.0]), 2.0)
    assert loss.item() == pytest.approx(0.5015178, abs=1e-6)


def test_three_levels_by_hand():
    # 5 > 3, 5 > 0, 3 > 0 with equal scores: log(1 + 3)
    loss = ranking_loss(torch.zeros(3), torch.tensor([3.0, 5.0, 0.0]), 20.0)
    assert loss.item() == pytest.approx(math.log(4))


def test_a_margin_by_hand():
    # Labels 2 apart shall be 0.6 apart and are 0.5: log(1 + exp(10 (0.6 - 0.5)))
    loss = ranking_loss(torch.tensor([0.7, 0.2]), torch.tensor([3.0, 1.0]), 10.0, margin=0.3)
    assert loss.item() == pytest.approx(math.log1p(math.e), abs=1e-6)


@quick
@given(seeds, st.integers(1, 200), st.sampled_from([2, 6, 1000]), scales, st.floats(0, 2))
def test_a_margin_asks_for_differences_in_proportion(seed, size, levels, scale, margin):
    scores, labels = draw(seed, size, levels)
    apart = margin * (labels[:, None] - labels[None, :])
    terms = scale * (scores[None, :] - scores[:, None] + apart)[labels[:, None] > labels[None, :]]
    expected = torch.cat([terms.new_zeros(1), terms]).logsumexp(0)
    found = ranking_loss(scores, labels, scale, margin)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@quick
@given(seeds, st.integers(1, 512), st.sampled_from([2, 3, 6, 1000]), scales)
def test_equals_plain_form(seed, size, levels, scale):
    scores, labels = draw(seed, size, levels)
    value, gradient = value_and_gradient(ranking_loss, scores, labels, scale)
    plain_value, plain_gradient = value_and_gradient(ranking_plain, scores, labels, scale)
    torch.testing.assert_close(value, plain_value, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(gradient, plain_gradient, rtol=1e-9, atol=1e-11)


@quick
@given(seeds, st.integers(2, 512), st.sampled_from([2, 6, 1000]))
def test_float32_is_as_good_as_plain_float32(seed, size, levels):
    scores, labels = draw(seed, size, levels)
    exact_value, exact_gradient = value_and_gradient(ranking_plain, scores, labels, 20.0)
    value, gradient = value_and_gradient(ranking_loss, scores.float(), labels.float(), 20.0)
    torch.testing.assert_close(value.double(), exact_value, rtol=2e-6, atol=1e-5)
    torch.testing.assert_close(gradient.double(), exact_gradient, rtol=1e-4, atol=1e-5)


@quick
@given(seeds, scales)
def test_gradient_against_finite_differences(seed, scale):
    scores, labels = draw(seed, 9, 4)
    assert torch.autograd.gradcheck(lambda s: ranking_loss(s, labels, scale), scores.requires_grad_())


@pytest.mark.parametrize("size", [1, 2, 7])
def test_one_label_value_is_zero_with_zero_gradient(size):
    value, gradient = value_and_gradient(ranking_loss, torch.linspace(-1, 1, size), torch.ones(size), 20.0)
    assert value == 0
    assert torch.equal(gradient, torch.zeros(size))


@pytest.mark.parametrize("scale", [1e-3, 20.0, 1e4])
def test_extreme_scales_stay_finite(scale):
    scores, labels = draw(3, 64, 3)
    value, gradient = value_and_gradient(ranking_loss, scores.float(), labels.float(), scale)
    assert value.isfinite()
    assert gradient.isfinite().all()


def test_bfloat16_is_computed_in_float32():
    scores, labels = draw(5, 100, 6)
    half = scores.bfloat16()
    value, gradient = value_and_gradient(ranking_loss, half, labels, 20.0)
    assert value.dtype == torch.float32
    assert torch.equal(value, ranking_loss(half.float(), labels, 20.0))
    assert gradient.isfinite().all()
