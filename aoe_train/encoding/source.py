"""What is to be encoded: texts one at a time, and the table they stand in, a block of rows at a time.

However large a file is, only a block of it is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from aoe_train.encoding.lines import READERS, TEXT, Row
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.printable import one_line
from pairkit.dataset.parquet_batches import ParquetBatches

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK = 4096  # rows


class Source(Protocol):
    """A file with texts."""

    @property
    def path(self) -> Path:
        """The file."""
        ...

    @property
    def column(self) -> str:
        """The texts' column."""
        ...

    @property
    def first_row(self) -> int:
        """The number of the first row as an editor counts: under a header it is 2."""
        ...

    def values(self) -> Iterator[object]:
        """What the texts' column holds, row by row; not yet checked."""
        ...

    def schema(self) -> pa.Schema:
        """All columns with their types; JSON lines are read through for them."""
        ...

    def tables(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """All columns of all rows, in blocks."""
        ...


def open_source(path: Path, column: str | None = None) -> Source:
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


def texts(source: Source) -> Iterator[str]:
    """The texts, row by row."""
    for row, value in enumerate(source.values(), start=source.first_row):
        if not isinstance(value, str):
            found = "nothing" if value is None else f"a value of type {type(value).__name__}"
            raise DataError(f"{found} in {source.column!r}, expected a text", path=source.path, row=row)
        if not value.strip():
            raise DataError("the text is empty; drop the row or fill it", path=source.path, row=row)
        yield value


@dataclass(frozen=True)
class RowSource:
    """A file that is read row by row; see `Source`."""

    path: Path
    column: str
    first_row: int
    rows: Callable[[Path], Iterator[Row]]

    def values(self) -> Iterator[object]:
        """One by one; a row without the column gives None."""
        return (row.get(self.column) for row in self.rows(self.path))

    def schema(self) -> pa.Schema:
        """The widest type of each column over all blocks."""
        import pyarrow as pa

        schema = pa.schema([])
        for rows in self._blocks():
            names = dict.fromkeys(name for row in rows for name in row)
            with _one_type(self.path):
                found = pa.schema([(name, pa.array([row.get(name) for row in rows]).type) for name in names])
                schema = pa.unify_schemas([schema, found], promote_options="permissive")
        return schema

    def tables(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """Rows under `schema`; what a row lacks is null."""
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
    """A Parquet file; see `Source`."""

    path: Path
    column: str
    batches: ParquetBatches
    first_row: int = 1

    def values(self) -> Iterator[object]:
        """Only the texts' column is read."""
        for table in self._read([self.column]):
            yield from table.column(0).to_pylist()

    def schema(self) -> pa.Schema:
        """As in the file."""
        return self.batches.schema.remove_metadata()

    def tables(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """As in the file."""
        return self._read(schema.names)

    def _read(self, columns: list[str]) -> Iterator[pa.Table]:
        import pyarrow as pa

        for batch in self.batches.read(columns):
            yield pa.Table.from_batches([batch])


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
