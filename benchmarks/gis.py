"""What the `gis` benchmarks share: a test server in a process of its own, and a measured run of a command."""

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
def emulator(dump: Path, *options: str) -> Iterator[str]:
    """Serve a dump from another process (its memory is not ours); yield its address."""
    command = [sys.executable, "-m", "tests.support.github", str(dump), "--port", "0", *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        for line in server.stdout or ():
            if address := re.search(r"http://[\w.:]+", line):
                break
        else:
            raise SystemExit("the test server did not start")
        threading.Thread(target=lambda: list(server.stdout or ()), daemon=True).start()
        yield address[0]
    finally:
        server.terminate()  # a shell that runs this in its background makes SIGINT ignored
        server.wait()


@dataclass(frozen=True)
class Run:
    """A finished command: its JSON result, wall time and peak resident memory of the process."""

    result: dict[str, object]
    seconds: float
    peak_rss_mb: float


def measured(*arguments: str, package: str = "gis_builder") -> Run:
    """Run `gis … --json`, or another package's script, and measure it from outside."""
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
    """The command line that runs `gis` in this interpreter's environment."""
    return [sys.executable, "-m", "gis_builder", *arguments]


def fingerprint(folder: Path) -> dict[str, str]:
    """The hash of each file of a dataset, to compare two of them byte by byte."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
