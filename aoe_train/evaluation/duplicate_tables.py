"""From tables of reports and of pairs to a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import polars as pl

from aoe_train.data.examples import Say, silent
from aoe_train.evaluation.duplicates import DuplicatesTask, DuplicateTracker, TrackerReports, in_order, track
from aoe_train.evaluation.pairs import SPLIT_NAMES, is_whole, noted_pairs, shown_name
from aoe_train.evaluation.tasks import Split
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.printable import one_line
from pairkit.dataset.in_memory import Source, source_name
from pairkit.dataset.labels import AS_FOUND, LabelRules
from pairkit.dataset.parts import TablePart, parts_of
from pairkit.dataset.reader import read_pairs
from pairkit.dataset.tables import first_row, has_header, read_table

_NAMES = {
    "id": ("id", "number", "key"),
    "text": ("text",),
    "title": ("title", "summary"),
    "body": ("body", "description"),
    "created": ("created", "created_at"),
}
"""The columns of reports, each by the names that it may have."""
_JIRA = "%d/%b/%y %H:%M"  # 30/Sep/21 17:20
_SIDES = ("duplicate", "canonical")
_GIS = ("repo", "number1", "number2")


class _Table(NamedTuple):
    """A table, and how messages name a row of it."""

    frame: pl.DataFrame
    where: str
    first_row: int


class _Rows(NamedTuple):
    """The reports of a table."""

    ids: list[str]
    texts: list[str]
    created: list[datetime] | None


def read_duplicates(
    data: Source,
    reports: Source | None = None,
    split: Split | None = None,
    rules: LabelRules = AS_FOUND,
    say: Say = silent,
    columns: Mapping[str, str] | None = None,
) -> DuplicatesTask:
    """Reports of a tracker, and which of them say the same."""
    name = shown_name(data)
    if reports is None:
        tracker = _of_texts(name, data, rules, say, columns)
    else:
        pairs = {
            part: [pair for table in tables for pair in _pairs(table, columns)]
            for part, tables in parts_of(data).items()
        }
        tracker = track(name, _reports(reports), pairs)
        _tell(tracker, pairs, say)
    if tracker.reports.created is None:
        say(
            f"{name}: no times (a column created), so younger reports are candidates too, not only older ones"
        )
    return _task(data, tracker, split)


def _task(data: Source, tracker: DuplicateTracker, split: Split | None) -> DuplicatesTask:
    if is_whole(data):
        if split is not None:
            raise ConfigError(f"{source_name(data)}: all pairs are judged; leave --split {split} out")
        task = DuplicatesTask(tracker, next(iter(tracker.queries)))
    else:
        wanted = SPLIT_NAMES[split or "test"]
        if wanted not in tracker.queries:
            raise DataError(
                f"no split {wanted!r}; there are {', '.join(tracker.queries)}", path=source_name(data)
            )
        known = "validation" if wanted == "test" and tracker.queries.get("validation") else None
        task = DuplicatesTask(tracker, wanted, known)
    if not task.queries:
        raise DataError("no pair of reports is left to be judged", path=source_name(data))
    return task


def _of_texts(
    name: str, data: Source, rules: LabelRules, say: Say, columns: Mapping[str, str] | None
) -> DuplicateTracker:
    """A tracker of nothing but the texts of pairs; a text is its own id."""
    splits = noted_pairs(read_pairs(data, rules=rules, columns=columns), data, columns, say).splits
    if any(frame["label"].dtype != pl.Int64 for frame in splits.values()):
        raise DataError("labels are scores; expected 0 and 1, see --labels", path=source_name(data))
    rows = (row for frame in splits.values() for row in frame.select("text1", "text2").iter_rows())
    texts = list(dict.fromkeys(text for row in rows for text in row))
    say(f"{name}: no --reports, so the {len(texts):,} texts of the pairs are all that is searched")
    same = {
        split: list(frame.filter(pl.col("label") == 1).select("text1", "text2").iter_rows())
        for split, frame in splits.items()
    }
    tracker = track(name, in_order(texts, texts, None, source_name(data)), same)
    _tell(tracker, same, say)
    return tracker


def _tell(tracker: DuplicateTracker, pairs: Mapping[str, Sequence[tuple[str, str]]], say: Say) -> None:
    for split, reasons in tracker.dropped.items():
        if reasons:
            told = ", ".join(f"{count:,} that {reason}" for reason, count in sorted(reasons.items()))
            of_split = f" of {split}" if len(pairs) > 1 else ""
            say(f"{tracker.name}: left out of {len(pairs[split]):,} pairs{of_split}: {told}")
    if tracker.reports.empty:
        say(f"{tracker.name}: {len(tracker.reports.empty):,} reports have no text and are left out")


def _pairs(part: TablePart, columns: Mapping[str, str] | None) -> list[tuple[str, str]]:
    """The ids of each pair of label 1, the duplicate's first."""
    table = _read(part, columns)
    given = columns or {}
    if unknown := {*given} - {*_SIDES}:
        raise ConfigError(f"--columns {min(unknown)}: beside --reports expected duplicate and canonical")
    sides = [given.get(side, side) for side in _SIDES]
    names = {*table.frame.columns}
    if {*sides} <= names:
        one, other = (_ids(table, side) for side in sides)
    elif not given and {*_GIS} <= names:
        repo, *numbers = (_ids(table, name) for name in _GIS)
        one, other = (repo + "#" + number for number in numbers)
    else:
        raise DataError(
            f"found the columns {one_line(', '.join(table.frame.columns))}, expected {' and '.join(sides)}"
            " with ids of reports, or those of a dataset of gis; rename them, or give --columns"
            " duplicate=NAME,canonical=NAME",
            path=table.where,
        )
    pairs = list(zip(one.to_list(), other.to_list(), strict=True))
    return [pair for pair, same in zip(pairs, _labels(table), strict=True) if same]


def _reports(source: Source) -> TrackerReports:
    tables = [_read(part) for parts in parts_of(source).values() for part in parts]
    found = [_rows(table) for table in tables]
    ids = [id_ for part in found for id_ in part.ids]
    texts = [text for part in found for text in part.texts]
    created = [time for part in found for time in part.created or ()]
    if created and len(created) < len(ids):
        raise DataError("some of its files have times and some have none", path=source_name(source))
    return in_order(ids, texts, created or None, source_name(source))


def _rows(table: _Table) -> _Rows:
    known = {name.lower(): name for name in reversed(table.frame.columns)}
    roles = {
        role: next((known[name] for name in names if name in known), "") for role, names in _NAMES.items()
    }
    if not roles["id"] or not (roles["text"] or roles["title"]):
        raise DataError(
            f"found the columns {one_line(', '.join(table.frame.columns))}, expected id, and title and body"
            " or text, and perhaps created; rename them",
            path=table.where,
        )
    parts = [roles["text"]] if roles["text"] else [roles["title"], roles["body"]]
    columns = [table.frame[name].cast(pl.String).fill_null("").to_list() for name in parts if name]
    texts = ["\n\n".join(part for part in row if part.strip()) for row in zip(*columns, strict=True)]
    created = _times(table, roles["created"]) if roles["created"] else None
    return _Rows(_ids(table, roles["id"]).to_list(), texts, created)


def _times(table: _Table, name: str) -> list[datetime]:
    found: list[datetime] = []
    for place, value in enumerate(table.frame[name].to_list()):
        try:
            time = value if isinstance(value, datetime) else _time(str(value))
        except ValueError as error:
            raise DataError(
                f"{name} is {one_line(str(value), 60)!r}; expected a date such as 2026-11-22 or"
                " 2026-11-22T09:30:00Z, or no such column",
                path=table.where,
                row=place + table.first_row,
            ) from error
        found.append(time.replace(tzinfo=UTC) if time.tzinfo is None else time)
    return found


def _time(text: str) -> datetime:
    """A time in ISO 8601, or as Jira writes it."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return datetime.strptime(text, _JIRA)


def _ids(table: _Table, name: str) -> pl.Series:
    """A column of ids as texts: numbers and texts may stand for the same report in two files."""
    column = table.frame[name]
    if column.dtype.is_nested() or column.dtype.is_float():
        raise DataError(
            f"{name} holds {column.dtype}; expected ids, texts or whole numbers", path=table.where
        )
    ids = column.cast(pl.String)
    absent = (ids.is_null() | (ids == "")).arg_true()
    if len(absent):
        raise DataError(f"no {name}; expected an id", path=table.where, row=absent[0] + table.first_row)
    return ids


def _labels(table: _Table) -> list[bool]:
    """Whether the reports of each pair say the same; all, where there are no labels."""
    if "label" not in table.frame.columns:
        return [True] * table.frame.height
    labels = table.frame["label"].cast(pl.Float64, strict=False)
    wrong = (~labels.is_in([0.0, 1.0]).fill_null(value=False)).arg_true()
    if len(wrong):
        found = one_line(str(table.frame["label"][wrong[0]]), 60)
        raise DataError(
            f"label is {found!r}; expected 0 or 1", path=table.where, row=wrong[0] + table.first_row
        )
    return (labels == 1).to_list()


def _read(part: TablePart, columns: Mapping[str, str] | None = None) -> _Table:
    if isinstance(part.table, pl.DataFrame):
        return _Table(part.table, part.where, 1)
    header = has_header(part.table, columns)
    return _Table(read_table(part.table, header=header), part.where, first_row(part.table, header=header))
