"""Linear time, shown by growth and not by seconds, so that a slower machine sees the same result."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import process_time
from typing import TypeVar

_T = TypeVar("_T")
_MOST_GROWTH = 8.0  # for four times the input: linear work takes 4 times as long, quadratic work 16 times
_TRIES = 5
_NOISE_S = 1e-3  # less than this is the clock's and the scheduler's


def assert_linear(run: Callable[[_T], object], make: Callable[[int], _T], size: int = 65_536) -> None:
    """Fail if `run` grows faster than linearly from `make(size // 4)` to `make(size)`, by the least of tries.

    Making the input is not measured.
    """
    small, large = make(size // 4), make(size)
    least_small = least_large = float("inf")
    for _ in range(_TRIES):
        least_small = min(least_small, _cpu_seconds(run, small))
        least_large = min(least_large, _cpu_seconds(run, large))
        if least_large <= _MOST_GROWTH * max(least_small, _NOISE_S):
            return
    growth = least_large / max(least_small, _NOISE_S)
    raise AssertionError(
        f"four times the input took {growth:.1f} times as long, expected {_MOST_GROWTH:g} at most"
    )


def repeated(unit: str, before: str = "", after: str = "") -> Callable[[int], str]:
    """Make a text of a given length (in characters) that repeats one unit."""
    return lambda size: before + unit * (size // len(unit)) + after


def _cpu_seconds(run: Callable[[_T], object], given: _T) -> float:
    collecting = gc.isenabled()
    gc.disable()  # one collection takes half a second where many tests are loaded
    try:
        begun = process_time()
        run(given)
        return process_time() - begun
    finally:
        if collecting:
            gc.enable()
