"""The rows of a split a few at a time, as `pairkit.reader.read_rows` gives them all at once.

What is decided over a whole table, or over all of them, is decided first (`open_rows`): which column is what,
what labels mean, whether texts are lists. That takes the columns of labels, and as much of the negatives as
it needs; the texts are read once the answer is known. Parquet is read in batches of rows; a file of any other
kind is read whole, one at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from pairkit.class_names import class_names_of_file
from pairkit.columns import Roles, as_text, find_roles, label_column, to_rows
from pairkit.errors import ConfigError, DataError
from pairkit.in_memory import Source, source_name
from pairkit.label_column import LabelColumn, distinct_labels
from pairkit.label_meaning import LabelMeaning, decide_labels
from pairkit.labels import AS_FOUND, LabelRules, LabelsRead
from pairkit.lines import is_gzipped
from pairkit.negatives import NEGATIVES, holds_lists
from pairkit.parquet_batches import ROWS, ParquetBatches
from pairkit.parts import Part, parts_of, parts_on_disk, wanted_split
from pairkit.printable import one_line
from pairkit.provenance import WRITTEN_BY, written_rows
from pairkit.tables import TextSizes, first_row, has_header, read_table

_STRETCH = 1 << 16  # rows, in whole row groups; a larger row group is a stretch by itself
_JOINED = 256  # batches whose labels wait to be made distinct together


class Stretch(NamedTuple):
    """Rows that are read in one go: some row groups of a Parquet file, or a whole file of another kind.

    Attributes:
        table: The number of the file.
        groups: The first of its row groups, and the one after the last; None for a whole file.
        start: How many rows of the file come before.
    """

    table: int
    groups: tuple[int, int] | None = None
    start: int = 0


class Piece(NamedTuple):
    """Some rows: as they are meant, and each one's number in its file, from 0, as some may be left out."""

    rows: pl.DataFrame
    numbers: np.ndarray


@dataclass(frozen=True, slots=True)
class RowStream:
    """Rows as they are meant, to be read as often as is wanted.

    Attributes:
        names: Their columns, as `read_rows` has them: text1, text2, label; or anchor, positive and perhaps
            negatives; or text.
        labels: What was made of the source's labels; None where it has none.
        binary: Whether all labels are 0 or 1.
        written: How many rows LLMs or rules wrote, see `pairkit.provenance.written_rows`.
        stretches: What there is to read, in the order of the rows.
        tables: The files.
        meaning: What labels count as.
    """

    names: tuple[str, ...]
    labels: LabelsRead | None
    binary: bool
    written: int
    stretches: Sequence[Stretch]
    tables: Sequence[_Table]
    meaning: LabelMeaning

    @property
    def rows(self) -> int:
        """How many rows the files have, those that are left out included."""
        return sum(table.rows for table in self.tables)

    def read(self, stretch: Stretch) -> Iterator[Piece]:
        """The rows of a stretch, some thousands at a time.

        Raises:
            DataError: As `read_rows`.
        """
        table = self.tables[stretch.table]
        before = stretch.start
        for frame in table.read(stretch):
            first = table.first_row + before
            labels = None if not table.roles.label else self.meaning.of(table.label_column(frame, before))
            rows = to_rows(frame, table.roles, table.where, labels, first_row=first, listed=table.listed)
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
    """The files that hold a split's rows; none where a source is in memory or on the Hub.

    Raises:
        ConfigError, DataError: As `open_rows`.
    """
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
    """Find out what the rows of a split mean; the arguments are those of `read_rows`.

    Raises:
        ConfigError: No such source, a bad mapping, or rows that are in memory already.
        DataError: A file that can't be read, columns that are missing or differ, or labels of which it is not
            certain what they mean.
    """
    parts = _of_split(parts_of(source, lines=True), split, source)
    tables = [_Table.opened(part, columns) for part in parts]
    labels = [table.distinct_labels() for table in tables if table.roles.label]
    meaning, read = decide_labels(labels, rules) if labels else (LabelMeaning(), None)
    values = [meaning.of(column) for column in labels]
    stretches = [each for number, table in enumerate(tables) for each in table.stretches(number)]
    return RowStream(
        _same_columns(tables, source_name(source)),
        read,
        all(((own == 0) | (own == 1)).all() for own in values),
        sum(table.written_rows() for table in tables),
        stretches,
        tables,
        meaning,
    )


def _of_split(parts: Mapping[str, list[Part]], split: str | None, source: Source) -> list[Part]:
    return parts[wanted_split(parts, split, source) if split else next(iter(parts))]


def _same_columns(tables: Sequence[_Table], where: str) -> tuple[str, ...]:
    """The columns that all rows have.

    Raises:
        DataError: They differ in what they are.
    """
    every = tuple(dict.fromkeys(name for table in tables for name in table.names))
    if any(set(table.names) != set(every) for table in tables if table.rows):
        raise DataError(
            f"its files differ in what their rows are; together they have {one_line(', '.join(every))}: read"
            " them one by one",
            path=where,
        )
    return every


@dataclass(frozen=True, slots=True)
class _Table:
    """A file, and what is decided over all of its rows.

    Attributes:
        where: What messages call it.
        path: The file.
        lines: Whether it holds one text per line.
        header: Whether its first line says what its columns are called.
        rows: How many it has.
        columns: All of its columns.
        roles: Which column is what.
        classes: What the numbers of its labels stand for.
        listed: The columns of texts that are lists of negatives.
        parquet: Reads it in batches; None for a file that is read whole.
        sizes: Sees to it that its texts are no longer than those of such a file may be.
    """

    where: str
    path: Path
    lines: bool
    header: bool
    rows: int
    columns: Collection[str]
    roles: Roles
    classes: Sequence[str]
    listed: Collection[str]
    parquet: ParquetBatches | None
    sizes: TextSizes

    @classmethod
    def opened(cls, part: Part, columns: Mapping[str, str] | None) -> _Table:
        where, path, _, lines = part
        if isinstance(path, pl.DataFrame):
            raise ConfigError(
                f"{where}: its rows are in memory already; leave streaming out, or save them as Parquet files"
                " and give their folder"
            )
        header = has_header(path, columns)
        if path.suffix.lower() == ".parquet" and not is_gzipped(path):
            parquet = ParquetBatches(path)
            names, rows = parquet.schema.names, sum(parquet.groups)
        else:
            whole, parquet = read_table(path, lines=lines, header=header), None
            names, rows = whole.columns, whole.height
        roles = find_roles(names, where, columns, single=True)
        classes = class_names_of_file(path).get(roles.label, ())
        table = cls(where, path, lines, header, rows, names, roles, classes, (), parquet, TextSizes(path))
        return replace(table, listed=table._columns_of_lists())

    @property
    def first_row(self) -> int:
        """The number of the first row in messages."""
        return first_row(self.path, header=self.header)

    @property
    def names(self) -> tuple[str, ...]:
        """What the columns of its rows are called."""
        if self.roles.label:
            return "text1", "text2", "label"
        if not self.roles.text2:
            return ("text",)
        return ("anchor", "positive", NEGATIVES) if self.roles.negatives else ("anchor", "positive")

    @property
    def wanted(self) -> list[str]:
        """The columns of the file that rows are made of."""
        roles = self.roles
        names = (roles.text1, roles.text2, roles.label, *roles.negatives)
        return [*dict.fromkeys(name for name in names if name)]

    def stretches(self, number: int) -> Iterator[Stretch]:
        """What there is to read; `number` is the table's."""
        if self.parquet is None:
            yield Stretch(number)
            return
        first = start = rows = 0
        for group, count in enumerate(self.parquet.groups):
            if rows and rows + count > _STRETCH:
                yield Stretch(number, (first, group), start)
                first, start, rows = group, start + rows, 0
            rows += count
        yield Stretch(number, (first, len(self.parquet.groups)), start)

    def frames(self, names: Sequence[str], stretch: Stretch | None = None) -> Iterator[pl.DataFrame]:
        """Some of its columns, some rows at a time: of a stretch, or of all rows, once at least."""
        if self.parquet is None:
            whole = read_table(self.path, lines=self.lines, header=self.header).select(names)
            yield from whole.iter_slices(ROWS) if whole.height else [whole]
            return
        if stretch is None:
            yield _frame(self.parquet.schema.empty_table().select(names), self.path)
            stretch = Stretch(0)
        groups = stretch.groups and range(*stretch.groups)
        for batch in self.parquet.read(names, groups, first_row=self.first_row + stretch.start):
            yield _frame(batch, self.path)

    def read(self, stretch: Stretch) -> Iterator[pl.DataFrame]:
        """What rows are made of."""
        if not stretch.start:
            self.sizes.begin()
        for frame in self.frames(self.wanted, stretch):
            self.sizes.add(frame)
            yield frame

    def label_column(self, frame: pl.DataFrame, before: int) -> LabelColumn:
        """The labels of some of its rows, before which there are so many."""
        first = self.first_row + before
        return label_column(frame, self.roles, self.where, classes=self.classes, first_row=first)

    def distinct_labels(self) -> LabelColumn:
        """Each of its labels once."""
        found: list[LabelColumn] = []
        before = 0
        for frame in self.frames([self.roles.label]):
            found.append(self.label_column(frame, before))
            before += frame.height
            if len(found) == _JOINED:
                found = [distinct_labels(found)]
        return distinct_labels(found)

    def written_rows(self) -> int:
        """How many of its rows LLMs or rules wrote."""
        if not {*WRITTEN_BY} <= {*self.columns}:
            return 0
        return sum(map(written_rows, self.frames(WRITTEN_BY)))

    def _columns_of_lists(self) -> Collection[str]:
        """The columns of negatives that hold lists in form of texts, in each of their rows."""
        left, lists = set(self.roles.negatives), set[str]()
        first = self.first_row
        for frame in self.frames(self.roles.negatives) if left else ():
            flat = [name for name in left if not frame[name].dtype.is_nested()]
            said = {name: holds_lists(as_text(frame[name], self.where, first)) for name in flat}
            lists |= {name for name, they_are in said.items() if they_are}
            left = {name for name, they_are in said.items() if they_are is not False}
            first += frame.height
            if not left:
                break
        return lists & left


def _frame(batch: Any, path: Path) -> pl.DataFrame:
    try:
        found = pl.from_arrow(batch)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as error:
        raise DataError(f"not readable as parquet ({one_line(str(error), 200)})", path=path) from error
    return pl.DataFrame(found)
