"""What `gis archive`'s driver takes: `python benchmarks/archive_driver.py [copies …]`.

The sample trackers are judged once. Their partitions are then written so many times over, each copy under
names of its own and with words of its own, so that no two copies are near-identical. From there on the driver
does its part (names, texts, near-identical texts, splits, rows, audit) in a process of its own for each
measurement; negatives are drawn by two workers, whose seconds and memory are not counted.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import msgspec
from archive_faults import RANGE, SAMPLE_HOURS, events_of_samples
from machine import processor

from gis_builder._archive.engine import Local
from gis_builder._archive.hours import hours_between
from gis_builder._archive.job import Job
from gis_builder._archive.judged import Judged, JudgedRepo, pack, unpack
from gis_builder._archive.plan import Plan
from gis_builder._archive.run import assembled
from gis_builder._archive.source import Folder
from gis_builder._archive.tasks import Task
from gis_builder._build import checked
from gis_builder._progress import SILENT
from gis_builder._settings import ArchiveSettings
from tests.gis_builder.archive_world import lines_of, write_hours

COPIES = (100, 400, 1200)
_A_PARTITION = 4  # copies
_WORD = re.compile(r"\w{3,}")


def main() -> None:
    """Print a table."""
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(Path(sys.argv[2]))))
        return
    print(processor())
    print(
        "| copies | duplicates in pairs | rows | CPU s | peak MiB | bytes a pair |\n|---|---|---|---|---|---|"
    )
    before: tuple[int, float] | None = None
    with tempfile.TemporaryDirectory() as folder:
        repos = judged_samples(Path(folder))
        for copies in map(int, sys.argv[1:] or COPIES):
            home = Path(folder, str(copies))
            write_partitions(home / "judged", repos, copies)
            command = [sys.executable, __file__, "--measure", str(home)]
            told = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
            slope = ""
            if before is not None:
                slope = f"{(told['mib'] - before[1]) * 2**20 / (told['positives'] - before[0]):,.0f}"
            before = told["positives"], told["mib"]
            print(
                f"| {copies:,} | {told['positives']:,} | {told['rows']:,} | {told['seconds']:.1f} |"
                f" {told['mib']:.0f} | {slope} |",
                flush=True,
            )


def judged_samples(home: Path) -> list[JudgedRepo]:
    """The sample trackers as a partition has them."""
    import gis_builder

    write_hours(home / "hours", lines_of(events_of_samples()), hours_between(RANGE)[:SAMPLE_HOURS])
    gis_builder.archive(
        RANGE, home / "hours", home / "out", work=home / "work", partitions=1, workers=1, progress=False
    )
    return [repo for path in (home / "work" / "judged").iterdir() for repo in unpack(path, Judged).repos]


def write_partitions(folder: Path, repos: list[JudgedRepo], copies: int) -> None:
    """The same so many times, dealt to partitions."""
    folder.mkdir(parents=True)
    packed = [msgspec.json.encode(repo).decode() for repo in repos]
    partitions = -(-copies // _A_PARTITION)
    for place in range(partitions):
        made = []
        for copy in range(place, copies, partitions):
            for repo, text in zip(repos, packed, strict=True):
                named = text.replace(json.dumps(repo.name)[1:-1], f"{repo.name}-{copy}")
                other = msgspec.json.decode(named, type=JudgedRepo)
                other.repo_id += copy << 32
                other.texts = [
                    replace(one, text=_WORD.sub(rf"\g<0>{copy:x}", one.text)) for one in other.texts
                ]
                made.append(other)
        (folder / f"{place:05d}-of-{partitions:05d}.zlib").write_bytes(pack(Judged(made, {}, {})))


def measure(home: Path) -> dict[str, float]:
    """Seconds of processor time and MiB at most, of this process."""
    job = Job(hours_between(RANGE), Folder(home), home / "work", home / "work", ArchiveSettings())
    judge = [Task(path, pack, ()) for path in sorted((home / "judged").iterdir())]
    begun = time.process_time()
    with Local(2) as engine:
        assembled(job, Plan([], [], judge), home / "out", job.record(()), engine, SILENT)
    report = checked(home / "out")
    seconds = time.process_time() - begun
    statistics = json.loads((home / "out" / "statistics.json").read_text())
    return {
        "positives": sum(split["positive"] for split in statistics["splits"].values()),
        "rows": sum(split.pairs for split in report.splits.values()),
        "seconds": seconds,
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


if __name__ == "__main__":
    main()
