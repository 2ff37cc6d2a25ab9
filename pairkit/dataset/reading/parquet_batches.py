"""Untrusted Parquet files in batches, after a check of metadata against file size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pairkit.base.errors import DataError
from pairkit.base.printable import one_line
from pairkit.dataset.reading.table_limits import check_parquet, readable

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 4096  # of a batch, at most
_BATCH_BYTES = 8 << 20  # of a batch, on average
_REPEATED_BYTES = 1 << 30  # of a batch in which each row has its column's longest dictionary
_READ_AHEAD = 1 << 20  # bytes of each column


class ParquetBatches:
    """A checked file, read in batches of bounded memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with readable(path), path.open("rb") as file:
            self._metadata = check_parquet(file, path)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns with their types."""
        with readable(self.path):
            return self._metadata.schema.to_arrow_schema()

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Batches of at most `ROWS` rows in order, with valid UTF-8."""
        import pyarrow.parquet as pq

        first_row = 1
        how = {"metadata": self._metadata, "buffer_size": _READ_AHEAD, "pre_buffer": False}
        with readable(self.path), pq.ParquetFile(self.path, **how) as file:
            for batch in file.iter_batches(self._batch_rows(columns), columns=list(columns)):
                self._check(batch, first_row)
                yield batch
                first_row += batch.num_rows

    def _batch_rows(self, columns: Sequence[str]) -> int:
        """Rows per batch; allows for a dictionary that stores a long text once for many rows."""
        average = longest = 1
        with self.path.open("rb") as file:
            for number in range(self._metadata.num_row_groups):
                group = self._metadata.row_group(number)
                chunks = (group.column(column) for column in range(group.num_columns))
                selected = [chunk for chunk in chunks if chunk.path_in_schema.split(".")[0] in columns]
                size = sum(chunk.total_uncompressed_size for chunk in selected)
                average = max(average, size // max(1, group.num_rows))
                longest = max(longest, *(_dictionary_bytes(file, chunk) for chunk in selected), 0)
        return min(ROWS, max(1, _BATCH_BYTES // average), max(1, _REPEATED_BYTES // longest))

    def _check(self, batch: pa.RecordBatch, first_row: int) -> None:
        """Check UTF-8, which other libraries rely on."""
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


def _dictionary_bytes(file: IO[bytes], chunk: Any) -> int:
    """Uncompressed size of a column chunk's dictionary: the second field of the page header (Thrift)."""
    if not chunk.has_dictionary_page:
        return 0
    file.seek(chunk.dictionary_page_offset)
    header = file.read(16)
    zigzag = shift = 0
    for byte in header[3:]:
        zigzag |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return zigzag >> 1 if header[:1] == header[2:3] == b"\x15" else int(chunk.total_uncompressed_size)


def _is_valid(row: pa.RecordBatch) -> bool:
    import pyarrow as pa

    try:
        row.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
