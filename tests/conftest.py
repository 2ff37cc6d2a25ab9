"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from importlib import import_module
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from pairkit.system.machine import cores

# What a command of ours compiles is kept for the next one, wherever Python is told not to.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Tests run side by side: more threads than cores only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

# How long an example takes says more of what else the machine does than of the code.
settings.register_profile(
    "house", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
# The same examples each time, so that a change and not chance makes a test fail; `make search` tries others.
settings.register_profile("search", settings.get_profile("house"), derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))


def pytest_configure(config: pytest.Config) -> None:
    """Hide a GPU from tests that are not about one: they compare with float32 on a processor."""
    if "not gpu" in config.getoption("markexpr"):
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: a third of the time a test waits for a server or process of its own."""
    return cores() + 1


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Take all that is loaded by now (torch, the tests) out of garbage collection: it stays to the end.

    Each look through it takes about half a second, and transformers' trainer asks for one whenever it begins.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True, scope="session")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An empty cache of tokens and vectors, which the tests of this process share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AOE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def command_line(package: str) -> Any:
    """The typer application of a package."""
    entry = import_module(f"{package}.__main__")
    return entry.application() if hasattr(entry, "application") else import_module(f"{package}.cli").app


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT as in a terminal: a shell has it ignored in the background, which is inherited."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
