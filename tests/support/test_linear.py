"""`assert_linear` passes linear work and fails quadratic work."""

from __future__ import annotations

import pytest

from tests.support.linear import assert_linear, repeated


def test_linear_work_passes_and_quadratic_work_fails() -> None:
    assert_linear(lambda text: sum(map(ord, text)), repeated("ab"), 400_000)
    with pytest.raises(AssertionError, match="times as long"):
        assert_linear(lambda text: sum(1 for _ in text for _ in text), repeated("ab"), 2_000)
