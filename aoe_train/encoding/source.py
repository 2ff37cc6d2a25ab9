"""Reads the texts and other columns of an input file, and divides texts into parts for encoding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import is_blank
from pairkit.base.system.text_lines import note_once, read_text_lines
from pairkit.dataset.reading.untrusted_tables import ParquetBatches

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa


Row = dict[str, Any]
_BLOCK_ROWS = 4096
# Limits of a part. Later parts grow up to a share of the texts before them, so that short inputs have parts
# for many workers.
MAX_TEXTS = 10_000
MAX_CHARACTERS = 8_000_000
_MIN_TEXTS = 1_000
_SHARE = 32  # the share is 1/32


def open_source(path: Path, columns: Mapping[str, str] | None = None) -> TextSource:
    """Open a file by its extension."""
    if path.name.lower().endswith((".txt", ".txt.gz")):
        if columns:
            raise ConfigError(
                f"--columns text={columns.get('text')}: {path} has no columns; leave it out"
            )
        return RowSource(path, "text", partial(_text_rows, path))
    from pairkit.dataset.reading.columns import text_column  # takes a while to import
    from pairkit.dataset.reading.tables import (
        has_header,
        is_parquet,
        sheet_of,
        table_rows,
    )

    if is_parquet(path):
        batches = ParquetBatches(path)
        names = batches.schema.names
        sample = (row for batch in batches.read(names) for row in batch.to_pylist())
        column = text_column(names, str(path), columns, sample)
        return ParquetSource(path, column, batches)
    rows = partial(table_rows, path, header=has_header(path, columns))
    _, first = next(rows(), (1, None))
    if first is None:
        raise DataError("has no rows; expected at least one", path=path)
    values = (row for _, row in rows())
    column = text_column([*first], str(path), columns, values)
    return RowSource(sheet_of(path)[0], column, rows)


def _text_rows(path: Path) -> Iterator[tuple[int, Row]]:
    """The lines of a text file without blank ones, which are counted."""
    blank = 0
    for row, line in read_text_lines(path):
        if is_blank(line):
            blank += 1
        else:
            yield row, {"text": line.rstrip("\r\n")}
    if blank:
        note_once("%s: blank lines left out: %d", path, blank)


def texts(source: TextSource) -> Iterator[str]:
    """The checked texts of all rows, without the tags of HTML."""
    from pairkit.extracting.html_blocks import without_tags

    for row, value in source.values():
        if not isinstance(value, str):
            found = "no value"
            if value is not None:
                found = f"a value of type {type(value).__name__}"
            raise DataError(
                f"found {found} in {source.column!r}; expected a text",
                path=source.path,
                row=row,
            )
        text = without_tags(value, source.path)
        if is_blank(text):
            raise DataError(
                "the text is empty; drop the row or fill it", path=source.path, row=row
            )
        yield text


def joined(frame: pl.DataFrame, columns: Sequence[str]) -> list[str]:
    """The text of each row: the values of these columns that aren't blank, as paragraphs."""
    from pairkit.dataset.frames import as_written  # imports polars

    text_columns = [as_written(frame[name]).fill_null("").to_list() for name in columns]
    texts = []
    for row in zip(*text_columns, strict=True):
        paragraphs = [value for value in row if not is_blank(value)]
        texts.append("\n\n".join(paragraphs))
    return texts


def parts(texts: Iterable[str]) -> Iterator[list[str]]:
    """Parts that are encoded as a whole; an end depends only on the texts before it, in any process."""
    part = []
    before = 0
    characters = 0
    for text in texts:
        part.append(text)
        characters += len(text)
        most = min(MAX_TEXTS, max(_MIN_TEXTS, before // _SHARE))
        if len(part) >= most or characters >= MAX_CHARACTERS:
            yield part
            before += len(part)
            part = []
            characters = 0
    if part:
        yield part


@dataclass(frozen=True)
class RowSource:
    """A file that is read row by row."""

    path: Path
    column: str
    rows: Callable[[], Iterator[tuple[int, Row]]]

    def values(self) -> Iterator[tuple[int, object]]:
        """The unchecked values of the text column with their rows; None if a row lacks it."""
        return ((row, values.get(self.column)) for row, values in self.rows())

    def schema(self) -> pa.Schema:
        """A type for each column that Parquet can store, found by reading the whole file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pa.schema([])
        for rows in self._blocks():
            with _type_errors(self.path):
                block = pa.schema(list(pa.array(rows).type))
                schema = pa.unify_schemas([schema, block], promote_options="permissive")
        with _type_errors(self.path):
            pq.write_metadata(schema, pa.BufferOutputStream())
        return schema

    def tables(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """All rows as tables of `schema`; missing values are null."""
        import pyarrow as pa

        for rows in self._blocks():
            with _type_errors(self.path):
                yield pa.Table.from_pylist(rows, schema=schema)

    def _blocks(self) -> Iterator[list[Row]]:
        rows = (row for _, row in self.rows())
        while block := list(islice(rows, _BLOCK_ROWS)):
            yield block


@dataclass(frozen=True)
class ParquetSource:
    """A Parquet file; see `RowSource`."""

    path: Path
    column: str
    batches: ParquetBatches

    def values(self) -> Iterator[tuple[int, object]]:
        """The text column; no other column is read."""
        batches = self.batches.read([self.column])
        values = chain.from_iterable(batch.column(0).to_pylist() for batch in batches)
        return enumerate(values, 1)

    def schema(self) -> pa.Schema:
        """The file's schema."""
        return self.batches.schema.remove_metadata()

    def tables(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """The file's batches."""
        import pyarrow as pa

        return (
            pa.Table.from_batches([batch]) for batch in self.batches.read(schema.names)
        )


TextSource = RowSource | ParquetSource


@contextmanager
def _type_errors(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OverflowError) as error:
        raise DataError(
            f"a column doesn't fit into Parquet ({error}); fix the column, or write .npy",
            path=path,
        ) from error
