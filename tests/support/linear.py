"""Checks linear time by growth instead of seconds, so that the result does not depend on the machine."""

import gc
from time import process_time
from typing import TypeVar

_T = TypeVar("_T")
_MAX_GROWTH = 8.0  # for four times the input, which takes 4 times as long if linear, 16 times if quadratic
_TRIES = 5
_NOISE_S = 1e-3  # shorter times are noise of clock and scheduler
_ENOUGH_S = 0.05  # a shorter input that takes this long shows the growth as well


def assert_linear(run, make, size=65_536):
    """Fail if `run` takes more than linearly longer for `make(size)` than for `make(size // 4)`.

    The fastest of several tries counts; making the input is not measured. An eighth of `size` suffices if
    `run` is slow.
    """
    if _cpu_seconds(run, make(size // 8)) > _ENOUGH_S:
        size //= 8
    small, large = make(size // 4), make(size)
    fastest_small = fastest_large = float("inf")
    for _ in range(_TRIES):
        fastest_small = min(fastest_small, _cpu_seconds(run, small))
        fastest_large = min(fastest_large, _cpu_seconds(run, large))
        if fastest_large <= _MAX_GROWTH * max(fastest_small, _NOISE_S):
            return
    growth = fastest_large / max(fastest_small, _NOISE_S)
    raise AssertionError(
        f"four times the input took {growth:.1f} times as long, at most {_MAX_GROWTH:g}"
    )


def repeated(unit, before="", after=""):
    """A function that makes a text of a given length by repeating one unit."""
    return lambda size: before + unit * (size // len(unit)) + after


def _cpu_seconds(run, given):
    collecting = gc.isenabled()
    gc.disable()  # a collection takes half a second if many tests are loaded
    try:
        begun = process_time()
        run(given)
        return process_time() - begun
    finally:
        if collecting:
            gc.enable()
