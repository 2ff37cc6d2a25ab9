"""Helpers of the `gis` benchmarks: a test server in its own process, and measured runs of a command."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
RUST = DATA / "rust-issues"
SAMPLE = ROOT / "data" / "sample"
ENVIRONMENT = {**os.environ, "GITHUB_TOKEN": "benchmark"}


@contextmanager
def emulator(
    dump: Path, *options: str, server: str = "tests.support.github"
) -> Iterator[str]:
    """Serve a dump from another process and yield its address."""
    command = [sys.executable, "-m", server, str(dump), "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        for line in process.stdout or ():
            if address := re.search(r"http://[\w.:]+", line):
                break
        else:
            raise SystemExit("the test server did not start")
        threading.Thread(target=lambda: list(process.stdout or ()), daemon=True).start()
        yield address[0]
    finally:
        process.terminate()  # not SIGINT, which background jobs of a shell ignore
        process.wait()


@dataclass(frozen=True)
class Run:
    """JSON result, wall time and peak resident memory of a command."""

    result: dict[str, object]
    seconds: float
    peak_rss_mb: float


def measured(*arguments: str, package: str = "gis_builder") -> Run:
    """Run and measure `gis … --json`, or the command of another package."""
    start, peak = time.perf_counter(), 0.0
    process = subprocess.Popen(
        [sys.executable, "-m", package, *arguments, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=ENVIRONMENT,
        cwd=ROOT,
    )
    watched = psutil.Process(process.pid)
    while process.poll() is None:
        try:
            peak = max(peak, watched.memory_info().rss / 2**20)
        except psutil.NoSuchProcess:
            break
        time.sleep(0.02)
    output = (process.stdout.read() if process.stdout else "").strip().splitlines()
    if process.wait():
        raise SystemExit(f"gis {' '.join(arguments)} ended with {process.returncode}")
    return Run(json.loads(output[-1]), time.perf_counter() - start, peak)


def gis(*arguments: str) -> list[str]:
    """The command line of `gis` with this interpreter."""
    return [sys.executable, "-m", "gis_builder", *arguments]


def fingerprint(folder: Path) -> dict[str, str]:
    """The hash of each file of a dataset."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
