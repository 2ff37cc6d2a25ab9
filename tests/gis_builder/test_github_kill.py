"""SIGKILL at any moment, run again: what is stored is what an undisturbed crawl stores."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gis_builder.store import Store
from tests.support.github import FaultPlan, Rule, Server, serve

from .crawl_world import crawl_all, quick, write_station

SCRIPT = """
import importlib.util, sys
from pathlib import Path
root = Path({tests!r})
for name in ("tests", "tests.gis_builder"):
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, None, is_package=True))
    module.__path__ = [str(root.parent if name == "tests" else root)]
    sys.modules[name] = module
from tests.gis_builder.crawl_world import crawl_all, quick
from gis_builder.store import Store
with Store.open(Path({path!r}), create=True) as store:
    print("ready", flush=True)
    crawl_all(quick({url!r}), store, {strategy!r})
    print(store.content_hash())
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory):
    dump = write_station(tmp_path_factory.mktemp("station"))
    plan = FaultPlan(rules=(Rule(kind="502", probability=0.05), Rule(kind="dropped", probability=0.05)))
    with serve(dump, faults=plan, latency_s=0.004) as running:
        yield running


def run(server: Server, path: Path, strategy: str, kill_after_s: float | None) -> str | None:
    """Crawl in a process of its own; the content hash, or None where it was killed first."""
    script = SCRIPT.format(
        tests=str(Path(__file__).parent), path=str(path), url=server.url, strategy=strategy
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    if kill_after_s is not None:
        time.sleep(kill_after_s)
        os.kill(process.pid, signal.SIGKILL)
    rest, _ = process.communicate(timeout=60)
    assert process.returncode in (0, -signal.SIGKILL)
    return rest.strip() or None


def check(server: Server, tmp_path: Path, strategy: str, kills: int) -> None:
    with Store.open(tmp_path / "undisturbed.sqlite", create=True) as store:
        start = time.monotonic()
        crawl_all(quick(server.url), store, strategy)
        whole_s = time.monotonic() - start
        expected = store.content_hash()
    draw, was_killed = random.Random(7), 0
    path = tmp_path / "killed.sqlite"
    for _ in range(kills):
        was_killed += run(server, path, strategy, draw.uniform(0, whole_s / 2)) is None
    assert was_killed >= kills // 2
    assert run(server, path, strategy, None) == expected


def test_a_sweep_that_was_killed(server: Server, tmp_path: Path) -> None:
    """A search is killed in `tests/contract/test_gis_kill.py`."""
    check(server, tmp_path, "sweep", kills=1)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["search", "sweep"])
def test_killed_often(server: Server, tmp_path: Path, strategy: str) -> None:
    for round_ in range(5):
        folder = tmp_path / str(round_)
        folder.mkdir()
        check(server, folder, strategy, kills=4)
