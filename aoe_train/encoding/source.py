"""Reads the texts and other columns of an input file, and divides texts into parts for encoding."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairkit.app.errors import ConfigError, DataError
from pairkit.app.printable import one_line
from pairkit.dataset.parquet_batches import ParquetBatches
from pairkit.system.lines import MAX_LINE_BYTES, read_objects, read_text_lines

if TYPE_CHECKING:
    import pyarrow as pa


Row = dict[str, Any]
TEXT = "text"  # the column of a text file


def text_rows(path: Path) -> Iterator[Row]:
    """One row per line."""
    return ({TEXT: line.rstrip("\r\n")} for line in _lines(path))


def tsv_rows(path: Path) -> Iterator[Row]:
    """Rows after a header line, without quoting: quotation marks are ordinary characters."""
    return _named((line.rstrip("\r\n").split("\t") for line in _lines(path)), path)


def csv_rows(path: Path) -> Iterator[Row]:
    """Rows after a header line, with quoting; quoted fields may contain line breaks."""
    csv.field_size_limit(MAX_LINE_BYTES)  # not 128 KiB; still a limit for unclosed quotes
    return _named(csv.reader(_lines(path), strict=True), path)


def json_rows(path: Path) -> Iterator[Row]:
    """One JSON object per line."""
    return (row for _, row in read_objects(path))


READERS: dict[str, Callable[[Path], Iterator[Row]]] = {
    ".txt": text_rows,
    ".csv": csv_rows,
    ".tsv": tsv_rows,
    ".jsonl": json_rows,
    ".ndjson": json_rows,
}
"""By file extension, without `.gz`."""


def _lines(path: Path) -> Iterator[str]:
    """Lines including their line ends."""
    return (line for _, line in read_text_lines(path))


def _named(records: Iterator[list[str]], path: Path) -> Iterator[Row]:
    """Rows with the column names from the first record, which is row 1."""
    names: list[str] = []
    number = 0
    try:
        for number, record in enumerate(records, start=1):
            if number == 1:
                names = record
                if repeated := [name for name in names if names.count(name) > 1]:
                    raise DataError(f"two columns are named {repeated[0]!r}; rename one", path=path, row=1)
            elif len(record) == len(names):
                yield dict(zip(names, record, strict=True))
            else:
                raise DataError(
                    f"has {len(record)} fields, but the header has {len(names)}", path=path, row=number
                )
    except csv.Error as error:
        raise DataError(
            f"not readable as CSV ({error}); fix its quoting", path=path, row=number + 1
        ) from error


_BLOCK_ROWS = 4096


def open_source(path: Path, column: str | None = None) -> TextSource:
    """Open a file by its extension."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else "".join(suffixes[-1:])
    if kind not in READERS and (kind != ".parquet" or suffixes[-1] == ".gz"):
        raise ConfigError(
            f"{path}: unknown file extension; expected {', '.join(READERS)} (optionally .gz) or .parquet"
        )
    if not path.is_file():
        raise DataError("no such file", path=path)
    if kind == ".txt" and column is not None:
        raise ConfigError(f"--text-column {column}: {path} has no columns; leave it out")
    if kind == ".parquet":
        batches = ParquetBatches(path)
        return ParquetSource(path, _text_column(batches.schema.names, column, path), batches)
    rows = READERS[kind]
    names = list(next(rows(path), {}))
    header = kind in (".csv", ".tsv")
    return RowSource(path, _text_column(names, column, path), 2 if header else 1, rows)


def texts(source: TextSource) -> Iterator[str]:
    """The checked texts of all rows."""
    for row, value in enumerate(source.values(), start=source.first_row):
        if not isinstance(value, str):
            found = "no value" if value is None else f"a value of type {type(value).__name__}"
            raise DataError(f"found {found} in {source.column!r}; expected a text", path=source.path, row=row)
        if not value.strip():
            raise DataError("the text is empty; drop the row or fill it", path=source.path, row=row)
        yield value


MAX_TEXTS = 10_000  # of a part
MAX_CHARACTERS = 8_000_000  # of a part
_MIN_TEXTS = 1_000
_SHARE = 32  # later parts grow up to 1/32 of the texts before them: short inputs have parts for many workers


def parts(texts: Iterable[str], most: int = MAX_TEXTS) -> Iterator[list[str]]:
    """Divide texts into parts that are each encoded as a whole, with bounded memory.

    The end of a part depends only on the texts before it, so batches and vectors are the same in any process.
    """
    part: list[str] = []
    before, characters = 0, 0
    for text in texts:
        part.append(text)
        characters += len(text)
        if len(part) >= min(most, max(_MIN_TEXTS, before // _SHARE)) or characters >= MAX_CHARACTERS:
            yield part
            before += len(part)
            part, characters = [], 0
    if part:
        yield part


@dataclass(frozen=True)
class RowSource:
    """A file that is read row by row; `first_row` is a line number, 2 after a header."""

    path: Path
    column: str
    first_row: int
    rows: Callable[[Path], Iterator[Row]]

    def values(self) -> Iterator[object]:
        """The unchecked values of the text column; None if a row lacks it."""
        return (row.get(self.column) for row in self.rows(self.path))

    def schema(self) -> pa.Schema:
        """A common type for each column, found by reading the whole file."""
        import pyarrow as pa

        schema = pa.schema([])
        for rows in self._blocks():
            names = dict.fromkeys(name for row in rows for name in row)
            with _type_errors(self.path):
                block = pa.schema([(name, pa.array([row.get(name) for row in rows]).type) for name in names])
                schema = pa.unify_schemas([schema, block], promote_options="permissive")
        return schema

    def tables(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """All rows as tables of `schema`; missing values are null."""
        import pyarrow as pa

        for rows in self._blocks():
            with _type_errors(self.path):
                yield pa.Table.from_pylist(rows, schema=schema)

    def _blocks(self) -> Iterator[list[Row]]:
        rows = iter(self.rows(self.path))
        while block := list(islice(rows, _BLOCK_ROWS)):
            yield block


@dataclass(frozen=True)
class ParquetSource:
    """A Parquet file; see `RowSource`."""

    path: Path
    column: str
    batches: ParquetBatches
    first_row: int = 1

    def values(self) -> Iterator[object]:
        """The text column; no other column is read."""
        for batch in self.batches.read([self.column]):
            yield from batch.column(0).to_pylist()

    def schema(self) -> pa.Schema:
        """The file's schema."""
        return self.batches.schema.remove_metadata()

    def tables(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """The file's batches."""
        import pyarrow as pa

        return (pa.Table.from_batches([batch]) for batch in self.batches.read(schema.names))


TextSource = RowSource | ParquetSource


def _text_column(names: list[str], wanted: str | None, path: Path) -> str:
    column = wanted or (names[0] if len(names) == 1 else TEXT)
    if not names:
        raise DataError("has no rows; expected at least one", path=path)
    if column not in names:
        raise DataError(
            f"no column {column!r}; choose one of {one_line(', '.join(names))} with --text-column", path=path
        )
    return column


@contextmanager
def _type_errors(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OverflowError) as error:
        raise DataError(
            f"the values of a column have no common type ({error}); fix the column, or write .npy", path=path
        ) from error
