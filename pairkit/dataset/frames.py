"""Frames of columns whose values have several types: from Python rows, joined, or as texts."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import polars as pl
import polars.selectors as cs
from polars.datatypes import DataType, DataTypeClass

# The type of a column of texts beside lists or structures, which are JSON.
MIXED = pl.Struct({"text": pl.String, "json": pl.String})
# Types of single values; a structure among them has no fields.
_UNSTORABLE = (pl.Int128, pl.UInt128, pl.Object, pl.Struct)


def frame_of(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """A table of rows; values of several kinds become texts, or `MIXED` if some are lists or structures."""
    columns = []
    for name in dict.fromkeys(chain.from_iterable(rows)):
        values = [row.get(name) for row in rows]
        columns.append(_column(name, values))
    return pl.DataFrame(columns)


def _column(name: str, values: Sequence[Any]) -> pl.Series:
    filled = [value for value in values if value is not None]
    kinds = {*map(_kind, filled)}
    if len(kinds) > 1:
        return _mixed(name, values)
    column = pl.Series(name, values, strict=False)
    # Structures may have different kinds of values.
    if column.dtype == pl.Object and object not in kinds:
        return _mixed(name, values)
    # polars drops integers above 128 bits.
    return column if column.count() == len(filled) else _as_texts(name, values)


def _as_texts(
    name: str,
    values: Iterable[object],
    written: Callable[[object], str] = str,
) -> pl.Series:
    texts = [None if value is None else written(value) for value in values]
    return pl.Series(name, texts, pl.String)


def _kind(value: object) -> type:
    if isinstance(value, list):
        return list
    return dict if isinstance(value, dict) else object


def _mixed(name: str, values: Sequence[Any]) -> pl.Series:
    cells: list[dict[str, str] | None] = []
    for value in values:
        is_nested = isinstance(value, list | dict)
        cell = {"json": _json(value)} if is_nested else {"text": str(value)}
        cells.append(None if value is None else cell)
    return pl.Series(name, cells, MIXED)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def storable(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with texts, some of them JSON, in columns that no file format can store."""
    texts = []
    for column in frame.iter_columns():
        if column.dtype == MIXED:
            either = pl.coalesce("text", "json").alias(column.name)
            texts.append(column.struct.unnest().select(either).to_series())
        elif any(leaf in _UNSTORABLE for leaf in leaf_types(column.dtype)):
            texts.append(text_or_json(column))
    return frame.with_columns(texts)


def join_blocks(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The rows of all blocks of a file, as `frame_of` would make them at once."""

    def kind(dtype: DataType) -> object:
        if dtype == MIXED:
            return MIXED
        return dtype.base_type() if dtype.is_nested() else str

    to_mix = _columns_of_kinds(frames, kind) - cs.by_dtype(MIXED)
    blocks = []
    for frame in frames:
        columns = frame.select(to_mix)
        mixed = [_mixed(column.name, column.to_list()) for column in columns]
        blocks.append(frame.with_columns(mixed))
    return join_frames(blocks)


def _columns_of_kinds(
    frames: Sequence[pl.DataFrame], kind: Callable[[DataType], object]
) -> cs.Selector:
    """The columns whose types are of several kinds."""
    kinds = defaultdict[str, set[object]](set)
    for frame in frames:
        for name, dtype in frame.schema.items():
            if dtype != pl.Null:
                kinds[name].add(kind(dtype))
    names = [name for name, found in kinds.items() if len(found) > 1]
    return cs.by_name(names, require_all=False)


def join_frames(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The rows of all frames; columns without a common type become texts."""
    try:
        return pl.concat(frames, how="diagonal_relaxed")
    except pl.exceptions.PolarsError:
        to_text = _columns_of_kinds(
            frames, lambda dtype: "number" if dtype.is_numeric() else dtype
        )
        texts = []
        for frame in frames:
            columns = map(text_or_json, frame.select(to_text))
            texts.append(frame.with_columns(columns))
        return pl.concat(texts, how="diagonal_relaxed")


def text_or_json(column: pl.Series) -> pl.Series:
    """Values as texts, those without a plain text as JSON."""
    if column.dtype == pl.Object:
        return _as_texts(column.name, column)
    if is_plain(column.dtype) and column.dtype != pl.Duration:
        return column.cast(pl.String)
    return as_json(column)


def leaf_types(dtype: Any) -> Iterator[DataType]:
    """The types of the values in lists and structures; of another or an empty one, itself."""
    if isinstance(dtype, pl.Struct) and dtype.fields:
        for field in dtype.fields:
            yield from leaf_types(field.dtype)
    elif isinstance(dtype, pl.List | pl.Array):
        yield from leaf_types(dtype.inner)
    else:
        yield dtype


def as_json(column: pl.Series) -> pl.Series:
    """Lists, structures or other values as JSON texts."""
    return _as_texts(column.name, column.to_list(), _json)


def as_written(column: pl.Series) -> pl.Series:
    """Values as texts; whole numbers without the `.0` that spreadsheets add."""
    texts = column.cast(pl.String, strict=False)
    if column.dtype.is_float():
        return texts.str.replace(r"\.0$", "")
    return texts


def is_plain(dtype: DataType | DataTypeClass) -> bool:
    """Whether the values can be cast to text."""
    return not dtype.is_nested() and dtype != pl.Binary
