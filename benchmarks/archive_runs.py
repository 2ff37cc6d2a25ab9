"""CPU time by stage and peak memory of `gis archive` from end to end.

    python benchmarks/archive_runs.py growth|trackers|added FOLDER

FOLDER has hours of GH Archive. `growth` repeats them for 10, 100 and 400 hours, each with its own
repositories, and adds the sample trackers. `trackers` runs only these, 1, 10 and 100 times; they are full of
duplicates, so most of the work comes after reading. `added` runs 22 hours, and again with one hour more.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl
from machine import processor
from runs import argument_parser

import gis_builder
from gis_builder.gh_archive.extract import hours_between
from pairkit.base.cli.progress import Progress
from tests.gis_builder.archive_world import (
    SOURCES,
    events_of,
    lines_of,
    saved_threads,
    write_hours,
)

RANGE = "2015-02-01..2016-12-31"
SAMPLE_HOURS = 6
_STAGES = (
    "reading hours",
    "sorting months",
    "detecting duplicates",
    "drawing negatives",
)
_REPO = re.compile(rb'"repo":\{"id":(\d+),"name":"([^"]+)"')


def main() -> int:
    """Measure and print a table."""
    parser = argument_parser(__doc__)
    parser.add_argument("what", choices=("growth", "trackers", "added", "measure"))
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    if given.what == "measure":
        print(json.dumps(measure(given.folder)))
        return 0
    print(processor(), flush=True)
    hours = sorted(given.folder.glob("*.json.gz"))
    with tempfile.TemporaryDirectory() as folder:
        table(Path(folder), hours, given.what)
    return 0


def table(home: Path, hours: list[Path], what: str) -> None:
    """Print a row for each run."""
    heads = ("run", "reading", "sorting", "judging", "negatives", "driver", "peak MiB")
    print(
        f"| {' | '.join((*heads, 'issue events', 'rows', 'raw MB', 'work MB'))} |\n|{'---|' * 11}"
    )
    if what == "added":
        fill(home, hours, 22 - SAMPLE_HOURS)
        show(home, "22 hours")
        (name,) = hours_between("2015-02-01-22")
        (home / f"hours/{name}.json.gz").write_bytes(
            with_own_repositories(hours[0].read_bytes(), 99)
        )
        show(home, "one more")
        shutil.rmtree(home / "work")
        show(home, "23 from nothing")
        return
    for times in (1, 10, 100) if what == "trackers" else (10, 100, 400):
        if what == "trackers":
            write_hours(
                home / "hours",
                lines_of(events_of_samples(times)),
                hours_between(RANGE)[:SAMPLE_HOURS],
            )
        else:
            fill(home, hours, times)
        show(home, f"{times:,}")
        for folder in ("hours", "work", "out"):
            shutil.rmtree(home / folder)


def show(home: Path, name: str) -> None:
    """Run in its own process and print a row."""
    command = [sys.executable, __file__, "measure", str(home)]
    environment = {**os.environ, "POLARS_MAX_THREADS": "1"}
    measured = json.loads(
        subprocess.run(
            command, check=True, stdout=subprocess.PIPE, env=environment
        ).stdout
    )
    size = sum(
        path.stat().st_size for path in (home / "work").rglob("*") if path.is_file()
    )
    rows = sum(
        pl.scan_parquet(path).select(pl.len()).collect().item()
        for path in home.glob("work/hours/*")
    )
    raw = sum(
        int.from_bytes(path.read_bytes()[-4:], "little")
        for path in (home / "hours").glob("*.gz")
    )
    seconds = " | ".join(f"{measured[stage]:.1f}" for stage in (*_STAGES, "driver"))
    counts = f"{measured['mib']:.0f} | {measured['events']:,} | {rows:,}"
    print(
        f"| {name} | {seconds} | {counts} | {raw / 1e6:,.0f} | {size / 1e6:.0f} |",
        flush=True,
    )


def measure(home: Path) -> dict[str, Any]:
    """CPU seconds by stage in this process; splits, rows and audit count for the driver."""
    seconds, last = dict.fromkeys((*_STAGES, "driver"), 0.0), time.process_time()

    def listen(progress: Progress) -> None:
        nonlocal last
        now = time.process_time()
        # The first event of a stage follows its first task; before the negatives, the driver works longest.
        before_negatives = progress.stage == _STAGES[-1] and not (
            progress.done or progress.ended
        )
        seconds["driver" if before_negatives else progress.stage] += now - last
        last = now

    built = gis_builder.archive(
        *(RANGE, home / "hours", home / "out"),
        work=home / "work",
        workers=1,
        fresh=True,
        progress=listen,
    )
    seconds["driver"] += time.process_time() - last
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(
        int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")
    )
    events = sum(month["issue_events"] for month in built.months.values())
    return seconds | {"mib": peak, "events": events}


def fill(home: Path, hours: list[Path], count: int) -> None:
    """Write repeated hours of the archive, and those of the sample trackers."""
    folder = home / "hours"
    folder.mkdir()
    names = hours_between(RANGE)[: count + SAMPLE_HOURS]
    for place, name in enumerate(names[:count]):
        data = hours[place % len(hours)].read_bytes()
        (folder / f"{name}.json.gz").write_bytes(with_own_repositories(data, place))
    write_hours(folder, lines_of(events_of_samples()), names[count:])


def with_own_repositories(data: bytes, place: int) -> bytes:
    """An hour with repositories that no other hour has."""

    def renamed(match: re.Match[bytes]) -> bytes:
        return b'"repo":{"id":%d,"name":"%s-%d"' % (
            int(match[1]) + (place << 32),
            match[2][:80],
            place,
        )

    return gzip.compress(_REPO.sub(renamed, gzip.decompress(data)), 1, mtime=0)


def events_of_samples(copies: int = 1) -> list[dict[str, Any]]:
    """The events of the sample trackers and of renamed copies."""
    with tempfile.TemporaryDirectory() as work:
        gis_builder.import_tracker(SOURCES, Path(work, "gis.work"), progress=False)
        threads = list(saved_threads(Path(work, "gis.work")).values())
    found = []
    for copy in range(copies):
        for place, own in enumerate(threads):
            for event in events_of(100 + place + 1000 * copy, own):
                name = event["repo"]["name"] + (f"-{copy}" if copy else "")
                found.append(event | {"repo": event["repo"] | {"name": name}})
    return found


if __name__ == "__main__":
    sys.exit(main())
