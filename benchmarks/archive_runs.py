"""`gis archive` from end to end: `python benchmarks/archive_runs.py WHAT FOLDER`.

FOLDER has hours of GH Archive, which get other names until there are enough; the sample trackers follow as
six hours. `same` runs with one and two workers and with a driver and workers that are killed (SIGKILL)
`--kills` times: the dataset has to be the same, byte for byte, else the exit code is 1. `growth` gives every
hour repositories of its own and prints CPU seconds by stage and the peak of memory, in one process, for 10,
100 and 1,000 hours; `trackers` does so for the sample trackers 1, 10 and 100 times over, which are full of
duplicates, so that most of the work comes after reading. `more` adds an hour to `--hours`, and then changes
settings of pairs.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
from machine import processor

import gis_builder
from gis_builder.gh_archive.hours import hours_between
from gis_builder.store import Store
from pairkit.app.progress import Progress
from tests.gis_builder.archive_world import SOURCES, events_of, lines_of, write_hours

RANGE = "2015-02-01..2016-12-31"
SAMPLE_HOURS = 6
_PAUSE_S = 2.0  # between kills
_STAGES = ("reading hours", "sorting months", "detecting duplicates", "drawing negatives")
_REPO = re.compile(rb'"repo":\{"id":(\d+),"name":"([^"]+)"')


def main() -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("same", "growth", "trackers", "more", "measure"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hours", type=int, default=250)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--set", action="append", default=[])
    given = parser.parse_args()
    if given.what == "measure":
        print(json.dumps(measure(given.folder, given.set)))
        return 0
    print(processor(), flush=True)
    hours = sorted(given.folder.glob("*.json.gz"))
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        if given.what == "same":
            return same(home, hours, given.hours, given.kills)
        table(home, hours, given.what, given.hours)
    return 0


def same(home: Path, hours: list[Path], count: int, kills: int) -> int:
    """Run with other workers, and with kills; 1 if a byte differs."""
    fill(home, hours, count)
    print("| run | kills | dataset |\n|---|---|---|", flush=True)
    digests = set()
    for name, workers, victim in (
        ("1 worker", 1, ""),
        ("2 workers", 2, ""),
        ("driver killed", 2, "driver"),
        ("workers killed", 2, "workers"),
    ):
        shutil.rmtree(home / "work", ignore_errors=True)
        shutil.rmtree(home / "out", ignore_errors=True)
        killed = run([*command(home), "--workers", str(workers)], kills if victim else 0, victim)
        digests.add(digest_of(home / "out"))
        print(f"| {name} | {killed} | {digest_of(home / 'out')[:8]} |", flush=True)
    return int(len(digests) > 1)


def command(home: Path) -> list[str]:
    """The command of a run."""
    folders = ("--source", str(home / "hours"), "--out", str(home / "out"), "--work", str(home / "work"))
    return [sys.executable, "-m", "gis_builder", "archive", "--hours", RANGE, *folders, "-q"]


def run(words: list[str], kills: int, victim: str) -> int:
    """Run a command to its end, and kill it or its workers; returns how often."""
    killed = 0
    while True:
        driver = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        while driver.poll() is None and killed < kills:
            time.sleep(_PAUSE_S)
            victims = [driver.pid] if victim == "driver" else list(children_of(driver.pid))
            if driver.poll() is None and victims:
                os.kill(victims[killed % len(victims)], signal.SIGKILL)
                killed += 1
        code = driver.wait()
        if code == 0:
            return killed
        if code != -signal.SIGKILL:
            raise SystemExit(f"the run ended with {code}")


def children_of(pid: int) -> Iterator[int]:
    """The workers of a driver."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            words = (process / "cmdline").read_bytes()
        except (OSError, IndexError):
            continue
        if parent == pid and b"spawn_main" in words:
            yield int(process.name)


def table(home: Path, hours: list[Path], what: str, count: int) -> None:
    """A row for each run."""
    heads = ("run", "reading", "sorting", "judging", "negatives", "driver", "judged", "peak MiB")
    print(f"| {' | '.join((*heads, 'issue events', 'rows', 'raw MB', 'work MB'))} |\n|{'---|' * 12}")
    if what == "more":
        fill(home, hours, count)
        late = home / "late.json.gz"
        shutil.move(home / "hours" / f"{hours_between(RANGE)[0]}.json.gz", late)
        show(home, f"{count - 1} hours")
        shutil.move(late, home / "hours" / f"{hours_between(RANGE)[0]}.json.gz")
        show(home, "one more")
        show(home, "other pairs", "pair.ratio=0.5", "pair.relations=all")
        return
    for times in (1, 10, 100) if what == "trackers" else (10, 100, 400):
        if what == "trackers":
            write_hours(
                home / "hours", lines_of(events_of_samples(times)), hours_between(RANGE)[:SAMPLE_HOURS]
            )
        else:
            fill(home, hours, times, apart=True)
        show(home, f"{times:,}")
        for folder in ("hours", "work", "out"):
            shutil.rmtree(home / folder)


def show(home: Path, name: str, *settings: str) -> None:
    """Run in a process of its own and print a row."""
    words = [sys.executable, __file__, "measure", str(home), *(f"--set={one}" for one in settings)]
    environment = {**os.environ, "POLARS_MAX_THREADS": "1"}
    told = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, env=environment).stdout)
    size = sum(path.stat().st_size for path in (home / "work").rglob("*") if path.is_file())
    rows = sum(pl.scan_parquet(path).select(pl.len()).collect().item() for path in home.glob("work/hours/*"))
    raw = sum(int.from_bytes(path.read_bytes()[-4:], "little") for path in (home / "hours").glob("*.gz"))
    seconds = " | ".join(f"{told[stage]:.1f}" for stage in (*_STAGES, "driver"))
    counts = f"{told['judged']:,} | {told['mib']:.0f} | {told['events']:,} | {rows:,}"
    print(f"| {name} | {seconds} | {counts} | {raw / 1e6:,.0f} | {size / 1e6:.0f} |", flush=True)


def measure(home: Path, settings: list[str]) -> dict[str, Any]:
    """CPU seconds by stage with one worker, this process; splits, rows and audit are the driver's."""
    seconds, last = dict.fromkeys((*_STAGES, "driver"), 0.0), time.process_time()

    def listen(progress: Progress) -> None:
        nonlocal last
        now = time.process_time()
        # The first event of a stage follows its first task; before negatives the driver has most of the work.
        before_negatives = progress.stage == _STAGES[-1] and not (progress.done or progress.ended)
        seconds["driver" if before_negatives else progress.stage] += now - last
        last = now

    built = gis_builder.archive(
        *(RANGE, home / "hours", home / "out"),
        work=home / "work",
        workers=1,
        settings=settings,
        fresh=True,
        progress=listen,
    )
    seconds["driver"] += time.process_time() - last
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    events = sum(month["issue_events"] for month in built.months.values())
    return seconds | {"judged": built.judged_anew, "mib": peak, "events": events}


def fill(home: Path, hours: list[Path], count: int, *, apart: bool = False) -> None:
    """Hours of the archive, again and again, and those of the sample trackers."""
    folder = home / "hours"
    folder.mkdir()
    names = hours_between(RANGE)[: count + SAMPLE_HOURS]
    for place, name in enumerate(names[:count]):
        data = hours[place % len(hours)].read_bytes()
        (folder / f"{name}.json.gz").write_bytes(of_its_own(data, place) if apart else data)
    write_hours(folder, lines_of(events_of_samples()), names[count:])


def of_its_own(data: bytes, place: int) -> bytes:
    """An hour whose repositories no other hour has."""

    def renamed(match: re.Match[bytes]) -> bytes:
        return b'"repo":{"id":%d,"name":"%s-%d"' % (int(match[1]) + (place << 32), match[2][:80], place)

    return gzip.compress(_REPO.sub(renamed, gzip.decompress(data)), 1, mtime=0)


def events_of_samples(copies: int = 1) -> list[dict[str, Any]]:
    """The events of the sample trackers, and of copies with other names."""
    with tempfile.TemporaryDirectory() as work:
        gis_builder.import_tracker(SOURCES, Path(work, "gis.work"), progress=False)
        with Store.open(Path(work, "gis.work", "store.sqlite")) as store:
            threads = [list(store.threads(row.full_name)) for row in store.repos()]
    found = []
    for copy in range(copies):
        for place, own in enumerate(threads):
            for event in events_of(100 + place + 1000 * copy, own):
                name = event["repo"]["name"] + (f"-{copy}" if copy else "")
                found.append(event | {"repo": event["repo"] | {"name": name}})
    return found


def digest_of(folder: Path) -> str:
    """One digest of all files of a folder, with their names."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
