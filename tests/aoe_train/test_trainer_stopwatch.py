"""Only what is inside counts."""

from __future__ import annotations

import time

import pytest

from aoe_train.training.trainer.callbacks import Stopwatch


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    return clock


def test_counts_running_without_pauses(now: list[float]) -> None:
    watch = Stopwatch(5)
    now[0] += 10
    with watch.running():
        now[0] += 1
        with watch.paused():
            now[0] += 20
            assert watch.seconds == 6
        now[0] += 2
        assert watch.seconds == 8
    now[0] += 40
    assert watch.seconds == 8


def test_a_pause_outside_starts_nothing(now: list[float]) -> None:
    watch = Stopwatch()
    with watch.paused():
        now[0] += 1
    now[0] += 1
    assert watch.seconds == 0


def test_an_error_stops_it(now: list[float]) -> None:
    watch = Stopwatch()

    def fail() -> None:
        with watch.running():
            now[0] += 3
            raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        fail()
    now[0] += 3
    assert watch.seconds == 3
