"""Makes a dataset from hours of GH Archive: runs the maps and the steps between them."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from gis_builder.crawl_progress import RunDisplay
from gis_builder.gh_archive import settle
from gis_builder.gh_archive.archive_rows import changed_keys, read_tallies, sort_month
from gis_builder.gh_archive.combined_buckets import (
    CombinedBuckets,
    combine_buckets,
    records_on_disk,
)
from gis_builder.gh_archive.extract import extract_hour, hour_files
from gis_builder.gh_archive.judge_threads import judge_bucket, pack, unpack
from gis_builder.gh_archive.runners import (
    FileTask,
    Runner,
    code_hash,
    complete,
    digest_of,
    file_named,
    is_done,
    memory_for,
    stem_of,
    superseded,
)
from gis_builder.gh_archive.write import by_month, write_archive
from gis_builder.pairing.build_pairs import check_missing, check_out, checked
from gis_builder.pairing.pair_folder import drop_counts
from gis_builder.pairing.pairing_results import DROPPED_FILE, ArchiveBuilt, HoursRead
from gis_builder.settings import ArchiveSettings
from gis_builder.store import IssuePair, IssueText
from gis_builder.store.store import working_folder
from pairkit import __version__
from pairkit.base.errors import DataError
from pairkit.base.system.files import write_bytes
from pairkit.base.system.folders import check_apart
from pairkit.dataset.table_files import write_parquet

# Settings that the second map does not depend on.
_LATER: dict[str, bool | set[str]] = {
    "split": True,
    "pair": True,
    "limits": {"per_repo_max"},
}

_MIN_BUCKETS = 16
_BUCKET_BYTES = 96 << 20  # rows of a new bucket, which may grow to twice this size
_SORT_BYTES = 96 << 20  # rows that one task sorts
_STALE_S = 3600.0  # age of half-written files that were left by killed processes


@dataclass(frozen=True)
class Job:
    """The inputs of a run."""

    hours: Sequence[str]
    source: Path
    work: Path
    settings: ArchiveSettings
    excluded: Sequence[str] = ()


def read_hours(job: Job, runner: Runner, show: RunDisplay) -> HoursRead:
    """Run the first map only; the files of these hours are not needed later."""
    with working_folder(job.work):
        run = _ArchiveRun(job, runner, show)
        run.read()
        tallies = read_tallies(run.hours.values())
        return HoursRead(job.work, by_month(job.hours, tallies))


def build_archive(
    job: Job, out: Path, runner: Runner, show: RunDisplay, *, fresh: bool
) -> ArchiveBuilt:
    """Make the dataset; the same call continues an interrupted run."""
    start = time.monotonic()
    check_apart(out, job.work)
    with working_folder(job.work):
        run = _ArchiveRun(job, runner, show)
        record = run.record()
        check_out(out, (), record, fresh=fresh)
        statistics = run.dataset(out, record)
        run.clean()
    show.say("auditing")
    report = checked(out)
    return ArchiveBuilt(out, job.work, statistics, report, time.monotonic() - start)


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
        read = sorted(
            folder.glob("[!.]*.parquet"), key=lambda path: path.stat().st_mtime
        )
        rows = {stem_of(path): path for path in read}  # the newest
        for hour, (_, identity) in self._files.items():
            rows[hour] = file_named(folder, hour, "parquet", identity)
        return {hour: rows[hour] for hour in self._job.hours if hour in rows}

    def record(self) -> dict[str, object]:
        """Everything that determines the content of the dataset."""
        job = self._job
        contents = [
            [hour, path.name.split(".")[2]] for hour, path in self.hours.items()
        ]
        return job.settings.model_dump(mode="json") | {
            "hours": f"{job.hours[0]}..{job.hours[-1]}",
            "hours_sha256": digest_of(contents),
            "excluded_sha256": digest_of(list(job.excluded)),
        }

    def read(self) -> None:
        """Run the first map, on the files of the source; rows of deleted files are already there."""
        paths = {hour: path for hour, (path, _) in self._files.items()}
        first = next(iter(paths.values()), None)
        self._runner.check_shared(self._work, first)
        tasks = [
            FileTask((self.hours[hour],), extract_hour, (path, hour))
            for hour, path in paths.items()
        ]
        self._run("reading hours", tasks)
        self._used += self.hours.values()
        current = code_hash()
        older = [
            hour for hour, path in self.hours.items() if _code_hash(path) != current
        ]
        if older:
            self._show.say(
                f"{len(older):,} hours without files, such as {older[0]}: read by another version"
            )

    def dataset(self, out: Path, record: dict[str, object]) -> dict[str, object]:
        """Make the dataset and return its statistics."""
        self.read()
        rows = self._sort()
        judged = self._judge(rows)
        self._show.say("making pairs")
        with (
            records_on_disk(self._work, IssueText) as texts,
            records_on_disk(self._work, IssuePair) as pairs,
        ):
            combined = combine_buckets(judged, texts, pairs, self._settings)
            drawn = self._draw(judged, combined)
            dropped = pl.concat(combined.dropped).sort(
                "label", "issue1", "issue2", "reason"
            )
            write_parquet(self._work / DROPPED_FILE, dropped, private=True)
            statistics = {
                "verdicts": combined.verdicts_by_outcome(),
                "clusters": combined.clusters,
                "missing_negatives": check_missing(drawn.missing, self._settings.split),
                "negatives_with_a_pool_issue": drawn.with_single,
                "archive_repositories": dict(sorted(combined.counts.items())),
            }
            return write_archive(
                out,
                combined,
                drawn,
                read_tallies(rows[0]),
                self._job.hours,
                statistics=statistics | drop_counts(combined.reasons, combined.removed),
                run={"made_by": f"gis (aoe-toolkit {__version__})", "settings": record},
                detail=self._work / "repositories.parquet",
            )

    def _sort(self) -> list[list[Path]]:
        """Sort the rows of months into buckets; returns the files of each bucket, one per month."""
        months = defaultdict(list)
        for hour, path in self.hours.items():
            months[hour[:7]].append(path)
        buckets = self._buckets(_size_of(self.hours.values()))
        rows = self._work / f"rows-{buckets}"
        folders = [rows / f"bucket={bucket:04d}" for bucket in range(buckets)]
        files_of = []
        tasks = []
        for month, hours in months.items():
            names = [path.name for path in hours]
            outs = [file_named(folder, month, "parquet", names) for folder in folders]
            files_of.append(outs)
            parts = _power_of_two(
                _size_of(hours) / _SORT_BYTES, minimum=1, maximum=buckets
            )
            memory = memory_for(hours, parts)
            for part in range(parts):
                first = buckets * part // parts
                last = buckets * (part + 1) // parts
                arguments = (tuple(hours), first, last, buckets)
                tasks.append(
                    FileTask(tuple(outs[first:last]), sort_month, arguments, memory)
                )
        self._run("sorting months", tasks)
        return [list(files) for files in zip(*files_of, strict=True)]

    def _buckets(self, size: int) -> int:
        """The number of buckets for rows of this size: that of an earlier run, if it suffices."""
        folders = self._work.glob("rows-*")
        for count in sorted(int(path.name.removeprefix("rows-")) for path in folders):
            if size <= 2 * _BUCKET_BYTES * count:
                return count
        return _power_of_two(size / _BUCKET_BYTES, minimum=_MIN_BUCKETS)

    def _judge(self, rows: Sequence[Sequence[Path]]) -> list[Path]:
        """Run the second map; returns the file of each bucket."""
        settings = self._settings.model_dump_json(exclude=_LATER)
        excluded = tuple(self._job.excluded)
        names = file_named(
            self._work / "judged",
            "hours",
            "zlib",
            self._names,
            settings=[settings, excluded],
        )
        count = len(rows)
        outs = [
            _with_stem(names, f"{bucket:04d}-of-{count:04d}") for bucket in range(count)
        ]
        earlier: Sequence[tuple[Path, Path] | None] = [None] * count
        if not all(out.exists() for out in outs):
            earlier = self._judged_earlier(names, outs)
        tasks = []
        for out, files, before in zip(outs, rows, earlier, strict=True):
            arguments = (tuple(files), settings, excluded, before)
            tasks.append(FileTask((out,), judge_bucket, arguments, memory_for(files)))
        self._run("detecting duplicates", tasks)
        self._write(names, self._names)
        return outs

    def _judged_earlier(
        self, names: Path, outs: Sequence[Path]
    ) -> list[tuple[Path, Path] | None]:
        """For each bucket, its verdicts over the most similar hours, and the keys that changed since."""
        names_now = set(self._names)
        changes = {
            path: sorted(names_now.symmetric_difference(unpack(path, list[str])))
            for path in sorted(names.parent.glob("hours.*"))
            if _code_hash(path) == _code_hash(names)
        }
        best = min(changes, key=lambda path: len(changes[path]), default=names)
        changed = changes.get(best, [])
        hours = [self._work / "hours" / name for name in changed]
        is_small = 0 < len(hours) <= len(names_now) // 2
        if not is_small or not all(hour.exists() for hour in hours):
            return [None] * len(outs)
        keys = file_named(names.parent, "changed", "parquet", changed)
        complete(FileTask((keys,), changed_keys, (hours,)))
        judged = [_with_stem(best, stem_of(out)) for out in outs]
        return [(path, keys) if path.exists() else None for path in judged]

    def _draw(
        self, judged: Sequence[Path], combined: CombinedBuckets
    ) -> settle.DrawnNegatives:
        """Assign the splits and run the third map, which draws the negatives of each bucket."""
        similar_at = self._settings.pair.similar_at
        settings = self._settings.model_dump_json(include={"pair", "seed"})
        names = [path.name for path in judged]
        folder = self._work / "near-duplicates"
        cached = file_named(folder, "groups", "zlib", names, similar_at)
        self._used.append(cached)
        groups = settle.near_duplicate_groups(cached, combined.texts, similar_at)
        assigned = settle.assign_splits(combined, groups)
        outs = []
        tasks = []
        parts = settle.draw_inputs(combined, assigned)
        for path, bucket, part in zip(judged, combined.buckets, parts, strict=True):
            stem = stem_of(path)
            digest = digest_of(pack(part))
            draw_input = file_named(self._work / "draw-inputs", stem, "zlib", digest)
            self._write(draw_input, part)
            folder = self._work / "negatives"
            inputs = (bucket.digest, draw_input.name)
            out = file_named(folder, stem, "zlib", *inputs, settings=settings)
            outs.append(out)
            arguments = (path, draw_input, settings)
            memory = memory_for([path])
            tasks.append(FileTask((out,), settle.draw_negatives, arguments, memory))
        self._run("drawing negatives", tasks)
        return settle.add_negatives(combined, assigned, outs)

    def _write(self, path: Path, value: object) -> None:
        """Write a file, unless it is there."""
        if not path.exists():
            write_bytes(path, pack(value), private=True)
        self._used.append(path)

    def _run(self, name: str, tasks: Sequence[FileTask]) -> None:
        """Run the tasks that are not done."""
        remaining = [task for task in tasks if not is_done(task)]
        finished = self._runner.run(remaining)
        for _ in self._show.counted(name, finished, len(remaining)):
            pass
        self._used += [out for task in tasks for out in task.outs]

    def clean(self) -> None:
        """Remove superseded files, and half-written ones of killed processes."""
        removed = 0
        for path in list(superseded(self._work, set(self._used))):
            removed += path.stat().st_size
            path.unlink()
        folders = [*self._work.glob("rows-*/*"), *self._work.glob("rows-*")]
        for folder in folders:
            with suppress(OSError):
                folder.rmdir()
        if removed:
            self._show.say(
                f"removed superseded files of {removed / (1 << 20):,.1f} MiB from {self._job.work}"
            )
        for folder in {path.parent for path in self._used}:
            for path in folder.glob(".*"):
                with suppress(FileNotFoundError):
                    if path.stat().st_mtime < time.time() - _STALE_S:
                        path.unlink()


def _code_hash(path: Path) -> str:
    """The hash of the code in a file's name, see `file_named`."""
    return path.name.split(".")[1]


def _size_of(paths: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in paths)


def _with_stem(path: Path, stem: str) -> Path:
    _, _, rest = path.name.partition(".")
    return path.with_name(f"{stem}.{rest}")


def _power_of_two(size: float, *, minimum: int, maximum: int = 1 << 30) -> int:
    """Round up to a power of two, within bounds that are powers of two."""
    count = minimum
    while count < min(size, maximum):
        count *= 2
    return count
