"""Write Parquet files with equal bytes for equal rows, and read them."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from pairkit.base.system.files import whole_file, write_bytes
from pairkit.base.system.text_lines import readable

_ROW_GROUP = 8192
_REMEDY = "make the file again"
# A panic isn't an Exception.
POLARS_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
# Fixed, so that the bytes don't depend on the library's defaults.
_FORMAT: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 7,
    "statistics": True,
}


def write_parquet(path: Path, rows: pl.DataFrame, *, private: bool = False) -> None:
    """Write a table in one step, encoded in memory as polars reports a full disk as a malformed file."""
    write_bytes(path, parquet_bytes(rows), private=private)


def stream_parquet(
    path: Path, frames: Iterable[pl.DataFrame], schema: dict[str, Any]
) -> None:
    """Write a table frame by frame; a single frame gives the same bytes as `write_parquet`."""
    failed = []

    def rows(*_: object) -> Iterator[pl.DataFrame]:
        try:
            for frame in frames:
                yield frame.rechunk()
        except BaseException as error:
            failed.append(error)
            raise

    table = register_io_source(rows, schema=schema)
    with whole_file(path) as file:
        try:
            table.sink_parquet(
                file, maintain_order=True, row_group_size=_ROW_GROUP, **_FORMAT
            )
        except pl.exceptions.ComputeError:  # polars 1 hides the error of an iterator
            if failed:
                raise failed[0] from None
            raise


def parquet_bytes(
    rows: pl.DataFrame,
    *,
    row_group: int = _ROW_GROUP,
    notes: dict[str, str] | None = None,
) -> bytes:
    """The bytes that `write_parquet` writes."""
    buffer = io.BytesIO()
    rows.rechunk().write_parquet(
        buffer, row_group_size=row_group, metadata=notes, **_FORMAT
    )
    return buffer.getvalue()


def read_parquet(path: Path, columns: list[str] | None = None) -> pl.DataFrame:
    """Read a table that we wrote, or some of its columns; `check_parquet` is for other files."""
    with readable(path, "parquet", *POLARS_ERRORS, remedy=_REMEDY):
        return pl.read_parquet(path, columns=columns, glob=False)


def read_notes(path: Path) -> dict[str, str]:
    """The metadata that `parquet_bytes` wrote."""
    with readable(path, "parquet", *POLARS_ERRORS, remedy=_REMEDY):
        return pl.read_parquet_metadata(path)
