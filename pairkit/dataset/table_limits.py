"""Tables of others, compared with the size of their file before they are unpacked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pairkit.app.errors import DataError
from pairkit.app.printable import one_line
from pairkit.system.lines import FREE_BYTES, MAX_RATIO

if TYPE_CHECKING:
    import polars as pl

MAX_COLUMNS = 10_000
MAX_VALUES_PER_BYTE = 8  # one bit each, if values hardly differ
FREE_VALUES = 1 << 22  # allowed in a column whatever the file's size


def check_parquet(file: IO[bytes], path: Path) -> Any:
    """A file's metadata; one that claims more than a file of its size can hold is refused."""
    import pyarrow.parquet as pq

    with readable(path):
        metadata = pq.read_metadata(file)
        size = file.seek(0, 2)
        if metadata.num_columns > MAX_COLUMNS:
            raise DataError(
                f"has more than {MAX_COLUMNS:,} columns; keep those that hold texts and labels", path=path
            )
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        values, unpacked = [0] * metadata.num_columns, 0
        for group in groups:
            for place in range(metadata.num_columns):
                chunk = group.column(place)
                values[place] += chunk.num_values
                unpacked += chunk.total_uncompressed_size
    most = max(FREE_VALUES, MAX_VALUES_PER_BYTE * size)
    if max(metadata.num_rows, sum(group.num_rows for group in groups), *values, 0) > most:
        raise DataError(
            f"claims more than {most:,} values in a column, which {size:,} bytes hold only if they are all"
            " alike; drop that column, or give CSV or JSON lines",
            path=path,
        )
    if unpacked > max(FREE_BYTES, MAX_RATIO * size):
        raise DataError(
            f"unpacks to more than {MAX_RATIO} times its size, as no file of texts does; if it is sound,"
            " write it anew without compression",
            path=path,
        )
    return metadata


def check_dictionaries(file: IO[bytes], path: Path) -> None:
    """See `check_parquet`; also refuse a file in which polars would write out a text for too many rows."""
    import pyarrow.parquet as pq

    metadata = check_parquet(file, path)
    size = file.seek(0, 2)
    with readable(path):
        shared = [field.name for field in metadata.schema.to_arrow_schema() if has_dictionary(field.type)]
        batches = pq.ParquetFile(file, metadata=metadata).iter_batches(columns=shared) if shared else ()
        check_size(sum(shared_bytes(column) for batch in batches for column in batch), path, size)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn errors of reading Parquet into ours."""
    import pyarrow as pa

    try:
        yield
    except FileNotFoundError as error:
        raise DataError("no such file", path=path) from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = one_line(str(error), 200)
        raise DataError(f"not readable as parquet ({reason}); fix the file", path=path) from error


def has_dictionary(kind: Any) -> bool:
    """Whether a type of Arrow keeps a value once for many rows, itself or inside of it."""
    import pyarrow as pa

    inner = (kind.field(number).type for number in range(kind.num_fields))
    return pa.types.is_dictionary(kind) or any(map(has_dictionary, inner))


def shared_bytes(column: Any) -> int:
    """What the texts of a dictionary of Arrow take, each counted for each of its rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        if not (
            pa.types.is_binary(column.type.value_type)
            or pa.types.is_string(column.type.value_type)
            or pa.types.is_large_binary(column.type.value_type)
            or pa.types.is_large_string(column.type.value_type)
        ):
            return 0
        lengths = pc.binary_length(column.dictionary).cast(pa.int64())
        return pc.sum(lengths.take(column.indices)).as_py() or 0
    if pa.types.is_struct(column.type):
        return sum(map(shared_bytes, column.flatten()))
    return shared_bytes(column.flatten()) if has_dictionary(column.type) else 0


def check_texts(table: pl.DataFrame, path: Path) -> None:
    """Refuse a table that holds a long text once for very many rows."""
    import polars as pl  # not for whoever reads Parquet in batches

    texts = sum(int(text.cast(pl.String).str.len_bytes().cast(pl.Int64).sum()) for text in _texts(table))
    check_size(texts, path, path.stat().st_size)


def check_size(texts: int, path: Path, size: int) -> None:
    """Refuse texts of so many bytes in a file of that size."""
    if texts > max(FREE_BYTES, MAX_RATIO * size):
        raise DataError(
            f"its texts are more than {MAX_RATIO} times its size: the same in too many rows; drop repeats",
            path=path,
        )


def _texts(table: pl.DataFrame) -> Iterator[pl.Series]:
    """Its columns of texts, and the texts of its columns of lists."""
    import polars as pl

    text = pl.String | pl.Categorical | pl.Enum
    for column in table.iter_columns():
        dtype = column.dtype
        if isinstance(dtype, text):
            yield column
        elif isinstance(dtype, pl.List | pl.Array) and isinstance(dtype.inner, text):
            yield column.explode()
