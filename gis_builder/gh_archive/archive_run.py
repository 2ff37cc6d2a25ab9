"""Makes a dataset from hours of GH Archive: runs the maps and the steps between them."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from gis_builder.crawl_progress import RunDisplay
from gis_builder.detection.detector import CODE, code_digest
from gis_builder.gh_archive import settle
from gis_builder.gh_archive.archive_rows import changed_keys, read_tallies, sort_month
from gis_builder.gh_archive.extract import extract_hour
from gis_builder.gh_archive.hours import hour_files
from gis_builder.gh_archive.judge_threads import judge_bucket, pack, unpack
from gis_builder.gh_archive.runners import (
    FileTask,
    Runner,
    complete,
    digest_of,
    file_named,
    is_done,
    memory_for,
    superseded,
)
from gis_builder.gh_archive.write import by_month, write_archive
from gis_builder.pairing.build_pairs import check_missing, check_out, checked
from gis_builder.pairing.pair_folder import drop_counts
from gis_builder.pairing.pairing_results import DROPPED_FILE, ArchiveBuilt, HoursRead
from gis_builder.settings import ArchiveSettings
from gis_builder.store.store import working_folder
from pairkit import __version__
from pairkit.base.errors import DataError
from pairkit.base.system.files import write_bytes
from pairkit.base.system.folders import check_apart
from pairkit.base.system.records_on_disk import scratch_file
from pairkit.dataset.parquet import write_parquet

# The code of each map, which is hashed into the names of its files.
SORT = ("store/issue_records.py", "gh_archive/archive_rows.py")
EXTRACT = ("store/decoding.py", "trackers/rest_records.py", "gh_archive/extract.py", *SORT)
JUDGE = (
    *CODE,
    *("crawling/crawl.py", "crawling/github/negative_sample.py", "pairing"),
    *(f"gh_archive/{name}.py" for name in ("archive_rows", "judge_threads")),
)
DRAW = (
    *("pairing", "settings/negative_strategies.py", "store/issue_records.py"),
    *(f"gh_archive/{name}.py" for name in ("judge_threads", "settle")),
)
# Settings that the second map does not depend on.
_LATER: dict[str, bool | set[str]] = {"split": True, "pair": True, "limits": {"per_repo_max"}}

_MIN_BUCKETS = 16
_BUCKET_BYTES = 96 << 20  # rows of a new bucket, which may grow to twice this size
_SORT_BYTES = 96 << 20  # rows that one task sorts
_STALE_S = 3600.0  # age of half-written files that were left by killed processes


@dataclass(frozen=True, slots=True)
class Job:
    """The inputs of a run."""

    hours: Sequence[str]
    source: Path
    work: Path
    settings: ArchiveSettings
    excluded: Sequence[str] = ()

    def record(self, rows: Mapping[str, Path]) -> dict[str, Any]:
        """Everything that determines the content of the dataset."""
        contents = [[hour, path.name.split(".")[2]] for hour, path in rows.items()]
        return {
            **self.settings.model_dump(mode="json"),
            "hours": f"{self.hours[0]}..{self.hours[-1]}",
            "hours_sha256": digest_of(contents),
            "excluded_sha256": digest_of(list(self.excluded)),
        }


def read_hours(job: Job, runner: Runner, show: RunDisplay) -> HoursRead:
    """Run the first map only; the files of these hours are not needed later."""
    with working_folder(job.work):
        run = _ArchiveRun(job, runner, show)
        run.read()
        return HoursRead(job.work, by_month(job.hours, read_tallies(run.hours.values())))


def build_archive(
    job: Job, out: Path, runner: Runner, show: RunDisplay, *, fresh: bool
) -> ArchiveBuilt:
    """Make the dataset; the same call continues an interrupted run."""
    start = time.monotonic()
    check_apart(out, job.work)
    with working_folder(job.work):
        run = _ArchiveRun(job, runner, show)
        record = job.record(run.hours)
        check_out(out, (), record, fresh=fresh)
        statistics = run.dataset(out, record)
        run.clean()
    show.say("auditing")
    return ArchiveBuilt(out, job.work, statistics, checked(out), time.monotonic() - start)


class _ArchiveRun:
    """A run of all maps; `hours` has the file of rows of each hour that has rows or a file in the source."""

    def __init__(self, job: Job, runner: Runner, show: RunDisplay) -> None:
        self._job = job
        self._runner = runner
        self._show = show
        self._settings = job.settings
        self._work = job.work.resolve()
        self._used: list[Path] = []
        self._files = hour_files(job.source, job.hours)
        self.hours = self._rows_by_hour()
        if not self.hours:
            raise DataError(
                f"no files of these hours, such as {job.hours[0]}.json.gz, and no rows; check hours",
                path=job.source,
            )
        self._names = [path.name for path in self.hours.values()]

    def _rows_by_hour(self) -> dict[str, Path]:
        folder = self._work / "hours"
        code = _code(EXTRACT)
        read = sorted(folder.glob("[!.]*.parquet"), key=lambda path: path.stat().st_mtime)
        rows = {_stem(path): path for path in read}  # the newest
        rows |= {
            hour: file_named(folder, hour, "parquet", code, identity)
            for hour, (_, identity) in self._files.items()
        }
        return {hour: rows[hour] for hour in self._job.hours if hour in rows}

    def read(self) -> None:
        """Run the first map, on the files of the source; rows of deleted files are already there."""
        first = next((path for path, _ in self._files.values()), None)
        self._runner.check_shared(self._work, first)
        tasks = [
            FileTask((self.hours[hour],), extract_hour, (path, hour))
            for hour, (path, _) in self._files.items()
        ]
        self._run("reading hours", tasks)
        self._used += self.hours.values()
        current = file_named(Path(), "", "", _code(EXTRACT)).name.split(".")[1]
        if older := [
            hour for hour, path in self.hours.items() if path.name.split(".")[1] != current
        ]:
            self._show.say(
                f"{len(older):,} hours without files, such as {older[0]}: read by another version"
            )

    def dataset(self, out: Path, record: dict[str, Any]) -> dict[str, Any]:
        """Make the dataset and return its statistics."""
        self.read()
        rows = self._sort()
        judged = self._judge(rows)
        self._show.say("making pairs")
        with scratch_file(self._work) as texts, scratch_file(self._work) as pairs:
            combined = settle.combine_buckets(judged, texts, pairs, self._settings)
            drawn = self._draw(judged, combined)
            dropped = pl.concat(combined.dropped).sort("label", "issue1", "issue2", "reason")
            write_parquet(self._work / DROPPED_FILE, dropped, private=True)
            return write_archive(
                *(out, combined, drawn, read_tallies(rows[0]), self._job.hours),
                statistics={
                    "verdicts": combined.verdicts_by_outcome(),
                    "clusters": combined.clusters,
                    "missing_negatives": check_missing(drawn.missing, self._settings.split),
                    "negatives_with_a_pool_issue": drawn.with_single,
                    "archive_repositories": dict(sorted(combined.counts.items())),
                    **drop_counts(combined.reasons, combined.removed),
                },
                run={"made_by": f"gis (aoe-toolkit {__version__})", "settings": record},
                detail=self._work / "repositories.parquet",
            )

    def _sort(self) -> list[list[Path]]:
        """Sort the rows of months into buckets; returns the files of each bucket, one per month."""
        months = defaultdict(list)
        for hour, path in self.hours.items():
            months[hour[:7]].append(path)
        sizes = {
            month: sum(path.stat().st_size for path in files) for month, files in months.items()
        }
        buckets = self._buckets(sum(sizes.values()))
        folders = [
            self._work / f"rows-{buckets}" / f"bucket={bucket:04d}" for bucket in range(buckets)
        ]
        files_of = []
        tasks = []
        for month, files in months.items():
            names = [path.name for path in files]
            outs = [file_named(folder, month, "parquet", _code(SORT), names) for folder in folders]
            files_of.append(outs)
            parts = _power_of_two(sizes[month] / _SORT_BYTES, minimum=1, maximum=buckets)
            for part in range(parts):
                first = buckets * part // parts
                last = buckets * (part + 1) // parts
                arguments = (tuple(files), first, last, buckets)
                tasks.append(
                    FileTask(
                        tuple(outs[first:last]), sort_month, arguments, memory_for(files, parts)
                    )
                )
        self._run("sorting months", tasks)
        return [list(files) for files in zip(*files_of, strict=True)]

    def _buckets(self, size: int) -> int:
        """The number of buckets for rows of this size: that of an earlier run, if it suffices."""
        known = sorted(int(path.name.partition("-")[2]) for path in self._work.glob("rows-*"))
        sufficient = (count for count in known if size <= 2 * _BUCKET_BYTES * count)
        return next(sufficient, _power_of_two(size / _BUCKET_BYTES, minimum=_MIN_BUCKETS))

    def _judge(self, rows: Sequence[Sequence[Path]]) -> list[Path]:
        """Run the second map; returns the file of each bucket."""
        settings = self._settings.model_dump_json(exclude=_LATER)
        excluded = tuple(self._job.excluded)
        code = [*_code(JUDGE), settings, excluded]
        names = file_named(self._work / "judged", "hours", "zlib", code, self._names)
        outs = [
            _with_stem(names, f"{bucket:04d}-of-{len(rows):04d}") for bucket in range(len(rows))
        ]
        earlier: Sequence[tuple[Path, Path] | None] = [None] * len(outs)
        if not all(out.exists() for out in outs):
            earlier = self._judged_earlier(names, outs)
        self._run(
            "detecting duplicates",
            [
                FileTask(
                    (out,),
                    judge_bucket,
                    (tuple(files), settings, excluded, before),
                    memory_for(files),
                )
                for out, files, before in zip(outs, rows, earlier, strict=True)
            ],
        )
        self._write(names, self._names)
        return outs

    def _judged_earlier(self, names: Path, outs: Sequence[Path]) -> list[tuple[Path, Path] | None]:
        """For each bucket, its verdicts over the most similar hours, and the keys that changed since."""
        folder = self._work / "hours"
        names_now = set(self._names)
        changes = {
            path: sorted(names_now.symmetric_difference(unpack(path, list[str])))
            for path in sorted(
                names.parent.glob(f"{names.name.rpartition('.')[0].rpartition('.')[0]}.*")
            )
        }
        best = min(changes, key=lambda path: len(changes[path]), default=names)
        hours = [folder / name for name in changes.get(best, ())]
        if not 0 < len(hours) <= len(names_now) // 2 or not all(hour.exists() for hour in hours):
            return [None] * len(outs)
        keys = file_named(names.parent, "changed", "parquet", _code(SORT), changes[best])
        complete(FileTask((keys,), changed_keys, (hours,)))
        judged = [_with_stem(best, _stem(out)) for out in outs]
        return [(path, keys) if path.exists() else None for path in judged]

    def _draw(
        self, judged: Sequence[Path], combined: settle.CombinedBuckets
    ) -> settle.DrawnNegatives:
        """Assign the splits and run the third map, which draws the negatives of each bucket."""
        similar_at = self._settings.pair.similar_at
        code = _code(DRAW)
        names = [path.name for path in judged]
        groups = file_named(
            self._work / "near-duplicates", "groups", "zlib", code, names, similar_at
        )
        self._used.append(groups)
        assignment = settle.assign_splits(
            combined, settle.near_duplicate_groups(groups, combined.texts, similar_at)
        )
        settings = self._settings.model_dump_json(include={"pair", "seed"})
        tasks = []
        parts = settle.draw_inputs(combined, assignment)
        for path, bucket, part in zip(judged, combined.buckets, parts, strict=True):
            name = digest_of(pack(part))
            draw_input = self._write(
                file_named(self._work / "draw-inputs", _stem(path), "zlib", "", name), part
            )
            inputs = (bucket.digest, draw_input.name)
            out = file_named(
                self._work / "negatives", _stem(path), "zlib", [*code, settings], *inputs
            )
            arguments = (path, draw_input, settings)
            tasks.append(FileTask((out,), settle.draw_negatives, arguments, memory_for([path])))
        self._run("drawing negatives", tasks)
        return settle.add_negatives(combined, assignment, (task.outs[0] for task in tasks))

    def _write(self, path: Path, value: object) -> Path:
        """Write a file, unless it is there."""
        if not path.exists():
            write_bytes(path, pack(value), private=True)
        self._used.append(path)
        return path

    def _run(self, name: str, tasks: Sequence[FileTask]) -> None:
        """Run the tasks that are not done."""
        remaining = [task for task in tasks if not is_done(task)]
        for _ in self._show.counted(name, self._runner.run(remaining), len(remaining)):
            pass
        self._used += [out for task in tasks for out in task.outs]

    def clean(self) -> None:
        """Remove superseded files, and half-written ones of killed processes."""
        removed = 0
        for path in list(superseded(self._work, set(self._used))):
            removed += path.stat().st_size
            path.unlink()
        for folder in [*self._work.glob("rows-*/*"), *self._work.glob("rows-*")]:
            with suppress(OSError):
                folder.rmdir()
        if removed:
            self._show.say(
                f"removed superseded files of {removed / (1 << 20):,.1f} MiB from {self._job.work}"
            )
        for path in (
            path for folder in {path.parent for path in self._used} for path in folder.glob(".*")
        ):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < time.time() - _STALE_S:
                    path.unlink()


def _code(parts: Sequence[str]) -> list[str]:
    return [__version__, code_digest(*parts)]


def _stem(path: Path) -> str:
    return path.name.partition(".")[0]


def _with_stem(path: Path, stem: str) -> Path:
    return path.with_name(f"{stem}.{path.name.partition('.')[2]}")


def _power_of_two(size: float, *, minimum: int, maximum: int = 1 << 30) -> int:
    """Round up to a power of two, within bounds that are powers of two."""
    count = minimum
    while count < min(size, maximum):
        count *= 2
    return count
