"""Promise 1: SIGKILL at random moments with faults on, run again, and the dataset has the same bytes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.contract.conftest import ROOT


def survives(*flags: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "kill.py"), *flags],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "datasets byte-identical: True" in done.stdout


def test_a_kill_of_a_small_build() -> None:
    survives("--kills", "1", "--repos", "quarryhq/quarry,lumenbase/lumen", "--seed", "11")


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["search", "sweep"])
def test_twenty_kills_of_the_sample(strategy: str) -> None:
    survives("--kills", "20", "--strategy", strategy, "--seed", "12")
