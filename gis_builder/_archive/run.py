"""The whole way from hours of GH Archive to a dataset, or one shard of it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from gis_builder._archive.compact import ledger_of
from gis_builder._archive.coverage import with_coverage
from gis_builder._archive.engine import Engine
from gis_builder._archive.hours import span_of
from gis_builder._archive.job import Job
from gis_builder._archive.judged import Drawn, pack, unpack
from gis_builder._archive.ledger import by_month
from gis_builder._archive.mirror.download import ChangedOnServer
from gis_builder._archive.negatives import draw_negatives
from gis_builder._archive.plan import Plan
from gis_builder._archive.settle import Gathered, gather, placed, split, tie
from gis_builder._archive.tasks import Task, digest_of, file_named, remove_left_behind
from gis_builder._archive.texts import TextsOnDisk, texts_on_disk
from gis_builder._archive.topup import top_up
from gis_builder._archive.write import write_archive
from gis_builder._assemble import DROPPED_FILE, check_missing
from gis_builder._build import checked
from gis_builder._code import code_digest
from gis_builder._dataset import drop_counts, write_dropped
from gis_builder._folders import check_out, working_folder
from gis_builder._progress import RunDisplay
from gis_builder._results import ArchiveBuilt, ShardDone
from gis_builder._split import Splits
from pairkit import __version__
from pairkit.files import write_bytes
from pairkit.folders import check_apart
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
        ready = [task for task in own if task.is_done or task.is_ready]
        with _noticing_changes(job):
            _run(engine, name, ready, show)
        done += len(ready)
        waiting += len(own) - len(ready)
    left = sum(not task.is_done for _, tasks in _named(stages) for task in tasks)
    return ShardDone(job.work, done, waiting, left)


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
        with texts_on_disk(job.work / "texts.partial") as texts:
            statistics = _assemble(job, stages, texts, out, record, engine, show)
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
    left = [task for task in tasks if not task.is_done]
    for _ in show.counted(name, engine.run(left), len(left)):
        pass


def _assemble(
    job: Job,
    stages: Plan,
    texts: TextsOnDisk,
    out: Path,
    record: Mapping[str, Any],
    engine: Engine,
    show: RunDisplay,
) -> dict[str, Any]:
    settings = job.settings
    judged, topped = [task.out for task in stages.judge], None
    if job.topping:
        judged, topped = top_up(
            stages.judge, job.work, *job.topping, lambda tasks: _run(engine, "judging again", tasks, show)
        )
    show.say("making pairs")
    gathered = gather(judged, texts)
    made_by = (__version__, code_digest("_split.py", "_archive/judged.py", "_archive/settle.py"))
    similar_at = settings.pair.similar_at
    ties_file = file_named(
        job.work / "ties", "ties", "zlib", made_by, sorted(p.name for p in judged), similar_at
    )
    splits = split(gathered, texts, tie(ties_file, texts, similar_at), settings)
    drawn = _draw(job, judged, gathered, splits, engine, show)
    missing = dict.fromkeys(splits.positives, 0)
    for partition in drawn:
        missing = {name: count + partition.missing.get(name, 0) for name, count in missing.items()}
    missing = check_missing(missing, settings.split)
    dropped = [
        *gathered.dropped,
        *splits.dropped,
        *(drop for partition in drawn for drop in partition.dropped),
    ]
    write_dropped(job.work / DROPPED_FILE, gathered.rejected, dropped)
    return write_archive(
        out,
        splits.positives,
        {name: [pair for partition in drawn for pair in partition.pairs[name]] for name in splits.positives},
        texts,
        seed=settings.seed,
        statistics={
            "verdicts": gathered.verdict_counts(),
            "clusters": len(gathered.clusters),
            "missing_negatives": missing,
            "negatives_with_a_pool_issue": sum(partition.with_single for partition in drawn),
            "archive_repositories": dict(sorted(gathered.counts.items())),
            "months": by_month(job.hours, _ledger(stages.compact)),
            **({"topped_up": topped} if topped else {}),
            **drop_counts(gathered.rejected, dropped, gathered.removed),
        },
        run={"made_by": f"gis (aoe-toolkit {__version__})", "settings": record},
        detail=job.work / "repositories.parquet",
        finish_card=lambda card, counts: with_coverage(card, counts, span_of(job.hours), record),
    )


def _draw(
    job: Job,
    judged: Sequence[Path],
    gathered: Gathered,
    splits: Splits,
    engine: Engine,
    show: RunDisplay,
) -> list[Drawn]:
    """The negatives of every partition."""
    said = job.settings.model_dump_json()
    made_by = (
        __version__,
        code_digest("_pairs", "_strategies.py", "_archive/judged.py", "_archive/negatives.py"),
    )
    tasks = []
    for path, part in zip(judged, placed(gathered, splits), strict=True):
        told = pack(part)
        told_in = file_named(job.work / "placed", path.name.partition(".")[0], "zlib", digest_of(told))
        if not told_in.exists():
            write_bytes(told_in, told, private=True)
        basis = (made_by, path.name, told_in.name, said)
        drawn = file_named(job.work / "negatives", path.name.partition(".")[0], "zlib", *basis)
        tasks.append(Task(drawn, draw_negatives, (path, told_in, said), (path, told_in)))
    _run(engine, "drawing negatives", tasks, show)
    return [unpack(task.out, Drawn) for task in tasks]


def _ledger(compact: Iterable[Task]) -> Iterator[Any]:
    for task in compact:
        yield from ledger_of(task.out)
