"""Parquet that has equal bytes for equal rows, and is read once it is known what it would unpack to."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import polars as pl
from polars.io.plugins import register_io_source

from pairkit.errors import DataError
from pairkit.files import whole_file, write_bytes
from pairkit.parquet_sizes import check_parquet
from pairkit.printable import one_line

_ROW_GROUP = 8192
# Fixed, so that the bytes do not depend on a library's defaults.
_LOOK: dict[str, Any] = {"compression": "zstd", "compression_level": 7, "statistics": True}


def write_parquet(path: Path, rows: pl.DataFrame, *, private: bool = False) -> None:
    """Write a table in one step; see `pairkit.files.write_bytes`.

    It is made in memory first: the library tells a full disk as a malformed file.

    Raises:
        ConfigError: the file can't be written.
    """
    write_bytes(path, parquet_bytes(rows), private=private)


def stream_parquet(
    path: Path, frames: Iterable[pl.DataFrame], schema: dict[str, Any], *, private: bool = False
) -> None:
    """Write a table of which a frame at a time is in memory; the bytes for one frame are `write_parquet`'s.

    Of several, columns of lists may be cut into pages elsewhere.

    Args:
        path: The file; whole or absent, see `pairkit.files.whole_file`.
        frames: The table's rows in order; read in another thread, an error of theirs is raised as it is.
        schema: Of each frame.
        private: Leave the file to its owner alone.

    Raises:
        ConfigError: the file can't be written.
    """
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
    """What `write_parquet` writes.

    Args:
        rows: The table.
        row_group: Rows of a part that a reader can pass over.
        notes: Go with the table, in its footer.
    """
    buffer = io.BytesIO()
    rows.rechunk().write_parquet(
        buffer,
        row_group_size=row_group,
        metadata=notes,
        **_LOOK,
    )
    return buffer.getvalue()


def read_parquet(path: Path, columns: list[str] | None = None) -> pl.DataFrame:
    """Read a table, or some of its columns.

    Raises:
        FileNotFoundError: there is none; what to do about it, the caller knows.
        DataError: it is damaged, or would unpack to far more than a file of its size may.
    """
    with path.open("rb") as file:
        check_parquet(file, path)
    try:
        return pl.read_parquet(path, columns=columns, glob=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise DataError(f"not readable as parquet ({one_line(str(error), 200)})", path=path) from error


def read_notes(path: object, footer: IO[bytes] | None = None) -> dict[str, str]:
    """The notes that go with a table of `parquet_bytes`.

    Args:
        path: The file.
        footer: Its end, where it is no file of this machine.

    Raises:
        DataError: the file is damaged.
    """
    try:
        return pl.read_parquet_metadata(str(path) if footer is None else footer)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise DataError(
            f"not readable as parquet ({one_line(str(error), 200)}); delete it and run again", path=str(path)
        ) from error
