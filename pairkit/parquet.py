"""Parquet that has equal bytes for equal rows."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl

from pairkit.files import write_bytes

_ROW_GROUP = 8192
_COMPRESSION_LEVEL = 7  # fixed, so that the bytes do not depend on a library's default


def write_parquet(path: Path, rows: pl.DataFrame, *, private: bool = False) -> None:
    """Write a table in one step; see `pairkit.files.write_bytes`.

    It is made in memory first: the library tells a full disk as a malformed file.

    Raises:
        ConfigError: the file can't be written.
    """
    buffer = io.BytesIO()
    rows.rechunk().write_parquet(
        buffer,
        compression="zstd",
        compression_level=_COMPRESSION_LEVEL,
        row_group_size=_ROW_GROUP,
        statistics=True,
    )
    write_bytes(path, buffer.getvalue(), private=private)
