"""The measures against hand-worked numbers and complex arithmetic in numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from aoe_train._objectives.similarity import TINY, angle_phase, angle_reference, cosine, unit

MEASURES = [cosine, angle_reference, angle_phase]
quick = settings(max_examples=25)
seeds = st.integers(0, 10**6)
ROOT_HALF = math.sqrt(0.5)


def phase(mean_cosine):
    """1 - sin(delta / 2), smoothed by 0.01 where delta is small."""
    return 1.01 - ((1 - mean_cosine) / 2 + 1e-4) ** 0.5


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


def phase_by_polar_form(first: Tensor, second: Tensor) -> np.ndarray:
    """From the arguments of the complex numbers, with the sine of half their difference."""
    z, w = as_complex(first), as_complex(second)
    delta = np.angle(z) - np.angle(w)
    square = np.average(np.sin(delta / 2) ** 2, axis=1, weights=np.abs(z) * np.abs(w))
    return 1.01 - np.sqrt(square + 1e-4)


@pytest.mark.parametrize(
    ("measure", "x", "y", "expected"),
    [
        (cosine, [3, 4], [4, 3], 24 / 25),
        (angle_reference, [1, 0], [1, 0], 1.0),
        (angle_reference, [1, 0], [0, 1], 1.0),  # 1 / i = -i
        (angle_reference, [1, 0], [ROOT_HALF, ROOT_HALF], 0.0),  # turned by -45 degrees: parts cancel
        (angle_reference, [ROOT_HALF, ROOT_HALF], [1, 0], math.sqrt(2)),  # its maximum, not at X = Y
        (angle_phase, [1, 0], [0, 1], 0.3028225),  # 90 degrees: 1 - sin(45), nearly
        (angle_phase, [1, 0], [-2, 0], 0.00995),
        (angle_phase, [1, 2, 0, 0], [1, 0, 0, 3], phase(1 / 7)),  # cosines 1 and 0, weights 1 and 6
        (angle_phase, [1, 2, 1, 0], [5, 1, 5, 0], 1.0),  # all phases agree, magnitudes don't
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
    np.testing.assert_allclose(angle_phase(first, second), phase_by_polar_form(first, second))


@quick
@given(seeds)
def test_phase_rests_on_cosine_over_that_of_the_magnitudes(seed):
    first, second = draw(seed)
    magnitudes = [torch.from_numpy(np.abs(as_complex(v))) for v in (first, second)]
    ratio = cosine(first, second) / cosine(*magnitudes)
    torch.testing.assert_close(angle_phase(first, second), phase(ratio))


@pytest.mark.parametrize("measure", MEASURES)
@quick
@given(seed=seeds)
def test_gradient_against_finite_differences(measure, seed):
    first, second = draw(seed)
    assert torch.autograd.gradcheck(measure, (first.requires_grad_(), second.requires_grad_()))
    same = first.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(measure, (first, same))  # smooth where both are alike, too


@pytest.mark.parametrize("measure", MEASURES)
@quick
@given(seed=seeds, factor=st.floats(0.01, 100))
def test_lengths_do_not_matter(measure, seed, factor):
    first, second = draw(seed)
    torch.testing.assert_close(measure(factor * first, second / factor), measure(first, second))


@pytest.mark.parametrize("measure", [cosine, angle_phase])
@quick
@given(seed=seeds)
def test_symmetric_bounded_and_largest_for_equals(measure, seed):
    first, second = draw(seed)
    value = measure(first, second)
    torch.testing.assert_close(value, measure(second, first))
    assert (value.abs() <= 1 + 1e-12).all()
    torch.testing.assert_close(measure(first, first), torch.ones(4, dtype=torch.float64))


@quick
@given(seeds, st.floats(-math.pi, math.pi))
def test_phase_ignores_a_common_turn_and_sees_a_relative_one(seed, angle):
    first, _ = draw(seed)
    turned = as_complex(first) * np.exp(1j * angle)
    second = torch.from_numpy(np.concatenate([turned.real, turned.imag], axis=1))
    torch.testing.assert_close(angle_phase(second, second), angle_phase(first, first))
    np.testing.assert_allclose(angle_phase(first, second), phase(math.cos(angle)), atol=1e-12)


@quick
@given(seeds)
def test_reference_is_bounded_and_one_for_equals(seed):
    first, second = draw(seed)
    assert (angle_reference(first, second) <= math.sqrt(2) + 1e-12).all()
    torch.testing.assert_close(angle_reference(first, first), torch.ones(4, dtype=torch.float64))


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("size", [0.0, 1e-30, 1e-7])
def test_no_vector_is_too_short(measure, size):
    short = torch.full((1, 4), size, requires_grad=True)
    other = torch.tensor([[1.0, -2.0, 0.5, 3.0]], requires_grad=True)
    for pair in ((short, other), (other, short), (short, short)):
        value = measure(*pair)
        assert value.item() == pytest.approx(phase(0) if measure is angle_phase else 0, abs=1e-5)
        for gradient in torch.autograd.grad(value.sum(), (short, other), allow_unused=True):
            assert gradient is None or (gradient.abs() < 10).all()


def test_phase_does_not_saturate_at_small_angles():
    def slope(measure, degrees):
        angle = torch.tensor(math.radians(degrees), dtype=torch.float64, requires_grad=True)
        turned = torch.stack([angle.cos(), angle.sin()])[None]
        measure(torch.tensor([[1.0, 0.0]], dtype=torch.float64), turned).backward()
        return -angle.grad.item()

    assert slope(angle_phase, 5) > 0.95 * slope(angle_phase, 20)
    assert slope(cosine, 5) < 0.3 * slope(cosine, 20)
    assert slope(angle_phase, 0) == 0


def test_phase_of_texts_that_share_no_dimension_is_a_right_angle():
    first, second = torch.tensor([[1.0, 0, 1, 0]]), torch.tensor([[0.0, 1, 0, 1]])
    first.requires_grad_()
    value = angle_phase(first, second)
    value.sum().backward()
    assert value.item() == pytest.approx(phase(0))
    assert first.grad.isfinite().all()


def test_a_length_counts_from_the_smallest_on_along_the_last_axis():
    vectors = torch.tensor([[[TINY, 0.0], [0.0, TINY / 2]]], dtype=torch.float64)
    assert unit(vectors).tolist() == [[[1.0, 0.0], [0.0, TINY / 2]]]
