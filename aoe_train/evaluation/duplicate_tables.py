"""Reads tables of reports and pairs as a task of duplicate detection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, compress

import polars as pl

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
from pairkit.dataset.negative_columns import ROW
from pairkit.dataset.reading.in_memory import Source, source_name
from pairkit.dataset.reading.parts import TablePart, parts_of

_NAMES = {
    "id": ("id", "number", "key"),
    "text": ("text",),
    "title": ("title", "summary"),
    "body": ("body", "description"),
    "created": ("created", "created_at"),
}
"""Accepted names of the columns of reports."""
_JIRA_TIME = "%d/%b/%y %H:%M"  # 30/Sep/21 17:20
_SIDES = ("duplicate", "canonical")
_GIS = ("repo", "number1", "number2")
_Pairs = Mapping[str, Sequence[tuple[str, str]]]  # by split: (duplicate, canonical)


def read_duplicates(source: PairSource, reports: Source | None = None) -> DuplicatesTask:
    """Read reports of a tracker, and pairs of duplicates; without reports the texts of pairs are searched."""
    if reports is None:
        tracked, pairs = _texts_as_reports(source)
    else:
        by_split: dict[str, list[tuple[str, str]]] = {}
        for split, tables in parts_of(source.source).items():
            by_split[split] = []
            for table in tables:
                by_split[split] += _pairs(table, source.columns)
        pairs = by_split
        tracked = _reports(reports)
    queries, dropped = build_queries(tracked, pairs)
    for split, reasons in dropped.items():
        if reasons:
            left_out = [f"{count:,} that {reason}" for reason, count in sorted(reasons.items())]
            counts = ", ".join(left_out)
            of_split = f" of {split}" if len(pairs) > 1 else ""
            source.say(
                f"{source.name}: left out of {len(pairs[split]):,} pairs{of_split}: {counts}"
            )
    if tracked.empty:
        source.say(f"{source.name}: left out {len(tracked.empty):,} reports without text")
    if tracked.created is None:
        source.say(
            f"{source.name}: no times (a column created), so candidates include newer reports"
        )
    judged, known = _judged_and_known(source, queries)
    if not judged:
        raise DataError("no usable pair of reports", path=source_name(source.source))
    return DuplicatesTask(source.name, tracked, judged, known)


_Queries = Sequence[DuplicateQuery]


def _judged_and_known(
    source: PairSource,
    queries: Mapping[str, _Queries],
) -> tuple[_Queries, _Queries]:
    """The queries to score, and those that may choose a weight."""
    where = source_name(source.source)
    if source.is_whole:
        if source.split is not None:
            raise ConfigError(f"{where}: has no splits; leave --split out")
        return next(iter(queries.values())), ()
    judged = source.split or "test"
    if judged not in queries:
        raise DataError(f"no split {judged!r}; choose one of {', '.join(queries)}", path=where)
    known: _Queries = ()
    if judged == "test":
        known = queries.get("validation", ())
    return queries[judged], known


def _texts_as_reports(source: PairSource) -> tuple[TrackerReports, _Pairs]:
    """The texts of pairs as reports, each of which is its own id, and the duplicates."""
    where = source_name(source.source)
    splits = source.read()
    if any(frame["label"].dtype != pl.Int64 for frame in splits.values()):
        raise DataError("labels are scores; expected 0 and 1, see --labels", path=where)
    distinct: dict[str, None] = {}
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


def _pairs(part: TablePart, columns: Mapping[str, str] | None) -> list[tuple[str, str]]:
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
    names = frame.columns[1:]
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


def _reports(source: Source) -> TrackerReports:
    ids = list[str]()
    texts = list[str]()
    created = list[datetime]()
    for part in chain.from_iterable(parts_of(source).values()):
        more_ids, more_texts, more_times = _rows(part.numbered(), part.where)
        ids += more_ids
        texts += more_texts
        created += more_times
    if created and len(created) < len(ids):
        raise DataError(
            "only some of its files have times; expected all or none", path=source_name(source)
        )
    return sorted_reports(ids, texts, created or None, source_name(source))


def _rows(frame: pl.DataFrame, where: str) -> tuple[list[str], list[str], list[datetime]]:
    """The ids, texts and times of reports; no times without their column."""
    columns_by_name = {name.lower(): name for name in reversed(frame.columns[1:])}
    roles = {}
    for role, names in _NAMES.items():
        matching = [columns_by_name[name] for name in names if name in columns_by_name]
        roles[role] = next(iter(matching), "")
    if not roles["id"] or not (roles["text"] or roles["title"]):
        raise DataError(
            f"found the columns {one_line(', '.join(frame.columns[1:]))}; expected id, text or title and"
            " body, and optionally created; rename them",
            path=where,
        )
    parts = [roles["text"]] if roles["text"] else [roles["title"], roles["body"]]
    columns = []
    for name in filter(None, parts):
        column = frame[name].cast(pl.String).fill_null("")
        columns.append(column.to_list())
    texts = []
    for row in zip(*columns, strict=True):
        written = [part for part in row if part.strip()]
        texts.append("\n\n".join(written))
    created: list[datetime] = []
    if roles["created"]:
        created = _times(frame, roles["created"], where)
    return _ids(frame, roles["id"], where).to_list(), texts, created


def _times(frame: pl.DataFrame, name: str, where: str) -> list[datetime]:
    times: list[datetime] = []
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
    """A column of ids as strings, because one file may have numbers and another strings."""
    column = frame[name]
    if column.dtype.is_nested() or column.dtype.is_float():
        raise DataError(
            f"{name} has the type {column.dtype}; expected strings or integers", path=where
        )
    ids = column.cast(pl.String)
    missing = (ids.is_null() | (ids == "")).arg_true()
    if len(missing):
        raise DataError(f"no {name}; expected an id", path=where, row=frame[ROW][missing[0]])
    return ids


def _labels(frame: pl.DataFrame, where: str) -> list[bool]:
    """Whether each pair is a duplicate; without labels all are."""
    if "label" not in frame.columns:
        return [True] * frame.height
    labels = frame["label"].cast(pl.Float64, strict=False)
    invalid = (~labels.is_in([0.0, 1.0]).fill_null(value=False)).arg_true()
    if len(invalid):
        value = one_line(str(frame["label"][invalid[0]]), 60)
        raise DataError(
            f"label is {value!r}; expected 0 or 1",
            path=where,
            row=frame[ROW][invalid[0]],
        )
    return (labels == 1).to_list()
