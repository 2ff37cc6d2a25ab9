"""`assert_linear` passes linear work and fails quadratic work."""

import pytest

from tests.support.linear import assert_linear, repeated


def test_linear_work_passes_and_quadratic_work_fails():
    assert_linear(lambda text: sum(map(ord, text)), repeated("ab"), 400_000)
    for size in (2_000, 16_000):  # an eighth of the second takes long enough
        with pytest.raises(AssertionError, match="times as long"):
            assert_linear(
                lambda text: sum(1 for _ in text for _ in text), repeated("ab"), size
            )


def test_slow_work_is_measured_on_an_eighth_of_the_input(monkeypatch):
    monkeypatch.setattr("tests.support.linear._ENOUGH_S", 0)
    sizes = []

    def run(text):
        sizes.append(len(text))
        return sum(map(ord, text))

    assert_linear(run, repeated("ab"), 64_000)
    assert sizes[:3] == [8_000, 2_000, 8_000]
