"""A Parquet file a few rows at a time: however large it is, only so many are in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairkit.errors import DataError
from pairkit.extras import needed_for
from pairkit.parquet_sizes import check_parquet
from pairkit.printable import one_line

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 4096  # at a time, at most
_BYTES = 8 << 20  # that so many rows take on average
_BYTES_REPEATED = 1 << 30  # that they take, were each its column's longest repeated value
_READ_AHEAD = 1 << 20  # bytes of each column


class ParquetBatches:
    """A file that unpacks to no more than one of its size may; see `check_parquet`.

    Raises:
        ConfigError: pyarrow is not installed.
        DataError: No such file, not readable, or it would unpack to far more than its size.
    """

    def __init__(self, path: Path) -> None:
        with needed_for("a file that is read in pieces"):
            import pyarrow.parquet  # noqa: F401 - the methods import what is then there
        self.path = path
        with self._readable(), path.open("rb") as file:
            self._repeated = check_parquet(file, path).largest_dictionary

    @cached_property
    def schema(self) -> pa.Schema:
        """Its columns with their types."""
        with self._readable():
            return self._metadata.schema.to_arrow_schema()

    @cached_property
    def groups(self) -> list[int]:
        """How many rows each of its row groups has."""
        return [self._metadata.row_group(number).num_rows for number in range(self._metadata.num_row_groups)]

    def read(
        self, columns: Sequence[str], groups: Sequence[int] | None = None, *, first_row: int = 1
    ) -> Iterator[pa.RecordBatch]:
        """Rows in their order, at most `ROWS` at a time, all of whose texts are Unicode.

        Args:
            columns: Their names.
            groups: The row groups to read; by default all.
            first_row: The number of the first row that is read, for messages.

        Raises:
            DataError: Damaged, or a text that is no UTF-8; names the rows.
        """
        import pyarrow.parquet as pq

        groups = range(len(self.groups)) if groups is None else groups
        how = {"metadata": self._metadata, "buffer_size": _READ_AHEAD, "pre_buffer": False}
        with self._readable(), pq.ParquetFile(self.path, **how) as file:
            rows = self._rows(columns, groups)
            for batch in file.iter_batches(rows, row_groups=groups, columns=list(columns)):
                self._check(batch, first_row)
                yield batch
                first_row += batch.num_rows

    def _rows(self, columns: Sequence[str], groups: Sequence[int]) -> int:
        """How many rows of these columns and row groups to read at a time."""
        average = 1
        for number in groups:
            group = self._metadata.row_group(number)
            chunks = (group.column(place) for place in range(group.num_columns))
            wanted = (chunk for chunk in chunks if chunk.path_in_schema.split(".")[0] in columns)
            size = sum(chunk.total_uncompressed_size for chunk in wanted)
            average = max(average, size // max(1, group.num_rows))
        return min(ROWS, max(1, _BYTES // average), max(1, _BYTES_REPEATED // max(1, self._repeated)))

    def _check(self, batch: pa.RecordBatch, first_row: int) -> None:
        """Other libraries take it for granted that texts are UTF-8."""
        import pyarrow as pa

        try:
            batch.validate(full=True)
        except pa.ArrowInvalid as error:
            rows = (batch.slice(number, 1) for number in range(batch.num_rows))
            bad = next((number for number, row in enumerate(rows) if not _is_valid(row)), 0)
            reason = one_line(str(error), 200)
            raise DataError(
                f"not readable as parquet ({reason}); fix the file", path=self.path, row=first_row + bad
            ) from error

    @cached_property
    def _metadata(self) -> Any:
        import pyarrow.parquet as pq

        with self._readable():
            return pq.read_metadata(self.path)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        import pyarrow as pa

        try:
            yield
        except FileNotFoundError as error:
            raise DataError("no such file", path=self.path) from error
        except (pa.ArrowException, OSError) as error:
            reason = one_line(str(error), 200)
            raise DataError(f"not readable as parquet ({reason}); fix the file", path=self.path) from error


def _is_valid(row: pa.RecordBatch) -> bool:
    import pyarrow as pa

    try:
        row.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
