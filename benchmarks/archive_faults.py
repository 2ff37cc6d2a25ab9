"""Same bytes from `gis archive`, whoever is killed: `python benchmarks/archive_faults.py FOLDER`.

FOLDER holds hours of GH Archive. They are copied under other names to `--hours` hours, and the sample
trackers are added as hours of their own, so that there are pairs. Runs with 1, 2 and 8 workers and with 16,
64 and 1,024 partitions have to give the dataset of the first, byte for byte; so do a run whose driver, and
one whose workers, are killed (SIGKILL) `--kills` times, some seconds apart. CPU seconds are those of the
command and its workers, but not of workers whose driver was killed. The exit code is 1 where a byte
differs.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gis_builder
from gis_builder._archive.hours import hours_between
from gis_builder._store import Store
from tests.gis_builder.archive_world import SOURCES, events_of, lines_of, write_hours

RANGE = "2015-02-01..2016-12-31"
SAMPLE_HOURS = 6
_PAUSE_S = 2.0  # between kills


def main() -> int:
    """Run all of it and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hours", type=int, default=500)
    parser.add_argument("--kills", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        fill(home / "hours", sorted(given.folder.glob("*.json.gz")), given.hours)
        print("| run | CPU s | wall s | kills | bytes |\n|---|---|---|---|---|", flush=True)
        expected = show(home, "2 workers, 64 partitions", "a", [], None)
        same = True
        for name, work, flags in (
            ("16 partitions", "a", ["--partitions", "16"]),
            ("1,024 partitions", "a", ["--partitions", "1024"]),
            ("8 workers", "b", ["--workers", "8"]),
            ("1 worker", "c", ["--workers", "1"]),
        ):
            same &= show(home, name, work, flags, expected) == expected
        same &= show(home, "driver killed", "d", [], expected, given.kills, workers=False) == expected
        same &= show(home, "workers killed", "e", [], expected, given.kills, workers=True) == expected
    return 0 if same else 1


def linked(hour: Path, out: Path, place: int) -> None:
    """An hour under another name, without a copy where that is possible."""
    del place
    try:
        out.hardlink_to(hour)
    except OSError:
        shutil.copy(hour, out)


def fill(
    folder: Path, hours: list[Path], count: int, each: Callable[[Path, Path, int], None] = linked
) -> None:
    """The hours of the archive: those that there are, again and again, and those of the sample trackers."""
    folder.mkdir()
    names = hours_between(RANGE)[: count + SAMPLE_HOURS]
    for place, name in enumerate(names[:count]):
        each(hours[place % len(hours)], folder / f"{name}.json.gz", place)
    write_hours(folder, lines_of(events_of_samples()), names[count:])


def events_of_samples(copies: int = 1) -> list[dict[str, Any]]:
    """The events of the sample trackers, and of further ones that say the same."""
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


def show(
    home: Path,
    name: str,
    work: str,
    flags: list[str],
    expected: str | None,
    kills: int = 0,
    *,
    workers: bool = False,
) -> str:
    """Run once, with kills, and print a row."""
    before, start = os.times(), time.monotonic()
    out = home / "out"
    shutil.rmtree(out, ignore_errors=True)
    command = [
        *(sys.executable, "-m", "gis_builder", "archive", "--hours", RANGE, "--source", str(home / "hours")),
        *("--out", str(out), "--work", str(home / work), "--workers", "2", "-q", *flags),
    ]
    killed = run(command, kills, workers=workers)
    after, seconds = os.times(), time.monotonic() - start
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    digest = digest_of(out)
    same = "the first" if expected is None else "same" if digest == expected else "DIFFERENT"
    print(f"| {name} | {cpu:.0f} | {seconds:.0f} | {killed} | {same} |", flush=True)
    return digest


def run(command: list[str], kills: int, *, workers: bool) -> int:
    """Run a command to its end, killing it or its workers so often; how often that was done."""
    killed = 0
    while True:
        driver = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while driver.poll() is None and killed < kills:
            time.sleep(_PAUSE_S)
            victims = list(children_of(driver.pid)) if workers else [driver.pid]
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


def digest_of(folder: Path) -> str:
    """One digest of all files of a folder, with their names."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
