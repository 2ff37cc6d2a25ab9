"""Export a dataset as JSON lines or CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

import polars as pl
from polars.datatypes import DataType, DataTypeClass

from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import inert, one_line
from pairkit.base.system.files import write_text
from pairkit.base.system.folders import check_file
from pairkit.dataset.reading.columns import as_json
from pairkit.dataset.records import PairDataset, write_bad_rows

FileFormat = Literal["jsonl", "csv"]


def export_pairs(
    dataset: PairDataset, out: Path, file_format: FileFormat, *, raw: bool = False, fresh: bool = False
) -> list[Path]:
    """Write each split as `out/<split>.jsonl` or `.csv`; nested columns become JSON text in CSV."""
    if file_format not in get_args(FileFormat):
        raise ConfigError(f"format = {file_format}: expected jsonl or csv")
    for rows in dataset.splits.values():
        for name, dtype in rows.schema.items():
            if _holds_bytes(dtype):
                raise DataError(
                    f"column {one_line(name)} has bytes, which {file_format} can't store; drop or decode it",
                    path=dataset.source,
                )
    texts = {
        out / f"{split}.{file_format}": rows.write_ndjson()
        if file_format == "jsonl"
        else (_flat(rows) if raw else inert(_flat(rows))).write_csv()
        for split, rows in dataset.splits.items()
    }
    for path, text in texts.items():
        check_file(path, text.encode(), fresh=fresh)
    for path, text in texts.items():
        write_text(path, text)
    write_bad_rows(out, dataset.bad_rows)
    return list(texts)


def _holds_bytes(dtype: DataType | DataTypeClass) -> bool:
    if isinstance(dtype, pl.Struct):
        return any(_holds_bytes(field.dtype) for field in dtype.fields)
    if isinstance(dtype, (pl.List, pl.Array)):
        return _holds_bytes(dtype.inner)
    return dtype == pl.Binary


def _flat(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(as_json(column) for column in rows.iter_columns() if column.dtype.is_nested())
