"""Gaussian kernel density estimates on bounded axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_BLOCK = 4096
_NARROWEST = 0.005  # of the axis: values that are all alike are drawn as a narrow peak, not as a spike


@dataclass(frozen=True)
class Curve:
    """A line: x and y, each float64 (point,)."""

    x: np.ndarray
    y: np.ndarray


def density(
    values: np.ndarray,
    axis: tuple[float, float],
    *,
    bounds: tuple[float | None, float | None] = (None, None),
    points: int = 256,
) -> Curve:
    """Where values lie, as a curve with area 1 over all that is possible.

    The kernel is Gaussian with Silverman's robust bandwidth, 0.9 min(sd, IQR / 1.34) n^(-1/5) (Density
    Estimation, 1986, Eq. 3.31). Mass that a kernel would put beyond a bound is reflected into the range:
    cosines end at 1, and many lie there.

    Args:
        values: (value,), one or more.
        axis: Where the curve begins and ends.
        bounds: The least and the greatest value that is possible.
        points: Points of the curve.
    """
    x = np.linspace(*axis, points)
    low, high = bounds
    images = [values]
    images += [2 * low - values] if low is not None else []
    images += [2 * high - values] if high is not None else []
    width = bandwidth(values, narrowest=_NARROWEST * (axis[1] - axis[0]))
    y = sum(_kernels(x, image, width) for image in images) / len(values)
    inside = (x >= (-np.inf if low is None else low)) & (x <= (np.inf if high is None else high))
    return Curve(x, np.where(inside, y, 0.0))


def bandwidth(values: np.ndarray, *, narrowest: float = 0.0) -> float:
    """Silverman's robust bandwidth, at least `narrowest`."""
    spreads = [float(np.std(values, ddof=1)) if len(values) > 1 else 0.0]
    lower, upper = np.quantile(values, [0.25, 0.75])
    if upper > lower:  # half of the values may be alike
        spreads.append(float(upper - lower) / 1.34)
    return float(max(0.9 * min(spreads) * len(values) ** -0.2, narrowest))


def _kernels(x: np.ndarray, values: np.ndarray, width: float) -> np.ndarray:
    """The sum of the values' kernels at each x; in blocks, as all distances at once could be large."""
    total: np.ndarray = np.zeros(len(x))
    for start in range(0, len(values), _BLOCK):
        distances = (x[:, None] - values[None, start : start + _BLOCK]) / width
        total += np.exp(-0.5 * distances**2).sum(axis=1)
    total /= width * np.sqrt(2 * np.pi)
    return total
