"""The measures against hand-worked numbers and complex arithmetic in numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from aoe_train.objectives.ranking import angle_reference
from aoe_train.objectives.similarity import TINY, cosine, unit

MEASURES = [cosine, angle_reference]
quick = settings(max_examples=25)
seeds = st.integers(0, 10**6)
ROOT_HALF = math.sqrt(0.5)


def draw(seed: int, rows: int = 4, dim: int = 6) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, rows, dim, generator=generator, dtype=torch.float64).unbind()


def as_complex(vectors: Tensor) -> np.ndarray:
    half = vectors.shape[1] // 2
    array = vectors.numpy()
    return array[:, :half].astype(np.complex128) + 1j * array[:, half:]


def reference_by_division(first: Tensor, second: Tensor) -> np.ndarray:
    """What the reference computes, step by step: (z / w) |w|^2 / |Y|^2, over |X| / |Y|, parts summed."""
    z, w = as_complex(first), as_complex(second)
    x, y = np.linalg.norm(z, axis=1, keepdims=True), np.linalg.norm(w, axis=1, keepdims=True)
    quotient = (z / w) * np.abs(w) ** 2 / y**2 / (x / y)
    return np.abs(quotient.real.sum(1) + quotient.imag.sum(1))


@pytest.mark.parametrize(
    ("measure", "x", "y", "expected"),
    [
        (cosine, [3, 4], [4, 3], 24 / 25),
        (angle_reference, [1, 0], [1, 0], 1.0),
        (angle_reference, [1, 0], [0, 1], 1.0),  # 1 / i = -i
        (angle_reference, [1, 0], [ROOT_HALF, ROOT_HALF], 0.0),  # turned by -45 degrees: parts cancel
        (angle_reference, [ROOT_HALF, ROOT_HALF], [1, 0], math.sqrt(2)),  # its maximum, not at X = Y
    ],
)
def test_by_hand(measure, x, y, expected):
    first, second = (torch.tensor([v], dtype=torch.float64) for v in (x, y))
    assert measure(first, second).item() == pytest.approx(expected, abs=1e-6)


@quick
@given(seeds)
def test_against_complex_numbers(seed):
    first, second = draw(seed)
    np.testing.assert_allclose(angle_reference(first, second), reference_by_division(first, second))


@pytest.mark.parametrize("measure", MEASURES)
@quick
@given(seed=seeds)
def test_gradient_against_finite_differences(measure, seed):
    first, second = draw(seed)
    assert torch.autograd.gradcheck(measure, (first.requires_grad_(), second.requires_grad_()))
    same = first.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(measure, (first, same))  # smooth where both are alike, too


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("size", [0.0, 1e-30, 1e-7])
def test_no_vector_is_too_short(measure, size):
    short = torch.full((1, 4), size, requires_grad=True)
    other = torch.tensor([[1.0, -2.0, 0.5, 3.0]], requires_grad=True)
    for pair in ((short, other), (other, short), (short, short)):
        value = measure(*pair)
        assert value.item() == pytest.approx(0, abs=1e-5)
        for gradient in torch.autograd.grad(value.sum(), (short, other), allow_unused=True):
            assert gradient is None or (gradient.abs() < 10).all()


def test_a_length_counts_from_the_smallest_on_along_the_last_axis():
    vectors = torch.tensor([[[TINY, 0.0], [0.0, TINY / 2]]], dtype=torch.float64)
    assert unit(vectors).tolist() == [[[1.0, 0.0], [0.0, TINY / 2]]]
