"""Kernel density estimates, against scipy's and against the area under them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from aoe_train._figures.density import bandwidth, density

VALUES = np.random.default_rng(0).normal(0.3, 0.2, 500)


def area(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.trapezoid(y, x))


def test_it_is_scipys_with_the_same_bandwidth() -> None:
    found = density(VALUES, (-1, 2))
    factor = bandwidth(VALUES) / np.std(VALUES, ddof=1)
    assert found.y == pytest.approx(stats.gaussian_kde(VALUES, bw_method=factor)(found.x), rel=1e-9)


def test_the_bandwidth_is_silvermans() -> None:
    values = np.array([0.0, 1.0, 2.0, 3.0, 4.0])  # sd 1.5811, IQR 2 / 1.34 = 1.4925
    assert bandwidth(values) == pytest.approx(0.9 * (2 / 1.34) * 5**-0.2)
    alike = np.array([0.0, 0.0, 0.0, 0.0, 1.0])  # IQR 0, so the standard deviation decides
    assert bandwidth(alike) == pytest.approx(0.9 * np.std(alike, ddof=1) * 5**-0.2)


def test_nothing_lies_beyond_a_bound_and_nothing_is_lost() -> None:
    cosines = np.clip(np.random.default_rng(1).normal(0.95, 0.1, 300), -1, 1)
    found = density(cosines, (-1.2, 1.2), bounds=(-1, 1), points=4_001)
    assert found.y[found.x > 1].max() == 0
    assert area(found.x, found.y) == pytest.approx(1, abs=2e-3)
    unbounded = density(cosines, (-1.2, 1), points=4_001)
    assert area(unbounded.x, unbounded.y) < 0.9


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=60))
def test_the_area_is_one_whatever_the_values(values: list[float]) -> None:
    found = density(np.array(values), (-1, 1), bounds=(-1, 1), points=2_001)
    assert np.isfinite(found.y).all()
    assert area(found.x, found.y) == pytest.approx(1, abs=0.02)


def test_many_values_in_blocks_give_what_they_give_at_once() -> None:
    many = np.random.default_rng(2).normal(size=10_000)
    found = density(many, (-3, 3), points=50)
    width = bandwidth(many)
    assert found.y == pytest.approx(stats.norm.pdf((found.x[:, None] - many) / width).mean(1) / width)
