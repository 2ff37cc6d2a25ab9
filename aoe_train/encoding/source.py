"""Texts of an input file with its other columns, and the parts in which they are encoded."""

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
TEXT = "text"  # what the one column of a text file is called


def text_rows(path: Path) -> Iterator[Row]:
    """A row a line."""
    return ({TEXT: line.rstrip("\r\n")} for line in _lines(path))


def tsv_rows(path: Path) -> Iterator[Row]:
    """One header line, no quoting: a quotation mark is a character."""
    return _named((line.rstrip("\r\n").split("\t") for line in _lines(path)), path)


def csv_rows(path: Path) -> Iterator[Row]:
    """One header line and the usual quoting; a quoted field may hold line breaks."""
    csv.field_size_limit(MAX_LINE_BYTES)  # 128 KiB are too few, and a quotation mark may lack its end
    return _named(csv.reader(_lines(path), strict=True), path)


def json_rows(path: Path) -> Iterator[Row]:
    """A JSON object a line."""
    return (row for _, row in read_objects(path))


READERS: dict[str, Callable[[Path], Iterator[Row]]] = {
    ".txt": text_rows,
    ".csv": csv_rows,
    ".tsv": tsv_rows,
    ".jsonl": json_rows,
    ".ndjson": json_rows,
}
"""By the end of a file's name, before any `.gz`."""


def _lines(path: Path) -> Iterator[str]:
    """Lines with their ends."""
    return (line for _, line in read_text_lines(path))


def _named(records: Iterator[list[str]], path: Path) -> Iterator[Row]:
    """Records under the names in the first one, which is row 1."""
    names: list[str] = []
    number = 0
    try:
        for number, record in enumerate(records, start=1):
            if number == 1:
                names = _unique(record, path)
            elif len(record) == len(names):
                yield dict(zip(names, record, strict=True))
            else:
                raise DataError(f"{len(record)} fields, the header has {len(names)}", path=path, row=number)
    except csv.Error as error:
        raise DataError(
            f"not readable as CSV ({error}); fix its quoting", path=path, row=number + 1
        ) from error


def _unique(names: list[str], path: Path) -> list[str]:
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"two columns are called {name!r}; rename one", path=path, row=1)
    return names


_BLOCK = 4096  # rows


def open_source(path: Path, column: str | None = None) -> TextSource:
    """A source by the end of the file's name."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else "".join(suffixes[-1:])
    if kind not in READERS and (kind != ".parquet" or suffixes[-1] == ".gz"):
        raise ConfigError(
            f"{path}: unknown kind of file; give {', '.join(READERS)} (each also as .gz) or .parquet"
        )
    if not path.is_file():
        raise DataError("no such file", path=path)
    if kind == ".txt" and column is not None:
        raise ConfigError(f"--text-column {column}: {path} has no columns, but one text per line")
    if kind == ".parquet":
        batches = ParquetBatches(path)
        return ParquetSource(path, _text_column(batches.schema.names, column, path), batches)
    rows = READERS[kind]
    names = list(next(rows(path), {}))
    header = kind in (".csv", ".tsv")
    return RowSource(path, _text_column(names, column, path), 2 if header else 1, rows)


def texts(source: TextSource) -> Iterator[str]:
    """The texts, row by row."""
    for row, value in enumerate(source.values(), start=source.first_row):
        if not isinstance(value, str):
            found = "nothing" if value is None else f"a value of type {type(value).__name__}"
            raise DataError(f"{found} in {source.column!r}, expected a text", path=source.path, row=row)
        if not value.strip():
            raise DataError("the text is empty; drop the row or fill it", path=source.path, row=row)
        yield value


MOST_TEXTS = 10_000  # of a part
MOST_CHARACTERS = 8_000_000  # long texts make smaller parts
_FEWEST_TEXTS = 1_000
_SHARE = 32  # a part is at most this share of what is before it: many workers find work in short inputs


def parts(texts: Iterable[str], most: int = MOST_TEXTS) -> Iterator[list[str]]:
    """Texts that are sorted by length and encoded together: bounded memory, and a kill costs one at most.

    Where a part ends depends on the texts before it only. So its batches are the same whichever process
    encodes it, and so are its vectors.
    """
    part: list[str] = []
    before, characters = 0, 0
    for text in texts:
        part.append(text)
        characters += len(text)
        if len(part) >= min(most, max(_FEWEST_TEXTS, before // _SHARE)) or characters >= MOST_CHARACTERS:
            yield part
            before += len(part)
            part, characters = [], 0
    if part:
        yield part


@dataclass(frozen=True)
class RowSource:
    """A file that is read row by row; `first_row` is a line number: under a header it is 2."""

    path: Path
    column: str
    first_row: int
    rows: Callable[[Path], Iterator[Row]]

    def values(self) -> Iterator[object]:
        """The cells of the texts' column, not yet checked; a row without the column gives None."""
        return (row.get(self.column) for row in self.rows(self.path))

    def schema(self) -> pa.Schema:
        """The widest type of each column; the file is read through for them."""
        import pyarrow as pa

        schema = pa.schema([])
        for rows in self._blocks():
            names = dict.fromkeys(name for row in rows for name in row)
            with _one_type(self.path):
                found = pa.schema([(name, pa.array([row.get(name) for row in rows]).type) for name in names])
                schema = pa.unify_schemas([schema, found], promote_options="permissive")
        return schema

    def tables(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """All rows in blocks under `schema`; a missing value is null."""
        import pyarrow as pa

        for rows in self._blocks():
            with _one_type(self.path):
                yield pa.Table.from_pylist(rows, schema=schema)

    def _blocks(self) -> Iterator[list[Row]]:
        rows = iter(self.rows(self.path))
        while block := list(islice(rows, _BLOCK)):
            yield block


@dataclass(frozen=True)
class ParquetSource:
    """A Parquet file; see `RowSource`."""

    path: Path
    column: str
    batches: ParquetBatches
    first_row: int = 1

    def values(self) -> Iterator[object]:
        """Only the texts' column is read."""
        for batch in self.batches.read([self.column]):
            yield from batch.column(0).to_pylist()

    def schema(self) -> pa.Schema:
        """As in the file."""
        return self.batches.schema.remove_metadata()

    def tables(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """As in the file."""
        import pyarrow as pa

        return (pa.Table.from_batches([batch]) for batch in self.batches.read(schema.names))


TextSource = RowSource | ParquetSource


def _text_column(names: list[str], wanted: str | None, path: Path) -> str:
    column = wanted or (names[0] if len(names) == 1 else TEXT)
    if not names:
        raise DataError("has no rows; expected at least one", path=path)
    if column not in names:
        raise DataError(
            f"no column {column!r}; there are {one_line(', '.join(names))}: choose with --text-column",
            path=path,
        )
    return column


@contextmanager
def _one_type(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OverflowError) as error:
        raise DataError(
            f"a column's values have no type in common ({error}); fix it, or write .npy, which needs none",
            path=path,
        ) from error
