"""`gis archive` on Ray beside `local`, and how it grows: `python benchmarks/archive_engines.py WHAT FOLDER`.

FOLDER holds hours of GH Archive, which are given other names until there are `--hours` of them; the sample
trackers are hours of their own (see `archive_faults.py`). Ray is a cluster of two raylets on this machine, a
core each. CPU seconds are those of all processes that a run began, Ray's own included, dead or alive.

`cost` runs the whole pipeline on both engines: CPU seconds and peaks of memory. The dataset has to be the
same, byte for byte. `kills` ends a worker, the driver, and on Ray a raylet, `--kills` times each (SIGKILL)
while they are at work, and counts tasks that had to be begun again, the longest time in which no task began
or ended, and bytes that differ. `growth` gives every hour repositories of its own, and runs 10, 100 and 1,000
of them on `local`; `trackers` runs the sample trackers 1, 10 and 100 times over: they are full of
duplicates, so that most of the work is what comes after reading. `workers` runs the whole pipeline on
`local` with one worker and with two, in turns: how much sooner two cores are done. The exit code is 1 where
a byte differs.
"""

from __future__ import annotations

import argparse
import ctypes
import gzip
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import polars as pl
from archive_faults import RANGE, SAMPLE_HOURS, digest_of, events_of_samples, fill
from machine import processor

from gis_builder._archive.hours import hours_between
from tests.gis_builder.archive_world import lines_of, write_hours

_SUBREAPER = 36  # of prctl: orphans of this process's children become its own, and their CPU seconds, too
_TICKS = os.sysconf("SC_CLK_TCK")
_SAMPLE_S = 0.25
_PAUSE_S = {"worker": 2.0, "driver": 1.0, "raylet": 5.0}  # between kills, at least
_RAYS = ("gcs_server", "raylet", "agent", "log_monitor", "monitor")
_REPO = re.compile(rb'"repo":\{"id":(\d+),"name":"([^"]+)"')


def main() -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("cost", "kills", "growth", "trackers", "workers"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hours", type=int, default=500)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--engines", default="local,ray")
    parser.add_argument("--victims", default="worker,driver,raylet")
    given = parser.parse_args()
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    hours = sorted(given.folder.glob("*.json.gz"))
    print(processor(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        if given.what in ("growth", "trackers"):
            growth(home, hours if given.what == "growth" else None)
            return 0
        fill(home / "hours", hours, given.hours)
        run = {"cost": cost, "kills": kills, "workers": workers}[given.what]
        return 0 if run(home, given) else 1


@dataclass
class Used:
    """What a run took."""

    wall_s: float = 0.0
    begun_again: int = 0
    pause_s: float = 0.0
    kills: int = 0
    digest: str = ""


class Watch:
    """CPU seconds and peaks of memory of all processes that descend from this one, while it is entered.

    They are read again and again, since Ray's raylet leaves nothing of a worker that has ended.
    """

    def __init__(self) -> None:
        self._seen: dict[int, tuple[str, float, int]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(_SAMPLE_S):
            for pid, words in family().items():
                kind, seconds, peak = self._seen.get(pid, ("", 0.0, 0))
                told = told_of(pid)
                if told is not None:
                    self._seen[pid] = kind_of(words) or kind, max(seconds, told[0]), max(peak, told[1])

    def cpu_s(self) -> Counter[str]:
        """By kind of process."""
        found: Counter[str] = Counter()
        for kind, seconds, _ in self._seen.values():
            found[kind or "other"] += seconds
        return found

    def peak_mib(self, kind: str) -> int:
        """Of the largest process of a kind."""
        return max((peak for own, _, peak in self._seen.values() if own == kind), default=0)


def kind_of(words: str) -> str:
    """What a process is, by its command line."""
    command = words.partition(" --")[0]
    if "spawn_main" in words or words.startswith("ray::") or "default_worker.py" in command:
        return "worker"
    if "archive_noted" in words:
        return "driver"
    return next((name for name in _RAYS if name in command), "")


def cost(home: Path, given: argparse.Namespace) -> bool:
    """Both engines, one after the other."""
    columns = (
        "CPU s of its beginning | CPU s | in tasks | of all | driver MiB | worker MiB | wall s | dataset"
    )
    print(f"| engine | {columns} |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    digests = []
    for engine in given.engines.split(","):
        with Watch() as watch, engine_of(engine) as cluster:
            time.sleep(2 * _SAMPLE_S)
            begun = watch.cpu_s()
            used = run_once(home, engine, cluster, None, 0)
        digests.append(used.digest)
        shares = watch.cpu_s() - begun
        told = ", ".join(f"{name} {seconds:.1f}" for name, seconds in shares.most_common())
        print(
            f"| {engine} | {begun.total():.1f} | {shares.total():.1f} |"
            f" {by_stage(home / 'log').total():.1f} | {told} | {watch.peak_mib('driver')} |"
            f" {watch.peak_mib('worker')} | {used.wall_s:.0f} | {used.digest[:8]} |",
            flush=True,
        )
    return len(set(digests)) == 1


def kills(home: Path, given: argparse.Namespace) -> bool:
    """Each kind of process, on each engine."""
    with engine_of("local") as nothing:
        expected = run_once(home, "local", nothing, None, 0).digest
    print("| engine | killed | times | tasks begun again | longest pause, s | dataset |")
    print("|---|---|---|---|---|---|", flush=True)
    same = True
    for engine in given.engines.split(","):
        for victim in given.victims.split(","):
            if (engine, victim) == ("local", "raylet"):
                continue
            total, digests = Used(), set()
            while total.kills < given.kills:
                with engine_of(engine) as cluster:
                    used = run_once(home, engine, cluster, victim, given.kills - total.kills)
                total.kills += used.kills
                total.begun_again += used.begun_again
                total.pause_s = max(total.pause_s, used.pause_s)
                digests.add(used.digest)
            same &= digests == {expected}
            told = "same" if digests == {expected} else "DIFFERENT"
            counts = f"{total.kills} | {total.begun_again} | {total.pause_s:.0f}"
            print(f"| {engine} | {victim} | {counts} | {told} |", flush=True)
    return same


def workers(home: Path, given: argparse.Namespace) -> bool:
    """One worker beside two, in turns."""
    print("| workers | wall s | CPU s | as soon as one | dataset |\n|---|---|---|---|---|", flush=True)
    digests = []
    for _ in range(given.rounds):
        alone = 0.0
        for count in (1, 2):
            with Watch() as watch:
                used = run_once(home, "local", None, None, 0, workers=count)
            digests.append(used.digest)
            alone = alone or used.wall_s
            print(
                f"| {count} | {used.wall_s:.1f} | {watch.cpu_s().total():.1f} | {alone / used.wall_s:.2f} |"
                f" {used.digest[:8]} |",
                flush=True,
            )
    return len(set(digests)) == 1


def growth(home: Path, hours: list[Path] | None) -> None:
    """10, 100 and 1,000 hours on this machine, or the trackers so often."""
    print("| hours, or times | CPU s | each | of it | driver MiB | worker MiB | rows | raw MB | work MB |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for count in (1, 10, 100) if hours is None else (10, 100, 1000):
        if hours is None:
            names = hours_between(RANGE)[:SAMPLE_HOURS]
            write_hours(home / "hours", lines_of(events_of_samples(count)), names)
        else:
            fill(home / "hours", hours, count, each=_apart)
        with Watch() as watch:
            run_once(home, "local", None, None, 0, keep=True)
        cpu = watch.cpu_s().total()
        size = sum(path.stat().st_size for path in (home / "work").rglob("*") if path.is_file())
        rows = sum(
            pl.scan_parquet(path).select(pl.len()).collect().item() for path in home.glob("work/hours/*")
        )
        raw = sum(raw_bytes(path) for path in (home / "hours").glob("*.gz"))
        stages = ", ".join(f"{name} {seconds:.1f}" for name, seconds in by_stage(home / "log").items())
        peaks = f"{watch.peak_mib('driver')} | {watch.peak_mib('worker')}"
        print(
            f"| {count:,} | {cpu:.1f} | {cpu / count:.3f} | {stages} | {peaks} | {rows:,} |"
            f" {raw / 1e6:,.0f} | {size / 1e6:.0f} |",
            flush=True,
        )
        shutil.rmtree(home / "work")
        shutil.rmtree(home / "hours")


def _apart(hour: Path, out: Path, place: int) -> None:
    """An hour whose repositories no other hour has."""

    def other(found: re.Match[bytes]) -> bytes:
        return b'"repo":{"id":%d,"name":"%b-%d"' % (int(found[1]) + (place << 32), found[2], place)

    out.write_bytes(gzip.compress(_REPO.sub(other, gzip.decompress(hour.read_bytes())), 1, mtime=0))


def run_once(
    home: Path,
    engine: str,
    cluster: Any,
    victim: str | None,
    most: int,
    *,
    keep: bool = False,
    workers: int = 2,
) -> Used:
    """Run to the end, with kills."""
    out, work, log = home / "out", home / "work", home / "log"
    for folder in (out, work):
        shutil.rmtree(folder, ignore_errors=True)
    log.unlink(missing_ok=True)
    where = (
        ["--workers", str(workers)]
        if engine == "local"
        else ["--engine", "ray", "--address", cluster.address]
    )
    command = [
        *(sys.executable, str(Path(__file__).with_name("archive_noted.py")), str(log), "--hours", RANGE),
        *("--source", str(home / "hours"), "--out", str(out), "--work", str(work), "-q", *where),
    ]
    used, start = Used(), time.monotonic()
    while True:
        driver = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        noted = size_of(log)
        while driver.poll() is None and used.kills < most and victim is not None:
            time.sleep(_PAUSE_S[victim])
            if driver.poll() is not None or size_of(log) == noted:  # it does nothing yet
                continue
            if kill(victim, driver, cluster, used.kills):
                used.kills += 1
                noted = size_of(log)
        code = driver.wait()
        if code == 0:
            break
        if code != -signal.SIGKILL:
            raise SystemExit(f"the run ended with {code}")
    used.wall_s = time.monotonic() - start
    begun = Counter(line.split()[2] for line in log.read_text().splitlines() if line.split()[1] == "begin")
    used.begun_again = begun.total() - len(begun)
    used.pause_s = longest_pause(log)
    used.digest = digest_of(out)
    if not keep:
        shutil.rmtree(work)
    return used


def raw_bytes(hour: Path) -> int:
    """What an hour unpacks to, by its last four bytes: below 4 GiB."""
    with hour.open("rb") as file:
        file.seek(-4, os.SEEK_END)
        return int.from_bytes(file.read(), "little")


def by_stage(log: Path) -> Counter[str]:
    """CPU seconds of the tasks of each stage, where none was killed."""
    found: Counter[str] = Counter()
    for line in log.read_text().splitlines():
        _, what, name, seconds = line.split()
        found[name.partition("/")[0]] += float(seconds) * (1 if what == "end" else -1)
    return found


def longest_pause(log: Path) -> float:
    """Seconds between two notes, at most; the driver's own work between stages is among them."""
    times = [float(line.split()[0]) for line in log.read_text().splitlines()]
    return max((after - before for before, after in pairwise(times)), default=0.0)


def size_of(log: Path) -> int:
    """Bytes of the notes so far."""
    return log.stat().st_size if log.exists() else 0


def kill(victim: str, driver: subprocess.Popen[bytes], cluster: Any, turn: int) -> bool:
    """Kill one of a kind; whether there was one."""
    if victim == "driver":
        driver.kill()
        return True
    if victim == "raylet":
        second = next(node for node in cluster.worker_nodes)
        second.all_processes["raylet"][0].process.kill()
        cluster.remove_node(second, allow_graceful=False)
        cluster.add_node(num_cpus=1)
        return True
    mark = "spawn_main" if cluster is None else "ray::_do"
    workers = sorted(pid for pid, words in family().items() if mark in words)
    if workers:
        os.kill(workers[turn % len(workers)], signal.SIGKILL)
    return bool(workers)


@contextmanager
def engine_of(name: str) -> Iterator[Any]:
    """A cluster of two raylets, or None for `local`; all of its processes have ended afterwards."""
    if name == "local":
        yield None
        return
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        yield cluster
    finally:
        cluster.shutdown()
        reap()


def family() -> dict[int, str]:
    """All processes that descend from this one, with their command lines."""
    children, words = defaultdict(list), {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            words[int(process.name)] = (
                (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
        except (OSError, IndexError):
            continue
        children[parent].append(int(process.name))
    found, left = {}, [os.getpid()]
    while left:
        own = children[left.pop()]
        found |= {pid: words.get(pid, "") for pid in own}
        left += own
    return found


def told_of(pid: int) -> tuple[float, int] | None:
    """CPU seconds of a process, without its children's, and the most MiB that it had."""
    try:
        numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        status = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    peak = next((int(line.split()[1]) >> 10 for line in status if line.startswith("VmHWM")), 0)
    return (int(numbers[11]) + int(numbers[12])) / _TICKS, peak


def reap() -> None:
    """Wait for orphans, too."""
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        return


if __name__ == "__main__":
    sys.exit(main())
