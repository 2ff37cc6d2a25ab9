"""Parquet of our own: equal bytes for equal rows."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import polars as pl
from polars.io.plugins import register_io_source

from pairkit.app.errors import DataError
from pairkit.app.printable import one_line
from pairkit.system.files import whole_file, write_bytes

_ROW_GROUP = 8192
# Fixed, so that the bytes do not depend on a library's defaults.
_LOOK: dict[str, Any] = {"compression": "zstd", "compression_level": 7, "statistics": True}


def write_parquet(path: Path, rows: pl.DataFrame, *, private: bool = False) -> None:
    """Write a table in one step; made in memory first, as polars reports a full disk as a malformed file."""
    write_bytes(path, parquet_bytes(rows), private=private)


def stream_parquet(
    path: Path, frames: Iterable[pl.DataFrame], schema: dict[str, Any], *, private: bool = False
) -> None:
    """Write a table of which a frame at a time is in memory; one frame gives `write_parquet`'s bytes."""
    failed: list[BaseException] = []

    def rows(*_: object) -> Iterator[pl.DataFrame]:
        try:
            for frame in frames:
                yield frame.rechunk()
        except BaseException as error:
            failed.append(error)
            raise

    table = register_io_source(rows, schema=schema)
    with whole_file(path, private=private) as file:
        try:
            table.sink_parquet(file, maintain_order=True, row_group_size=_ROW_GROUP, **_LOOK)
        except pl.exceptions.ComputeError:  # by which polars before 1.38 tells of any error of the rows
            if failed:
                raise failed[0] from None
            raise


def parquet_bytes(
    rows: pl.DataFrame, *, row_group: int = _ROW_GROUP, notes: dict[str, str] | None = None
) -> bytes:
    """What `write_parquet` writes."""
    buffer = io.BytesIO()
    rows.rechunk().write_parquet(buffer, row_group_size=row_group, metadata=notes, **_LOOK)
    return buffer.getvalue()


def read_parquet(path: Path, columns: list[str] | None = None) -> pl.DataFrame:
    """Read a table of ours, or some of its columns; see `check_parquet` for those of others."""
    try:
        return pl.read_parquet(path, columns=columns, glob=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise DataError(f"not readable as parquet ({one_line(str(error), 200)})", path=path) from error


def read_notes(path: object, footer: IO[bytes] | None = None) -> dict[str, str]:
    """The notes that go with a table of `parquet_bytes`."""
    try:
        return pl.read_parquet_metadata(str(path) if footer is None else footer)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise DataError(
            f"not readable as parquet ({one_line(str(error), 200)}); delete it and run again", path=str(path)
        ) from error
