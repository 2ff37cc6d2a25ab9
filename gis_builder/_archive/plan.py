"""Which tasks a run has, and which files each needs: all of it known before the first is done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from gis_builder._archive.compact import SHARES, compact_month
from gis_builder._archive.hours import month_of
from gis_builder._archive.judge import judge_share
from gis_builder._archive.objects import Location
from gis_builder._archive.rejudge import judge_more
from gis_builder._archive.rows import bounds
from gis_builder._archive.source import HourFile
from gis_builder._archive.tasks import Task, file_named
from gis_builder._code import code_digest
from gis_builder._detection import CODE
from gis_builder._settings import ArchiveSettings
from pairkit import __version__

_ROOM = "_archive/"
_EXTRACTS = (
    *("_decoding.py", "_records.py", "_rest_records.py"),
    *(f"{_ROOM}{name}.py" for name in ("extract", "events", "rows", "ledger")),
)
_JUDGES = (
    *CODE,
    *("_assemble.py", "_crawl.py", "_detection.py", "_github/pool.py", "_pairs", "_secrets"),
    *(f"{_ROOM}{name}.py" for name in ("rows", "threads", "judge", "judging", "rejudge", "judged")),
    *(f"{_ROOM}{name}.py" for name in ("exclusions", "templates")),
)
# What a verdict, a text or a positive does not rest on.
_LATER: dict[str, bool | set[str]] = {
    "split": True,
    "pair": {"negatives", "match", "ratio", "partners", "similar_at", "guard_share"},
}


class Plan(NamedTuple):
    """The tasks that need no driver, by stage; those of a stage need files of the stage before."""

    extract: list[Task]
    compact: list[Task]
    judge: list[Task]

    @property
    def ledgers(self) -> list[Location]:
        """The files with the ledgers: a month's first share."""
        return [task.out for task in self.compact if task.arguments[1] == 0]


def plan(
    hours: Sequence[HourFile],
    results: Location,
    settings: ArchiveSettings,
    excluded: Sequence[str],
    partitions: int,
) -> Plan:
    """The tasks of a run.

    Args:
        hours: The hours that there are.
        results: Where the files go.
        settings: What decides the result.
        excluded: The takedown list.
        partitions: How many tasks judge; it decides nothing but how much each has in memory.
    """
    extract = {hour.hour: _extract(hour, results) for hour in hours}
    months: defaultdict[str, list[Location]] = defaultdict(list)
    for hour, task in extract.items():
        months[month_of(hour)].append(task.out)
    compact = [
        [_compact(month, files, place, results) for month, files in months.items()] for place in range(SHARES)
    ]
    judge = [
        _judge([task.out for tasks in _overlapping(compact, place, partitions) for task in tasks],
               (place, partitions), results, settings, excluded)
        for place in range(partitions)
    ]  # fmt: skip
    return Plan(list(extract.values()), [task for tasks in compact for task in tasks], judge)


def judge_again(task: Task, topped: Location) -> Task:
    """The task that judges a partition with what is known besides.

    Args:
        task: What judged it before.
        topped: What is known now, see `topup`.
    """
    made_by = (__version__, code_digest(*_JUDGES))
    out = file_named(
        task.out.parent, task.out.name.partition(".")[0], "zlib", made_by, task.out.name, topped.name
    )
    return Task(out, judge_more, (task.out, topped, *task.arguments), (task.out, topped))


def _extract(hour: HourFile, results: Location) -> Task:
    made_by = (__version__, code_digest(*_EXTRACTS))
    out = file_named(results / "hours", hour.hour, "parquet", made_by, hour.hour, hour.identity)
    return Task(out, hour.function, hour.arguments)


def _compact(month: str, files: Sequence[Location], place: int, results: Location) -> Task:
    made_by = (__version__, code_digest(f"{_ROOM}rows.py", f"{_ROOM}compact.py"))
    basis = (made_by, [path.name for path in files], place)
    out = file_named(results / "months", f"{month}-{place:02d}", "parquet", *basis)
    return Task(out, compact_month, (tuple(files), place), tuple(files))


def _overlapping(compact: Sequence[list[Task]], place: int, partitions: int) -> Sequence[list[Task]]:
    """The tasks of the shares in which a partition's repositories are."""
    return compact[place * SHARES // partitions : -(-(place + 1) * SHARES // partitions)]


def _judge(
    files: Sequence[Location],
    part: tuple[int, int],
    results: Location,
    settings: ArchiveSettings,
    excluded: Sequence[str],
) -> Task:
    place, partitions = part
    said = settings.model_dump_json(exclude=_LATER)
    made_by = (__version__, code_digest(*_JUDGES))
    basis = (made_by, [path.name for path in files], part, said, list(excluded))
    out = file_named(results / "judged", f"{place:05d}-of-{partitions:05d}", "zlib", *basis)
    arguments = (tuple(files), *bounds(place, partitions), said, tuple(excluded))
    return Task(out, judge_share, arguments, tuple(files))
