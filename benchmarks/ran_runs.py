"""Runs that are done once: a command of `aoe`, measured, and the file that remembers what came out."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
Result = dict[str, Any]


@dataclass(frozen=True)
class Ledger:
    """A folder with a line in `results.jsonl` for each run."""

    folder: Path

    def once(self, run: Result, work: Callable[[Path], Result]) -> Result:
        """The result of a run, from its line or by doing the work."""
        for entry in self.read():
            if entry["run"] == run:
                return entry
        print(f"{run['name']}, seed {run['seed']}", file=sys.stderr, flush=True)
        entry = {"run": run, **work(self.place(run))}
        with (self.folder / "results.jsonl").open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(entry) + "\n")
        return entry

    def read(self) -> list[Result]:
        """The runs done so far."""
        path = self.folder / "results.jsonl"
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []

    def place(self, run: Result) -> Path:
        """A path that no other run has."""
        digest = hashlib.sha256(json.dumps(run, sort_keys=True).encode()).hexdigest()
        return self.folder / "models" / digest[:16]


def aoe(*arguments: str, package: str = "aoe_train") -> Result:
    """Run `aoe … --json` in a process of its own: its JSON object, `wall_s` and `cpu_s` (of all threads)."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", package, *arguments, "--json", "--quiet"]
    process = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        check=False,
    )
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{process.stderr[-3000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    answer = json.loads(process.stdout.strip().splitlines()[-1])
    return {**answer, "wall_s": time.perf_counter() - start, "cpu_s": cpu_s}
