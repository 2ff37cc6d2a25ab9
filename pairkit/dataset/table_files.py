"""Tables in files: Parquet, with equal bytes for equal rows, or the format that a file's ending names."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import polars.selectors as cs
from polars.io.plugins import register_io_source
from pydantic import AfterValidator

from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import APOSTROPHES, escape_formulas, one_line
from pairkit.base.settings import argument
from pairkit.base.system.files import whole_file, write_bytes
from pairkit.base.system.folders import check_file
from pairkit.base.system.text_lines import readable
from pairkit.dataset.frames import as_json, leaf_types

ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet")
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


def _known(path: Path) -> Path:
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"expected a name that ends in {', '.join(ENDINGS)}")
    return path


TableFile = Annotated[Path, AfterValidator(_known)]
"""A file whose ending names its format."""


def table_bytes(
    path: Path, rows: pl.DataFrame, *, raw: bool = False, header: bool = True
) -> bytes:
    """The content of a file of this name; `raw` CSV has no apostrophes, and parts don't name them."""
    ending = path.suffix.lower()
    if ending == ".parquet":
        return parquet_bytes(rows)
    for name, dtype in rows.schema.items():
        if pl.Binary() in leaf_types(dtype):
            raise DataError(
                f"column {one_line(name)} has bytes, which {ending[1:]} can't store; drop or decode it",
                path=path,
            )
    if ending == ".jsonl":
        return rows.write_ndjson().encode()
    nested = map(as_json, rows.select(cs.nested()))
    flat = rows.with_columns(cs.duration().dt.to_string("iso"), *nested)
    safe = flat if raw else escape_formulas(flat)
    if header and rows.height and not safe.equals(flat):
        safe = safe.with_columns(pl.lit(1).alias(APOSTROPHES))
    separator = "\t" if ending == ".tsv" else ","
    return safe.write_csv(separator=separator, include_header=header).encode()


def write_table(path: Path, frames: Iterable[pl.DataFrame], schema: pl.Schema) -> None:
    """Write a new table frame by frame."""
    check_new(path)
    if path.suffix.lower() == ".parquet":
        stream_parquet(path, frames, schema)
        return
    with whole_file(path) as file:
        file.write(table_bytes(path, pl.DataFrame(schema=schema)))
        for rows in frames:
            file.write(table_bytes(path, rows, header=False))


def check_new(path: Path) -> None:
    """Refuse a file that exists, or whose name doesn't end as that of a table."""
    argument("out", path, TableFile)
    if path.exists():
        raise ConfigError(
            f"{path}: already exists; choose another file, or move it away"
        )


def save_table(path: Path, rows: pl.DataFrame, *, fresh: bool) -> None:
    """Write a file, unless one with other content is there and `fresh` isn't given."""
    data = table_bytes(path, rows)
    check_file(path, data, fresh=fresh)
    write_bytes(path, data)


def write_parquet(path: Path, rows: pl.DataFrame, *, private: bool = False) -> None:
    """Write a table in one step, encoded in memory as polars reports a full disk as a malformed file."""
    write_bytes(path, parquet_bytes(rows), private=private)


def stream_parquet(
    path: Path, frames: Iterable[pl.DataFrame], schema: Mapping[str, pl.DataType]
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
