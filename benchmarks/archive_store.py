"""`gis archive --work s3://…` beside a folder: `python benchmarks/archive_store.py FOLDER`.

FOLDER holds hours of GH Archive, which are given other names until there are `--hours` of them; the sample
trackers are hours of their own (see `archive_faults.py`). The store is moto's, in this process, and answers
after `--pause-ms`, as over a network; CPU seconds are those of `gis` and its workers alone. The exit code is
1 where a byte differs.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from archive_faults import RANGE, digest_of, fill
from machine import processor

from tests.gis_builder.object_server import BUCKET, Store, storing


def main() -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hours", type=int, default=120)
    parser.add_argument("--workers", default="2,8")
    parser.add_argument("--pause-ms", type=float, default=30)
    given = parser.parse_args()
    print(processor(), flush=True)
    print("| work | workers | CPU s | wall s | requests | dataset |")
    print("|---|---|---|---|---|---|", flush=True)
    digests = set()
    with tempfile.TemporaryDirectory() as folder, storing() as store:
        home = Path(folder)
        fill(home / "hours", sorted(given.folder.glob("*.json.gz")), given.hours)
        store.pause_s = given.pause_ms / 1000
        for workers in given.workers.split(","):
            for work in (str(home / f"work-{workers}"), f"s3://{BUCKET}/{workers}"):
                digests.add(run(home, work, workers, store))
                if work.startswith("s3:"):
                    digests.add(run(home, work, workers, store, again=True))
    return 0 if len(digests) == 1 else 1


def run(home: Path, work: str, workers: str, store: Store, *, again: bool = False) -> str:
    """One run to its end."""
    store.begin_anew()
    command = [
        *(sys.executable, "-m", "gis_builder", "archive", "--hours", RANGE, "--source", str(home / "hours")),
        *("--out", str(home / "out"), "--work", work, "--workers", workers, "-q"),
    ]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, env=os.environ | store.environment, stdout=subprocess.DEVNULL)
    wall_s, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    asked = ", ".join(f"{count:,} {method}" for method, count in sorted(store.asked.items())) or "–"
    digest = digest_of(home / "out")
    where = ("S3, all of it done" if again else "S3") if "://" in work else "a folder"
    print(f"| {where} | {workers} | {cpu_s:.1f} | {wall_s:.0f} | {asked} | {digest[:8]} |", flush=True)
    return digest


if __name__ == "__main__":
    sys.exit(main())
