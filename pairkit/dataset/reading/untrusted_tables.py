"""Untrusted tables: limits relative to their file size, checked before decompression; Parquet in batches.

A spreadsheet is read in a process of its own, as the native reader can abort or take all memory.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any

from pairkit.base.errors import DataError
from pairkit.base.extras import needed_for
from pairkit.base.printable import one_line
from pairkit.base.system.text_lines import (
    FREE_BYTES,
    MAX_RATIO,
    note_once,
    read_whole,
    readable,
)

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

MAX_COLUMNS = 10_000
MAX_VALUES_PER_BYTE = 8  # one bit for each of nearly equal values
FREE_VALUES = 1 << 22  # allowed in a column of any file
ROWS = 4096  # of a batch, at most
_BATCH_BYTES = 8 << 20  # of a batch, on average
# Size of a batch in which each row has its column's longest dictionary.
_REPEATED_BYTES = 1 << 30
_READ_AHEAD = 1 << 20  # bytes of each column
_TOO_LARGE = "takes more memory or time than a file of this size may, perhaps for a cell far from the others"


def check_parquet(file: IO[bytes], path: Path) -> Any:
    """A file's metadata, if they are plausible for its size."""
    import pyarrow.parquet as pq

    with _parquet(path):
        metadata = pq.read_metadata(file)
        size = file.seek(0, 2)
        check_width(metadata.num_columns, path)
        groups = [
            metadata.row_group(number) for number in range(metadata.num_row_groups)
        ]
        most_values = max(metadata.num_rows, sum(group.num_rows for group in groups))
        unpacked = 0
        for column in range(metadata.num_columns):
            chunks = [group.column(column) for group in groups]
            most_values = max(most_values, sum(chunk.num_values for chunk in chunks))
            unpacked += sum(chunk.total_uncompressed_size for chunk in chunks)
    check_expansion(most_values, unpacked, path, size)
    return metadata


def check_width(columns: int, path: Path) -> None:
    """Refuse a table with too many columns."""
    if columns > MAX_COLUMNS:
        raise DataError(
            f"has more than {MAX_COLUMNS:,} columns; keep only texts and labels",
            path=path,
        )


def check_expansion(
    values: int,
    unpacked: int,
    path: Path,
    size: int,
) -> None:
    """Refuse more values in a column, or more decompressed bytes, than a file of this size may have."""
    limit = max(FREE_VALUES, MAX_VALUES_PER_BYTE * size)
    if values > limit:
        raise DataError(
            f"has more than {limit:,} values in a column, which fit in {size:,} bytes only if all are"
            " equal; drop that column, or give CSV or JSON lines",
            path=path,
        )
    check_size(unpacked, path, size)


@contextmanager
def _parquet(path: Path) -> Iterator[None]:
    import pyarrow as pa

    with readable(path, "parquet", pa.ArrowException):
        yield


def check_texts(table: pl.DataFrame, path: Path) -> None:
    """Refuse a table with long texts that are stored once for very many rows."""
    text_bytes = sum(map(_text_bytes, table.iter_columns()))
    check_size(text_bytes, path, path.stat().st_size)


def check_size(unpacked: int, path: Path, size: int) -> None:
    """Refuse too many decompressed bytes for a file of this size."""
    if unpacked > max(FREE_BYTES, MAX_RATIO * size):
        raise DataError(
            f"decompresses to more than {MAX_RATIO} times its size, unlike most texts; drop repeated texts,"
            " or write it without compression",
            path=path,
        )


def _text_bytes(column: pl.Series) -> int:
    """Bytes of the texts of all rows, also in lists."""
    import polars as pl  # not needed for reading Parquet in batches

    dtype = column.dtype
    if isinstance(dtype, pl.List | pl.Array):
        return _text_bytes(column.explode())
    if isinstance(dtype, pl.Struct):
        return sum(map(_text_bytes, column.struct.unnest().iter_columns()))
    if dtype == pl.Binary:
        sizes = column.bin.size()
    elif dtype == pl.String:
        sizes = column.str.len_bytes()
    elif isinstance(dtype, pl.Categorical | pl.Enum):
        sizes = column.cat.len_bytes()
    else:
        return 0
    return int(sizes.cast(pl.Int64).sum())


class ParquetBatches:
    """A checked file, read in batches of bounded memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with _parquet(path), path.open("rb") as file:
            self._metadata = check_parquet(file, path)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns with their types."""
        with _parquet(self.path):
            return self._metadata.schema.to_arrow_schema()

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Batches of at most `ROWS` rows in order, with valid UTF-8."""
        import pyarrow.parquet as pq

        first_row = 1
        how = {
            "metadata": self._metadata,
            "buffer_size": _READ_AHEAD,
            "pre_buffer": False,
        }
        with _parquet(self.path), pq.ParquetFile(self.path, **how) as file:
            for batch in file.iter_batches(
                self._batch_rows(columns), columns=list(columns)
            ):
                self._check(batch, first_row)
                yield batch
                first_row += batch.num_rows

    def _batch_rows(self, columns: Sequence[str]) -> int:
        """Rows per batch; allows for a dictionary that stores a long text once for many rows."""
        average = 1
        longest = 1
        with self.path.open("rb") as file:
            for number in range(self._metadata.num_row_groups):
                group = self._metadata.row_group(number)
                size = 0
                for column in range(group.num_columns):
                    chunk = group.column(column)
                    if chunk.path_in_schema.split(".")[0] in columns:
                        size += chunk.total_uncompressed_size
                        longest = max(longest, _dictionary_bytes(file, chunk))
                average = max(average, size // max(1, group.num_rows))
        return max(1, min(ROWS, _BATCH_BYTES // average, _REPEATED_BYTES // longest))

    def _check(self, batch: pa.RecordBatch, first_row: int) -> None:
        """Check UTF-8, which other libraries rely on."""
        import pyarrow as pa

        try:
            batch.validate(full=True)
        except pa.ArrowInvalid as error:
            if batch.num_rows > 1:
                for number in range(batch.num_rows):  # find the row
                    self._check(batch.slice(number, 1), first_row + number)
            reason = one_line(str(error), 200)
            message = f"not readable as parquet ({reason}); write or download it again"
            raise DataError(message, path=self.path, row=first_row) from error


def _dictionary_bytes(file: IO[bytes], chunk: Any) -> int:
    """Uncompressed size of a column chunk's dictionary: the second field of the page header (Thrift)."""
    if not chunk.has_dictionary_page:
        return 0
    file.seek(chunk.dictionary_page_offset)
    header = file.read(16)
    # A page header starts with two integers.
    if not header[:1] == header[2:3] == b"\x15":
        return int(chunk.total_uncompressed_size)
    zigzag = 0
    for place, byte in enumerate(header[3:]):
        zigzag |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            break
    return zigzag >> 1


def read_sheet(file: Path, sheet: str | None) -> pl.DataFrame:
    """A sheet of a spreadsheet; the first one unless named."""
    import polars as pl

    with needed_for("a spreadsheet"):
        import fastexcel  # noqa: F401
    data = read_whole(file)
    # -P: not from the current folder.
    command = [sys.executable, "-P", "-m", __name__, sheet or ""]
    with TemporaryFile() as output:
        process = subprocess.run(  # noqa: S603 - this interpreter on this module
            command,
            input=data,
            stdout=output,
            stderr=subprocess.PIPE,
            check=False,
        )
        if process.returncode:
            last_line = (
                process.stderr.decode("utf-8", "replace").rstrip().rpartition("\n")[2]
            )
            # With any other status, it was killed or aborted.
            reason = last_line if process.returncode == 1 else _TOO_LARGE
            raise DataError(
                f"not readable as a spreadsheet ({one_line(reason, 200)}); save it again as CSV",
                path=file,
            )
        check_size(output.seek(0, 2), file, len(data))
        output.seek(0)
        names = json.loads(output.readline())
        table = pl.read_ipc_stream(output.read())
    if sheet is not None and sheet not in names:
        raise DataError(
            f"no sheet {sheet!r}; there are {one_line(', '.join(names))}", path=file
        )
    if sheet is None and len(names) > 1:
        note_once(
            "%s: read the sheet %s; give %s:NAME for another", file, names[0], file.name
        )
    check_width(table.width, file)
    return table


def _main() -> None:
    """Read the sheet named in the command, in a process for it."""
    # fastexcel warns of columns without a name.
    logging.getLogger("fastexcel").setLevel(logging.ERROR)
    try:
        _write_sheet(sys.stdin.buffer.read(), sys.argv[1])
    except MemoryError:
        sys.exit(_TOO_LARGE)
    except BaseException as error:  # noqa: BLE001 - also a panic in Rust
        sys.exit(str(error).partition("\n")[0])


def _write_sheet(data: bytes, wanted: str) -> None:
    """Write the names of all sheets as a line of JSON, then one sheet as an Arrow stream."""
    import fastexcel
    import pyarrow as pa

    _limit_resources(len(data))
    book = fastexcel.read_excel(data)
    names = book.sheet_names
    output = sys.stdout.buffer
    sheet = book.load_sheet(
        wanted if wanted in names else 0,
        schema_sample_rows=None,
        skip_whitespace_tail_rows=True,
    )
    rows = _without_empty_columns(sheet.to_arrow())
    output.write(json.dumps(names).encode() + b"\n")
    with pa.ipc.new_stream(output, rows.schema) as stream:
        stream.write_batch(rows)


def _without_empty_columns(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Drop columns without name and values, as formatted ones are; the others keep their numbers."""
    names = []
    used = []
    for number, name in enumerate(rows.column_names):
        is_unnamed = name.startswith("__UNNAMED__")
        names.append(f"column_{number + 1}" if is_unnamed else name)
        if not (is_unnamed and {*rows[number].unique().to_pylist()} <= {None, ""}):
            used.append(number)
    return rows.rename_columns(names).select(used)


def _limit_resources(size: int) -> None:
    """Limit the time of this process, and the memory beyond what it has, by the size of its input."""
    # Windows has no limits, and only Linux has one for memory.
    with suppress(ImportError, OSError, ValueError):
        import resource

        seconds = 20 + (size >> 18)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        taken = (
            int(Path("/proc/self/statm").read_text().split()[0])
            * resource.getpagesize()
        )
        memory = taken + (768 << 20) + 40 * size  # a cell of two bytes takes up to 60
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


if __name__ == "__main__":
    _main()
