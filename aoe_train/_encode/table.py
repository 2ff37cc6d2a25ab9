"""The input's columns with each row's vector beside them, as Parquet."""

from __future__ import annotations

import os
from pathlib import Path

from aoe_train._encode.codes import Codes
from aoe_train._encode.source import Source
from aoe_train._encode.stored import Vectors
from pairkit.errors import ConfigError
from pairkit.files import open_own, write_errors

VECTOR = "vector"
_LEVEL = 3  # fixed, so that the bytes do not depend on a library's default


def check_table(source: Source) -> None:
    """Find out before any work whether the input can become a table.

    Raises:
        ConfigError: It has a column `vector`.
        DataError: It can't be read, or a column of it has no one type.
    """
    if VECTOR in source.schema().names:
        raise ConfigError(f"{source.path}: has a column {VECTOR!r} already; rename it, or write .npy")


def write_table(path: Path, source: Source, vectors: Vectors, codes: Codes) -> None:
    """Write all columns of `source` and `vector`, a list of a vector's numbers, block by block.

    Raises:
        ConfigError: `path` can't be written.
        DataError: The input can't be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = source.schema()
    width = codes.width(vectors.dim)
    vector = pa.field(VECTOR, pa.list_(pa.from_numpy_dtype(codes.dtype), width), nullable=False)
    start = 0
    with (
        write_errors(path),
        open_own(path, "wb") as file,
        pq.ParquetWriter(file, schema.append(vector), compression="zstd", compression_level=_LEVEL) as writer,
    ):
        for table in source.tables(schema):
            flat = pa.array(codes.of(vectors.read(start, table.num_rows)).ravel())
            column = pa.FixedSizeListArray.from_arrays(flat, width)
            writer.write_table(table.append_column(vector, column))
            start += table.num_rows
        writer.close()
        file.flush()
        os.fsync(file.fileno())
