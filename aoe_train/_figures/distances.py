"""How far apart the two texts of each pair are, by the real and by the imaginary half of their vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aoe_train._figures.density import Curve, density

_NEAREST = 1e-6  # of the longest distance, on a logarithmic axis


@dataclass(frozen=True)
class HalfDistances:
    """Euclidean distances between one half of the two vectors of each pair.

    Attributes:
        values: float64 (pair,)
        mean: AVG_re or AVG_im of the paper.
        density: Of the values, or of their common logarithm, see `Distances.logarithmic`.
    """

    values: np.ndarray
    mean: float
    density: Curve


@dataclass(frozen=True)
class Distances:
    """Distances within pairs, in one space.

    Attributes:
        imaginary_larger: Share of pairs whose imaginary distance is the larger one.
        logarithmic: Whether the densities are over the logarithm: in t-SNE's planes most pairs lie together
            and a few far apart, so that a linear axis shows a spike and nothing else.
    """

    real: HalfDistances
    imaginary: HalfDistances
    imaginary_larger: float
    logarithmic: bool


def distances(
    real: np.ndarray, imaginary: np.ndarray, pairs: np.ndarray, *, logarithmic: bool = False
) -> Distances:
    """Distances within pairs, half by half.

    Args:
        real: float64 (text, any)
        imaginary: float64 (text, any)
        pairs: (pair, 2), rows of both.
        logarithmic: See `Distances`; the logarithm of 0 counts as that of a millionth of the longest.
    """
    apart = [np.linalg.norm(half[pairs[:, 0]] - half[pairs[:, 1]], axis=1) for half in (real, imaginary)]
    curves = _logarithmic(apart) if logarithmic else _linear(apart)
    first, second = (
        HalfDistances(values, float(values.mean()), curve)
        for values, curve in zip(apart, curves, strict=True)
    )
    return Distances(first, second, float((apart[1] > apart[0]).mean()), logarithmic)


def _linear(apart: list[np.ndarray]) -> list[Curve]:
    longest = float(np.max(apart)) or 1.0
    return [density(values, (0.0, 1.05 * longest), bounds=(0, None)) for values in apart]


def _logarithmic(apart: list[np.ndarray]) -> list[Curve]:
    longest = float(np.max(apart)) or 1.0
    exponents = np.log10(np.maximum(apart, _NEAREST * longest))
    low = float(np.floor(exponents.min()))
    axis = (low, max(float(np.ceil(exponents.max())), low + 1))
    return [density(values, axis) for values in exponents]
