"""The whole way from hours of GH Archive to a dataset, or one shard of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from gis_builder._archive.compact import ledgers_of
from gis_builder._archive.coverage import with_coverage
from gis_builder._archive.engine import Engine
from gis_builder._archive.hours import span_of
from gis_builder._archive.job import Job
from gis_builder._archive.judged import by_outcome, pack
from gis_builder._archive.ledger import by_month
from gis_builder._archive.mirror.download import ChangedOnServer
from gis_builder._archive.negatives import draw_negatives
from gis_builder._archive.objects import Location, existing, keep
from gis_builder._archive.plan import Plan
from gis_builder._archive.settle import (
    Gathered,
    Negatives,
    Settled,
    add_negatives,
    gather,
    placed,
    split,
    tie,
)
from gis_builder._archive.tasks import Task, digest_of, file_named, remove_left_behind
from gis_builder._archive.topup import top_up
from gis_builder._archive.write import write_archive
from gis_builder._assemble import DROPPED_FILE, check_missing
from gis_builder._build import checked
from gis_builder._code import code_digest
from gis_builder._dataset import drop_counts
from gis_builder._folders import check_out, working_folder
from gis_builder._progress import RunDisplay
from gis_builder._results import ArchiveBuilt, ShardDone
from pairkit import __version__
from pairkit.folders import check_apart
from pairkit.parquet import write_parquet
from pairkit.records_on_disk import Scratch, scratch_file
from pairkit.shards import Shard

_MOST_CHANGES = 3  # of files on a server while they are downloaded


def run_shard(job: Job, shard: Shard, engine: Engine, show: RunDisplay) -> ShardDone:
    """Do one share of the tasks: of each stage those of which the files that they need are there.

    Args:
        job: What is asked for, the same for all shards.
        shard: Which of the shares this is.
        engine: Runs the tasks.
        show: Told of each stage.

    Raises:
        ConfigError: The source or working folder can't be used.
        DataError: The source has none of the hours.
    """
    _look(job, engine, show, shard)
    _, stages = job.plan()
    done = waiting = 0
    for name, tasks in _named(stages):
        own = tasks[shard.number - 1 :: shard.of]
        there = existing(file for task in own for file in (task.out, *task.needs))
        ready = [task for task in own if task.out in there or there.issuperset(task.needs)]
        with _noticing_changes(job):
            _run(engine, name, ready, show)
        done += len(ready)
        waiting += len(own) - len(ready)
    every = [task.out for _, tasks in _named(stages) for task in tasks]
    where = job.results if isinstance(job.results, Path) else str(job.results)
    return ShardDone(where, done, waiting, len(every) - len(existing(every)))


def run_all(job: Job, out: Path, engine: Engine, show: RunDisplay, *, fresh: bool = False) -> ArchiveBuilt:
    """Make the dataset; called again after whatever happened, it continues.

    Raises:
        ConfigError: A folder can't be used, or a setting does not fit the data.
        DataError: None of the hours is there, or no pair is in them.
        LeakError: The audit found a leak, which is a bug of ours; the dataset is left for inspection.
    """
    start = time.monotonic()
    check_apart(out, job.work)
    with working_folder(job.work):
        for _ in range(_MOST_CHANGES):
            _look(job, engine, show)
            found, stages = job.plan()
            record = job.record(found)
            check_out(out, (), record, fresh=fresh)
            with suppress(ChangedOnServer), _noticing_changes(job):
                _run(engine, *next(_named(stages)), show)
                break
        for name, tasks in _named(stages):
            _run(engine, name, tasks, show)
        remove_left_behind(job.work)
        statistics = assembled(job, stages, out, record, engine, show)
    show.say("auditing")
    return ArchiveBuilt(out, job.work, statistics, checked(out), time.monotonic() - start)


def _look(job: Job, engine: Engine, show: RunDisplay, shard: Shard | None = None) -> None:
    """Find out which hours the source has. Each shard needs all of it, and begins at another month."""
    tasks = job.source.tasks(job.hours)
    first = len(tasks) * (shard.number - 1) // shard.of if shard else 0
    if tasks:
        _run(engine, "looking for hours", [*tasks[first:], *tasks[:first]], show)


@contextmanager
def _noticing_changes(job: Job) -> Iterator[None]:
    try:
        yield
    except ChangedOnServer as changed:
        job.source.forget(changed.hour, job.hours)
        raise


def _named(stages: Plan) -> Iterator[tuple[str, list[Task]]]:
    yield "reading hours", stages.extract
    yield "sorting months", stages.compact
    yield "detecting duplicates", stages.judge


def _run(engine: Engine, name: str, tasks: Sequence[Task], show: RunDisplay) -> None:
    there = existing(task.out for task in tasks)
    left = [task for task in tasks if task.out not in there]
    for _ in show.counted(name, engine.run(left), len(left)):
        pass


def assembled(
    job: Job, stages: Plan, out: Path, record: Mapping[str, Any], engine: Engine, show: RunDisplay
) -> dict[str, Any]:
    """Make the dataset of partitions that were judged.

    Args:
        job: What is asked for.
        stages: The tasks, done.
        out: The dataset's folder.
        record: What decides what it holds.
        engine: Runs the tasks that draw negatives.
        show: Told of each stage.

    Returns:
        The dataset's statistics.

    Raises:
        ConfigError: A folder can't be used, or a setting does not fit the data.
        DataError: No pair is there.
    """
    with scratch_file(job.work) as texts_in, scratch_file(job.work) as pairs_in:
        return _assembled(job, stages, (texts_in, pairs_in), out, record, engine, show)


def _assembled(
    job: Job,
    stages: Plan,
    scratch: tuple[Scratch, Scratch],
    out: Path,
    record: Mapping[str, Any],
    engine: Engine,
    show: RunDisplay,
) -> dict[str, Any]:
    settings = job.settings
    judged, topped = [task.out for task in stages.judge], None
    if job.topping:
        judged, topped = top_up(
            *(stages.judge, job.work, job.results, *job.topping),
            lambda tasks: _run(engine, "judging again", tasks, show),
        )
    show.say("making pairs")
    gathered = gather(judged, *scratch, settings.seed)
    made_by = (
        __version__,
        code_digest("_ref_table.py", "_archive/judged.py", "_archive/settle.py", "_archive/texts.py"),
    )
    similar_at = settings.pair.similar_at
    ties_file = file_named(
        job.results / "ties", "ties", "zlib", made_by, sorted(p.name for p in judged), similar_at
    )
    settled = split(gathered, tie(ties_file, gathered.texts, similar_at), settings)
    drawn = _draw(job, judged, gathered, settled, engine, show)
    write_parquet(job.work / DROPPED_FILE, gathered.left_out.table(), private=True)
    return write_archive(
        out,
        list(settled.negatives_wanted),
        gathered.pairs,
        drawn.split_of,
        gathered.texts,
        seed=settings.seed,
        statistics={
            "verdicts": by_outcome(gathered.verdicts),
            "clusters": gathered.clusters,
            "missing_negatives": check_missing(drawn.missing, settings.split),
            "negatives_with_a_pool_issue": drawn.with_single,
            "archive_repositories": dict(sorted(gathered.counts.items())),
            "months": by_month(job.hours, ledgers_of(stages.ledgers)),
            **({"topped_up": topped} if topped else {}),
            **drop_counts(gathered.left_out.reasons(), gathered.removed),
        },
        run={"made_by": f"gis (aoe-toolkit {__version__})", "settings": record},
        detail=job.work / "repositories.parquet",
        finish_card=lambda card, counts: with_coverage(card, counts, span_of(job.hours), record),
    )


def _draw(
    job: Job,
    judged: Sequence[Location],
    gathered: Gathered,
    settled: Settled,
    engine: Engine,
    show: RunDisplay,
) -> Negatives:
    """Draw the negatives of every partition."""
    said = job.settings.model_dump_json()
    made_by = (
        __version__,
        code_digest("_pairs", "_strategies.py", "_archive/judged.py", "_archive/negatives.py"),
    )
    tasks = []
    for path, part in zip(judged, placed(gathered, settled), strict=True):
        told = pack(part)
        told_in = file_named(job.results / "placed", path.name.partition(".")[0], "zlib", digest_of(told))
        keep(told_in, told)
        basis = (made_by, path.name, told_in.name, said)
        drawn = file_named(job.results / "negatives", path.name.partition(".")[0], "zlib", *basis)
        tasks.append(Task(drawn, draw_negatives, (path, told_in, said), (path, told_in)))
    _run(engine, "drawing negatives", tasks, show)
    return add_negatives(gathered, settled, (task.out for task in tasks))
