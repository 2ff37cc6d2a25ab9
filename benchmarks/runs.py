"""Helpers of the scripts: flags, and runs that are done once and stored in a file."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

Result = dict[str, Any]


def argument_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser whose `--help` shows a script's docstring unchanged."""
    return argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )


@dataclass(frozen=True)
class Ledger:
    """A folder with a line in `results.jsonl` for each run."""

    folder: Path

    def once(self, run: Result, work: Callable[[Path], Result]) -> Result:
        """The stored result of a run, or that of `work`."""
        for entry in self.read():
            if entry["run"] == run:
                return entry
        print(f"{run['name']}, seed {run['seed']}", file=sys.stderr, flush=True)
        entry = {"run": run, **work(self.place(run))}
        with (self.folder / "results.jsonl").open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(entry) + "\n")
        return entry

    def read(self) -> list[Result]:
        """All results so far."""
        path = self.folder / "results.jsonl"
        return (
            [json.loads(line) for line in path.read_text("utf-8").splitlines()]
            if path.exists()
            else []
        )

    def place(self, run: Result) -> Path:
        """The path of the run's model."""
        digest = hashlib.sha256(json.dumps(run, sort_keys=True).encode()).hexdigest()
        return self.folder / "models" / digest[:16]


def spread(values: list[float]) -> str:
    """Mean ± standard deviation over seeds."""
    return (
        f"{mean(values):.2f} ± {stdev(values):.2f}"
        if len(values) > 1
        else f"{values[0]:.2f}"
    )
