"""Logistic regression, against what it says by hand and against scipy's optimiser."""

from __future__ import annotations

import numpy as np
import pytest

from pairkit.logistic import fit, logistic, probability, reliability


def test_one_number_without_a_bearing_gives_the_share():
    truth = np.array([1.0, 0, 0, 0] * 25)
    weights = fit(np.zeros((100, 1)), truth)
    assert weights == pytest.approx([np.log(1 / 3), 0], abs=1e-3)
    assert probability(np.zeros((1, 1)), weights) == pytest.approx([0.25], abs=1e-3)


def test_weights_are_where_the_likelihood_is_highest():
    from scipy.optimize import minimize

    random = np.random.default_rng(5)
    numbers = random.normal(size=(400, 3))
    truth = (random.random(400) < logistic(numbers @ [2.0, -1, 0] - 1)).astype(float)

    def loss(weights: np.ndarray) -> float:
        odds = np.column_stack([np.ones(400), numbers]) @ weights
        return float(np.logaddexp(0, odds).sum() - truth @ odds + 0.5e-3 * weights @ weights)

    assert fit(numbers, truth) == pytest.approx(minimize(loss, np.zeros(4), tol=1e-10).x, abs=1e-4)


def test_kinds_that_are_parted_wholly_have_finite_weights():
    weights = fit(np.array([[0.0], [1.0]] * 20), np.array([0.0, 1.0] * 20))
    assert np.isfinite(weights).all()
    assert probability(np.array([[0.0], [1.0]]), weights) == pytest.approx([0, 1], abs=0.02)


def test_reliability_of_nothing_and_by_hand():
    assert reliability(np.empty(0), np.empty(0)) == (0.0, [])
    brier, tenths = reliability(np.array([0.05, 0.15, 0.15, 1.0]), np.array([0.0, 1, 0, 1]))
    assert brier == pytest.approx((0.05**2 + 0.85**2 + 0.15**2) / 4)
    assert [(*one[:2], one.seen) for one in tenths] == [(0.0, 1, 0.0), (0.1, 2, 0.5), (0.9, 1, 1.0)]
