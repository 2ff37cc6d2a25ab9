"""Frames of columns whose values have several types: from Python rows, joined, or as texts."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import polars as pl
import polars.selectors as cs
from polars.datatypes import DataType, DataTypeClass

# The type of a column of texts beside lists or structures, which are JSON.
MIXED = pl.Struct({"text": pl.String, "json": pl.String})


def frame_of(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """A table of rows; values of several kinds become texts, or `MIXED` if some are lists or structures."""
    names = dict.fromkeys(chain.from_iterable(rows))
    return pl.DataFrame(
        [_column(name, [row.get(name) for row in rows]) for name in names]
    )


def _column(name: str, values: Sequence[Any]) -> pl.Series:
    kinds = {_kind(value) for value in values if value is not None}
    if len(kinds) > 1:
        return _mixed(name, values)
    column = pl.Series(name, values, strict=False)
    # Structures may have different kinds of values.
    if column.dtype == pl.Object and object not in kinds:
        return _mixed(name, values)
    # No file format has such long integers.
    return column.cast(pl.String) if column.dtype == pl.Int128 else column


def _kind(value: object) -> type:
    if isinstance(value, list):
        return list
    return dict if isinstance(value, dict) else object


def _mixed(name: str, values: Sequence[Any]) -> pl.Series:
    cells: list[dict[str, str] | None] = []
    for value in values:
        if value is None:
            cells.append(None)
        elif isinstance(value, list | dict):
            text = json.dumps(value, ensure_ascii=False, default=str)
            cells.append({"json": text})
        else:
            cells.append({"text": str(value)})
    return pl.Series(name, cells, MIXED)


def unmixed(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with texts, some of them JSON, in columns of `MIXED`."""
    texts = []
    for name in frame.select(cs.by_dtype(MIXED)).columns:
        cells = pl.col(name).struct.field("text", "json")
        texts.append(pl.coalesce(cells).alias(name))
    return frame.with_columns(texts)


def join_blocks(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The rows of all blocks of a file, as `frame_of` would make them at once."""
    kinds = defaultdict[str, set[Any]](set)
    for frame in frames:
        for name, dtype in frame.schema.items():
            if dtype == MIXED:
                kinds[name].add(MIXED)
            elif dtype != pl.Null:
                kinds[name].add(dtype.base_type() if dtype.is_nested() else str)
    names = [name for name, found in kinds.items() if len(found) > 1]
    to_mix = cs.by_name(names, require_all=False) - cs.by_dtype(MIXED)
    blocks = []
    for frame in frames:
        mixed = [_mixed(each.name, each.to_list()) for each in frame.select(to_mix)]
        blocks.append(frame.with_columns(mixed))
    return join_frames(blocks)


def join_frames(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The rows of all frames; columns without a common type become texts."""
    try:
        return pl.concat(frames, how="diagonal_relaxed")
    except pl.exceptions.PolarsError:
        types = defaultdict[str, set[Any]](set)
        for frame in frames:
            for name, dtype in frame.schema.items():
                if dtype != pl.Null:
                    types[name].add("number" if dtype.is_numeric() else dtype)
        names = [name for name, found in types.items() if len(found) > 1]
        texts = [_as_texts(frame, names) for frame in frames]
        return pl.concat(texts, how="diagonal_relaxed")


def _as_texts(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The frame with these columns as texts."""
    texts = []
    for column in frame.select(cs.by_name(names, require_all=False)):
        has_text = is_plain(column.dtype) and column.dtype != pl.Duration
        texts.append(column.cast(pl.String) if has_text else as_json(column))
    return frame.with_columns(texts)


def leaf_types(dtype: Any) -> Iterator[DataType]:
    """The types of the values in lists and structures; of another type, itself."""
    if isinstance(dtype, pl.Struct):
        for field in dtype.fields:
            yield from leaf_types(field.dtype)
    elif dtype.is_nested():
        yield from leaf_types(dtype.inner)
    else:
        yield dtype


def as_json(column: pl.Series) -> pl.Series:
    """Lists, structures or other values as JSON texts."""
    texts = []
    for value in column.to_list():
        text = json.dumps(value, ensure_ascii=False, default=str)
        texts.append(None if value is None else text)
    return pl.Series(column.name, texts, pl.String)


def as_written(column: pl.Series) -> pl.Series:
    """Values as texts; whole numbers without the `.0` that spreadsheets add."""
    texts = column.cast(pl.String, strict=False)
    if column.dtype.is_float():
        return texts.str.replace(r"\.0$", "")
    return texts


def is_plain(dtype: DataType | DataTypeClass) -> bool:
    """Whether the values can be cast to text."""
    return not dtype.is_nested() and dtype != pl.Binary
