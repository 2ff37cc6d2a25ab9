"""Write a table in the format that the ending of its file names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl
from polars.datatypes import DataType, DataTypeClass

from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import inert, one_line
from pairkit.base.system.files import write_bytes
from pairkit.base.system.folders import check_file
from pairkit.dataset.parquet import parquet_bytes
from pairkit.dataset.records import as_json


def flat(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with lists and structures as JSON texts, for CSV."""
    return rows.with_columns(as_json(column) for column in rows.iter_columns() if column.dtype.is_nested())


def refuse_bytes(rows: pl.DataFrame, file_format: str, where: str | Path) -> None:
    """Refuse columns with bytes, which CSV and JSON can't store."""
    for name, dtype in rows.schema.items():
        if _holds_bytes(dtype):
            raise DataError(
                f"column {one_line(name)} has bytes, which {file_format} can't store; drop or decode it",
                path=where,
            )


def _holds_bytes(dtype: DataType | DataTypeClass) -> bool:
    if isinstance(dtype, pl.Struct):
        return any(_holds_bytes(field.dtype) for field in dtype.fields)
    if isinstance(dtype, (pl.List, pl.Array)):
        return _holds_bytes(dtype.inner)
    return dtype == pl.Binary


def _csv(rows: pl.DataFrame) -> bytes:
    return inert(flat(rows)).write_csv().encode()


def _tsv(rows: pl.DataFrame) -> bytes:
    return inert(flat(rows)).write_csv(separator="\t").encode()


def _jsonl(rows: pl.DataFrame) -> bytes:
    return rows.write_ndjson().encode()


_FORMATS: Mapping[str, Callable[[pl.DataFrame], bytes]] = {
    ".csv": _csv,
    ".tsv": _tsv,
    ".jsonl": _jsonl,
    ".parquet": parquet_bytes,
}


def table_file(path: Path) -> Path:
    """The path, if its ending names a format."""
    if path.suffix.lower() not in _FORMATS:
        raise ConfigError(f"{one_line(str(path))}: expected a name that ends in {', '.join(_FORMATS)}")
    return path


def table_bytes(path: Path, rows: pl.DataFrame) -> bytes:
    """The content of a file of this name."""
    ending = table_file(path).suffix.lower()
    if ending != ".parquet":
        refuse_bytes(rows, ending, path)
    return _FORMATS[ending](rows)


def save_table(path: Path, rows: pl.DataFrame, *, fresh: bool) -> None:
    """Write a file, unless one with other content is there and `fresh` isn't given."""
    data = table_bytes(path, rows)
    check_file(path, data, fresh=fresh)
    write_bytes(path, data)
