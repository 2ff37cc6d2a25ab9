"""Only what is inside counts."""

from __future__ import annotations

import time

import pytest

from aoe_train.training.callbacks import Stopwatch


def test_counts_running_without_pauses_and_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    watch = Stopwatch(5)
    with watch.paused():  # outside, it starts nothing
        now[0] += 10
    now[0] += 10
    with watch.running():
        now[0] += 1
        with watch.paused():
            now[0] += 20
            assert watch.seconds == 6
        now[0] += 2
        assert watch.seconds == 8

    def fail() -> None:
        with watch.running():
            now[0] += 3
            raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        fail()
    now[0] += 40
    assert watch.seconds == 11
