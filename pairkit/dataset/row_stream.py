"""The rows of a split a few at a time, as `reader.read_rows` gives them all at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from pairkit.app.errors import ConfigError, DataError
from pairkit.app.printable import one_line
from pairkit.dataset.columns import as_text, to_rows
from pairkit.dataset.in_memory import Source, source_name
from pairkit.dataset.label_meaning import LabelMeaning
from pairkit.dataset.labels import AS_FOUND, LabelRules, LabelsRead
from pairkit.dataset.negatives import NEGATIVES, holds_lists
from pairkit.dataset.parts import TablePart, parts_of, parts_on_disk, wanted_split
from pairkit.dataset.reader import SourceTable, decided
from pairkit.dataset.tables import TextSizes

_STRETCH = 1 << 16  # rows, in whole row groups; a larger row group is a stretch by itself


class Stretch(NamedTuple):
    """Rows that are read in one go: some row groups of a Parquet file, or a whole file of another kind."""

    table: int
    groups: tuple[int, int] | None = None
    start: int = 0


class Piece(NamedTuple):
    """Some rows: as they are meant, and each one's number in its file, from 0, as some may be left out."""

    rows: pl.DataFrame
    numbers: np.ndarray


@dataclass(frozen=True, slots=True)
class RowStream:
    """Rows as they are meant, to be read as often as is wanted."""

    names: tuple[str, ...]
    labels: LabelsRead | None
    binary: bool
    written: int
    stretches: Sequence[Stretch]
    tables: Sequence[SourceTable]
    sizes: Sequence[TextSizes]
    listed: Sequence[Collection[str]]  # of each table its columns of lists, see `_columns_of_lists`
    meaning: LabelMeaning

    @property
    def rows(self) -> int:
        """How many rows the files have, those that are left out included."""
        return sum(table.rows for table in self.tables)

    def read(self, stretch: Stretch) -> Iterator[Piece]:
        """The rows of a stretch, some thousands at a time."""
        table, sizes = self.tables[stretch.table], self.sizes[stretch.table]
        before = stretch.start
        if not before:
            sizes.begin()
        groups = range(*stretch.groups) if stretch.groups else range(0)
        roles, listed = table.roles, self.listed[stretch.table]
        wanted = dict.fromkeys((roles.text1, roles.text2, roles.label, *roles.negatives))
        for frame in table.frames([name for name in wanted if name], groups, before):
            sizes.add(frame)
            labels = table.labels(frame, self.meaning, before)
            first = table.first_row + before
            rows = to_rows(frame, roles, table.where, labels, first_row=first, listed=listed)
            numbers = (
                np.arange(frame.height) if labels is None else labels.is_not_null().arg_true().to_numpy()
            )
            yield Piece(rows, numbers.astype(np.int64) + before)
            before += frame.height

    def place(self, table: int, number: int) -> str:
        """Where a row is from, as `file:row`."""
        own = self.tables[table]
        return f"{own.where}:{own.first_row + number}"


def files_of_split(source: Source, split: str | None) -> list[Path]:
    """The files that hold a split's rows; none where a source is in memory or on the Hub."""
    parts = parts_on_disk(source, lines=True) if isinstance(source, str | Path) else None
    if parts is None:
        return []
    return [part.table for part in _of_split(parts, split, source) if isinstance(part.table, Path)]


def open_rows(
    source: Source,
    *,
    columns: Mapping[str, str] | None = None,
    split: str | None = None,
    rules: LabelRules = AS_FOUND,
) -> RowStream:
    """Find out what the rows of a split mean; the arguments are those of `read_rows`."""
    parts = _of_split(parts_of(source, lines=True), split, source)
    for part in parts:
        if isinstance(part.table, pl.DataFrame):
            raise ConfigError(
                f"{part.where}: its rows are in memory already; leave streaming out, or save them as Parquet"
                " files and give their folder"
            )
    tables = [SourceTable.opened(part, columns, single=True, hold=False) for part in parts]
    labels = decided(tables, rules)
    return RowStream(
        _same_columns(tables, source_name(source)),
        labels.read,
        labels.binary,
        sum(table.written_rows() for table in tables),
        [each for number, table in enumerate(tables) for each in _stretches(table, number)],
        tables,
        [TextSizes(table.path) for table in tables],
        [_columns_of_lists(table) for table in tables],
        labels.meaning,
    )


def _of_split(parts: Mapping[str, list[TablePart]], split: str | None, source: Source) -> list[TablePart]:
    return parts[wanted_split(parts, split, source) if split else next(iter(parts))]


def _same_columns(tables: Sequence[SourceTable], where: str) -> tuple[str, ...]:
    """The columns that all rows have."""
    names = [_names(table) for table in tables]
    every = tuple(dict.fromkeys(name for own in names for name in own))
    if any(set(own) != set(every) for table, own in zip(tables, names, strict=True) if table.rows):
        raise DataError(
            f"its files differ in what their rows are; together they have {one_line(', '.join(every))}: read"
            " them one by one",
            path=where,
        )
    return every


def _names(table: SourceTable) -> tuple[str, ...]:
    """What the columns of its rows are called."""
    if table.roles.label:
        return "text1", "text2", "label"
    if not table.roles.text2:
        return ("text",)
    return ("anchor", "positive", NEGATIVES) if table.roles.negatives else ("anchor", "positive")


def _stretches(table: SourceTable, number: int) -> Iterator[Stretch]:
    """What there is to read; `number` is the table's."""
    if table.parquet is None:
        yield Stretch(number)
        return
    first = start = rows = 0
    for group, count in enumerate(table.parquet.groups):
        if rows and rows + count > _STRETCH:
            yield Stretch(number, (first, group), start)
            first, start, rows = group, start + rows, 0
        rows += count
    yield Stretch(number, (first, len(table.parquet.groups)), start)


def _columns_of_lists(table: SourceTable) -> Collection[str]:
    """The columns of negatives that hold lists in form of texts, in each of their rows."""
    left, lists = set(table.roles.negatives), set[str]()
    first = table.first_row
    for frame in table.frames(table.roles.negatives) if left else ():
        flat = [name for name in left if not frame[name].dtype.is_nested()]
        said = {name: holds_lists(as_text(frame[name], table.where, first)) for name in flat}
        lists |= {name for name, they_are in said.items() if they_are}
        left = {name for name, they_are in said.items() if they_are is not False}
        first += frame.height
        if not left:
            break
    return lists & left
