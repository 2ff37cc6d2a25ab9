"""Settings and fixtures of all tests."""

import gc
import os
import signal
import sys
from importlib import import_module

import pytest
from hypothesis import HealthCheck, settings

from pairkit.base.system.machine import cores

# Keep compiled modules for the next command, even if Python is configured not to.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Tests run in parallel, so one thread per process is enough.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

# No deadline, because the time of an example depends on the load of the machine.
settings.register_profile(
    "house",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
# The same examples in each run, so that only changes make a test fail; `make search` draws new ones.
settings.register_profile("search", settings.get_profile("house"), derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))


def pytest_configure(config):
    """Hide the GPU from tests that don't need one: they compare with float32 on a CPU."""
    if "not gpu" in config.getoption("markexpr"):
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """One more than cores, because tests wait a third of their time for servers and processes."""
    return cores() + 1


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Exclude loaded modules (torch, the tests) from garbage collection.

    A collection of them takes half a second, and transformers' trainer starts one in each training.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True, scope="session")
def _cache(tmp_path_factory):
    """Use an empty cache of tokens and vectors for the tests of this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AOE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def command_line(package):
    """The typer application of a package."""
    return import_module(import_module(f"{package}.__main__").CLI).app


@pytest.fixture
def interruptible():
    """Handle SIGINT as in a terminal; processes inherit that a shell ignores it in background jobs."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
