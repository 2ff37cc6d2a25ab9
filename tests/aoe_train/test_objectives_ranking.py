"""Losses of labelled pairs: by hand, and against plain sums, complex arithmetic, scipy and loops."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from aoe_train.objectives.labelled_pairs import TINY, cosine, unit
from aoe_train.objectives.ranking_losses import angle_reference, ranking_loss, softmax_loss

quick = settings(max_examples=25)
seeds = st.integers(0, 10**6)
scales = st.sampled_from([0.5, 1.0, 20.0, 100.0])


def ranking_plain(scores: Tensor, labels: Tensor, scale: float, margin: float = 0.0) -> Tensor:
    """All B^2 differences at once."""
    apart = margin * (labels[:, None] - labels[None, :])
    terms = scale * (scores[None, :] - scores[:, None] + apart)[labels[:, None] > labels[None, :]]
    return torch.cat([terms.new_zeros(1), terms]).logsumexp(0)


def draw(seed: int, size: int, levels: int) -> tuple[Tensor, Tensor]:
    """Scores in [-1, 1] and labels of at most `levels` values, in float64."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.rand(size, generator=generator, dtype=torch.float64) * 2 - 1
    return scores, torch.randint(levels, (size,), generator=generator).double()


def value_and_gradient(loss, scores: Tensor, labels: Tensor, scale: float, *margin) -> tuple[Tensor, Tensor]:
    scores = scores.clone().requires_grad_()
    value = loss(scores, labels, scale, *margin)
    return value.detach(), torch.autograd.grad(value, scores)[0]


@quick
@given(seeds, st.integers(1, 300), st.sampled_from([2, 3, 6, 1000]), scales, st.sampled_from([0.0, 0.3, 2.0]))
def test_equals_plain_form(seed, size, levels, scale, margin):
    scores, labels = draw(seed, size, levels)
    value, gradient = value_and_gradient(ranking_loss, scores, labels, scale, margin)
    plain_value, plain_gradient = value_and_gradient(ranking_plain, scores, labels, scale, margin)
    torch.testing.assert_close(value, plain_value, rtol=1e-12 if margin == 0 else 1e-9, atol=1e-12)
    torch.testing.assert_close(gradient, plain_gradient, rtol=1e-9, atol=1e-11)


@quick
@given(seeds, st.integers(2, 512), st.sampled_from([2, 6, 1000]))
def test_float32_is_accurate(seed, size, levels):
    scores, labels = draw(seed, size, levels)
    exact_value, exact_gradient = value_and_gradient(ranking_plain, scores, labels, 20.0)
    value, gradient = value_and_gradient(ranking_loss, scores.float(), labels.float(), 20.0)
    torch.testing.assert_close(value.double(), exact_value, rtol=2e-6, atol=1e-5)
    torch.testing.assert_close(gradient.double(), exact_gradient, rtol=1e-4, atol=1e-5)


MEASURES = [cosine, angle_reference]
ROOT_HALF = math.sqrt(0.5)


def draw_vectors(seed: int, rows: int = 4, dim: int = 6) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, rows, dim, generator=generator, dtype=torch.float64).unbind()


def as_complex(vectors: Tensor) -> np.ndarray:
    half = vectors.shape[1] // 2
    array = vectors.numpy()
    return array[:, :half].astype(np.complex128) + 1j * array[:, half:]


def reference_by_division(first: Tensor, second: Tensor) -> np.ndarray:
    """The reference's steps: (z / w) |w|^2 / |Y|^2, divided by |X| / |Y|, real and imaginary parts summed."""
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
    first, second = draw_vectors(seed)
    np.testing.assert_allclose(angle_reference(first, second), reference_by_division(first, second))


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("size", [0.0, 1e-30, 1e-7])
def test_short_vectors_give_bounded_gradients(measure, size):
    short = torch.full((1, 4), size, requires_grad=True)
    other = torch.tensor([[1.0, -2.0, 0.5, 3.0]], requires_grad=True)
    for pair in ((short, other), (other, short), (short, short)):
        value = measure(*pair)
        assert value.item() == pytest.approx(0, abs=1e-5)
        for gradient in torch.autograd.grad(value.sum(), (short, other), allow_unused=True):
            assert gradient is None or (gradient.abs() < 10).all()


def test_unit_keeps_tiny_vectors():
    vectors = torch.tensor([[[TINY, 0.0], [0.0, TINY / 2]]], dtype=torch.float64)
    assert unit(vectors).tolist() == [[[1.0, 0.0], [0.0, TINY / 2]]]


@quick
@given(seeds)
def test_softmax_against_loops(seed):
    rng = np.random.default_rng(seed)
    u, v, weight, bias = (rng.normal(size=shape) for shape in ((5, 3), (5, 3), (2, 9), 2))
    labels, losses = rng.integers(2, size=5), []
    for x, y, label in zip(u, v, labels, strict=True):
        features = [*x, *y, *abs(x - y)]
        scores = [sum(w * f for w, f in zip(row, features, strict=True)) for row in weight] + bias
        losses.append(math.log(sum(math.exp(s - scores[label]) for s in scores)))
    loss = softmax_loss(*map(torch.from_numpy, (u, v, labels, weight, bias)))
    assert loss.item() == pytest.approx(np.mean(losses))
