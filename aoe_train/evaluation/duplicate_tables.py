"""Reads tables of reports and pairs as a task of duplicate detection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, compress

import polars as pl

from aoe_train.encoding.source import joined
from aoe_train.evaluation.duplicates import (
    DuplicateQuery,
    DuplicatesTask,
    TrackerReports,
    build_queries,
    sorted_reports,
)
from aoe_train.evaluation.pair_task import PairSource
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line
from pairkit.dataset.reading.in_memory import Source, source_name
from pairkit.dataset.reading.parts import TablePart, parts_of
from pairkit.dataset.records import ROW

_ALIASES = {
    "id": ("id", "number", "key"),
    "text": ("text",),
    "title": ("title", "summary"),
    "body": ("body", "description"),
    "created": ("created", "created_at"),
}
"""Accepted names of the columns of reports."""
_JIRA_TIME = "%d/%b/%y %H:%M"  # such as 30/Sep/21 17:20
_SIDES = ("duplicate", "canonical")
_GIS = ("repo", "number1", "number2")
_Pairs = Mapping[str, Sequence[tuple[str, str]]]  # (duplicate, canonical) by split
_Queries = Sequence[DuplicateQuery]


def read_duplicates(source: PairSource, reports: Source | None) -> DuplicatesTask:
    """Read reports of a tracker, and pairs of duplicates; without reports the texts of pairs are searched."""
    if reports is None:
        tracked, pairs = _texts_as_reports(source)
    else:
        pairs = {}
        for split, tables in parts_of(source.source).items():
            of_tables = [_duplicate_pairs(table, source.columns) for table in tables]
            pairs[split] = list(chain.from_iterable(of_tables))
        tracked = _read_reports(reports)
    queries, dropped = build_queries(tracked, pairs)
    for split, reasons in dropped.items():
        if reasons:
            counts = [
                f"{count:,} that {reason}" for reason, count in sorted(reasons.items())
            ]
            of_split = f" of {split}" if len(pairs) > 1 else ""
            source.say(
                f"{source.name}: left out of {len(pairs[split]):,} pairs{of_split}: {', '.join(counts)}"
            )
    if tracked.empty:
        source.say(
            f"{source.name}: left out {len(tracked.empty):,} reports without text"
        )
    if tracked.created is None:
        source.say(
            f"{source.name}: no times (a column created), so candidates include newer reports"
        )
    judged, known = _judged_and_known(source, queries)
    if not judged:
        raise DataError("no usable pair of reports", path=source_name(source.source))
    return DuplicatesTask(source.name, tracked, judged, known)


def _judged_and_known(
    source: PairSource,
    queries: Mapping[str, _Queries],
) -> tuple[_Queries, _Queries]:
    """The queries to score, and those that may choose a weight; raises if the split doesn't exist."""
    split = source.chosen_split(source.say)
    if split is None:
        (only,) = queries.values()
        return only, ()
    if split not in queries:
        raise DataError(
            f"no split {split!r}; choose one of {', '.join(queries)}",
            path=source_name(source.source),
        )
    known: _Queries = ()
    if split == "test":
        known = queries.get("validation", ())
    return queries[split], known


def _texts_as_reports(source: PairSource) -> tuple[TrackerReports, _Pairs]:
    """The texts of pairs as reports, each of which is its own id, and the duplicates."""
    where = source_name(source.source)
    splits = source.read()
    if any(frame["label"].dtype != pl.Int64 for frame in splits.values()):
        raise DataError("labels are scores; expected 0 and 1, see --labels", path=where)
    distinct = {}
    duplicates = {}
    for split, frame in splits.items():
        pairs = frame.select("text1", "text2")
        for row in pairs.iter_rows():
            distinct.update(dict.fromkeys(row))
        duplicates[split] = pairs.filter(frame["label"] == 1).rows()
    texts = list(distinct)
    source.say(
        f"{source.name}: no --reports, so only the {len(texts):,} texts of the pairs are searched"
    )
    return sorted_reports(texts, texts, None, where), duplicates


def _duplicate_pairs(
    part: TablePart, columns: Mapping[str, str] | None
) -> list[tuple[str, str]]:
    """The ids (duplicate, canonical) of each pair of label 1."""
    frame = part.numbered(columns)
    where = part.where
    renamed = columns or {}
    unknown = {*renamed} - {*_SIDES}
    if unknown:
        raise ConfigError(
            f"--columns: found {min(unknown)}; with --reports expected duplicate and canonical"
        )
    sides = [renamed.get(side, side) for side in _SIDES]
    names = frame.drop(ROW).columns
    if {*sides} <= {*names}:
        duplicates, canonicals = (_ids(frame, side, where) for side in sides)
    elif not renamed and {*_GIS} <= {*names}:
        repo, number1, number2 = (_ids(frame, name, where) for name in _GIS)
        repo2 = repo
        if "repo2" in names:  # only in datasets with duplicates across repositories
            repo2 = frame["repo2"].fill_null(repo)
        duplicates = repo + "#" + number1
        canonicals = repo2 + "#" + number2
    else:
        raise DataError(
            f"found the columns {one_line(', '.join(names))}; expected {' and '.join(sides)}"
            " with ids of reports, or those of a gis dataset; rename them, or give --columns"
            " duplicate=NAME,canonical=NAME",
            path=where,
        )
    pairs = zip(duplicates.to_list(), canonicals.to_list(), strict=True)
    return list(compress(pairs, _labels(frame, where)))


def _read_reports(source: Source) -> TrackerReports:
    """The reports of all tables; raises DataError if only some tables have times."""
    ids = []
    texts = []
    created = []
    for part in chain.from_iterable(parts_of(source).values()):
        frame = part.numbered()
        roles = _find_roles(frame, part.where)
        text_roles = ["text"] if roles["text"] else ["title", "body"]
        texts += joined(frame, [roles[role] for role in text_roles if roles[role]])
        if roles["created"]:
            created += _times(frame, roles["created"], part.where)
        ids += _ids(frame, roles["id"], part.where).to_list()
    if created and len(created) < len(ids):
        raise DataError(
            "only some of its files have times; expected all or none",
            path=source_name(source),
        )
    return sorted_reports(ids, texts, created or None, source_name(source))


def _find_roles(frame: pl.DataFrame, where: str) -> dict[str, str]:
    """The column of each role, or ""; raises DataError without ids or texts."""
    columns = frame.drop(ROW).columns
    # Of columns that differ only in case, the first one counts, so it is the last one that is set.
    columns_by_name = {name.lower(): name for name in reversed(columns)}
    roles = {}
    for role, aliases in _ALIASES.items():
        matching = map(columns_by_name.get, aliases)
        roles[role] = next(filter(None, matching), "")
    if not roles["id"] or not (roles["text"] or roles["title"]):
        raise DataError(
            f"found the columns {one_line(', '.join(columns))}; expected id, text or title and"
            " body, and optionally created; rename them",
            path=where,
        )
    return roles


def _times(frame: pl.DataFrame, name: str, where: str) -> list[datetime]:
    """The times of a column, in UTC if they name no zone; raises DataError for any other value."""
    times = []
    for row, value in frame.select(ROW, name).iter_rows():
        try:
            time = value if isinstance(value, datetime) else _time(str(value))
        except ValueError as error:
            raise DataError(
                f"{name} is {one_line(str(value), 60)!r}; expected a date such as 2026-11-22 or"
                " 2026-11-22T09:30:00Z, or no such column",
                path=where,
                row=row,
            ) from error
        if time.tzinfo is None:
            time = time.replace(tzinfo=UTC)
        times.append(time)
    return times


def _time(text: str) -> datetime:
    """A time in ISO 8601 or in Jira's format."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return datetime.strptime(text, _JIRA_TIME)


def _ids(frame: pl.DataFrame, name: str, where: str) -> pl.Series:
    """A column of ids as strings, because one file may have numbers and another strings; raises DataError."""
    column = frame[name]
    if column.dtype.is_nested() or column.dtype.is_float():
        raise DataError(
            f"{name} has the type {column.dtype}; expected strings or integers",
            path=where,
        )
    ids = column.cast(pl.String)
    for row in frame[ROW].filter(ids.is_null() | (ids == "")):
        raise DataError(f"no {name}; expected an id", path=where, row=row)
    return ids


def _labels(frame: pl.DataFrame, where: str) -> list[bool]:
    """Whether each pair is a duplicate; without labels all are. Raises DataError for others than 0 and 1."""
    if "label" not in frame.columns:
        return [True] * frame.height
    labels = frame["label"].cast(pl.Float64, strict=False)
    is_valid = labels.is_in([0.0, 1.0]).fill_null(value=False)
    for row, label in frame.filter(~is_valid).select(ROW, "label").iter_rows():
        value = one_line(str(label), 60)
        raise DataError(f"label is {value!r}; expected 0 or 1", path=where, row=row)
    return (labels == 1).to_list()
