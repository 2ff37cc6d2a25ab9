"""The rows and texts of an index, and its files.

| file | content |
|---|---|
| `index.json` | the model, the number of rows, and the other fields of `IndexManifest` |
| `rows.parquet` | the input's rows, `sha256` of each text, and each row's file and number |
| `vectors.npy` | vectors of length 1: float32 or int8 |
| `searched.npy` | with a purpose: these among the collection, see `model/collection.py` |
| `probe.npy` | the vector of a fixed text, which identifies the model |
| `ranges.npy`, `searched-ranges.npy` | for int8: minimum and maximum of each dimension |
| `words/` | BM25 |
| `index.faiss` | for `hnsw` |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from math import isfinite
from os.path import commonpath
from pathlib import Path, PurePath
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy import ndarray

from aoe_train.encoding.source import joined
from aoe_train.model.folder_checks import (
    Foreign,
    Length,
    decode,
    mapped_array,
    read_json,
)
from aoe_train.model.quantization import Int8Vectors, Vectors
from aoe_train.searching.nearest import INDEX_FILE, IndexKind
from aoe_train.settings.train_settings import Purpose
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import is_blank, one_line
from pairkit.base.system.text_lines import note_once
from pairkit.dataset.frames import as_json as column_as_json
from pairkit.dataset.frames import as_written, join_frames, leaf_types
from pairkit.dataset.reading.columns import document_roles, text_column
from pairkit.dataset.reading.in_memory import Source, source_name
from pairkit.dataset.reading.parts import parts_of
from pairkit.dataset.records import FILE, ROW
from pairkit.dataset.table_files import read_parquet
from pairkit.extracting.html_blocks import without_tags

ABOUT = "index.json"
ROWS = "rows.parquet"
WORDS = "words"
VECTORS = "vectors.npy"
SEARCHED = "searched.npy"
PROBE = "probe.npy"
RANGES: Mapping[str, str] = {VECTORS: "ranges.npy", SEARCHED: "searched-ranges.npy"}
HASH = "sha256"
IN_MEMORY = "an Encoder in memory"
_REMEDY = "build the index again with --fresh"

_ORIGIN = (FILE, ROW)
HIDDEN = (HASH, *_ORIGIN)  # columns of `rows.parquet` that the input doesn't have
_KEY = "key"  # a column of ids that people write, such as ABC-12; searched as words
_KEY_ROLE = "id"  # as in `--columns id=NAME`
_ID_COLUMNS = ("id", "number", "url")
_CHUNK_COLUMNS = {"place", "anchor"}
_TEXT_ROLES = ("title", "body", "question", "answer")


class IndexManifest(Foreign):
    """The content of `index.json`."""

    format: Literal[1] = 1
    model: str
    text: list[str]
    rows: Length
    dim: Length
    vectors: Literal["float32", "int8"]
    kind: IndexKind
    recall: float | None = None
    weight: float
    purpose: Purpose | None = None
    key: str | None = None


def read_manifest(folder: Path) -> IndexManifest:
    """Read `index.json`; raises ConfigError if there is none, and DataError if it is damaged."""
    path = folder / ABOUT
    if not path.is_file():
        raise ConfigError(
            f"{folder}: no {ABOUT}; make an index first, with `aoe index`"
        )
    return decode(IndexManifest, read_json(path, _REMEDY), path, _REMEDY)


def recorded_model(folder: Path) -> str:
    """The model that made an index; a relative path is relative to the index. Raises if it isn't there."""
    model = read_manifest(folder).model
    if model != IN_MEMORY and not model.startswith(".."):
        return model
    path = folder / model
    if not path.is_dir():
        raise ConfigError(
            f"{folder}: its model, {one_line(model)}, isn't there; give it as --model"
        )
    return str(path)


class IndexContent(NamedTuple):
    """The files of an index except for words and faiss, which are read on first use."""

    about: IndexManifest
    rows: pl.DataFrame
    vectors: Vectors  # the model's, mapped into memory
    searched: Vectors  # the same, or those of a purpose
    probe: ndarray  # (1, dim)


def read_index(folder: Path) -> IndexContent:
    """Read an index; raises DataError if its files don't match each other."""
    about = read_manifest(folder)
    vectors = _stored_vectors(folder, VECTORS, about)
    searched = vectors
    if about.purpose is not None:
        searched = _stored_vectors(folder, SEARCHED, about)
    rows = _stored_rows(folder / ROWS, about)
    probe = np.array(_stored_array(folder / PROBE, (1, about.dim)))
    return IndexContent(about, rows, vectors, searched, probe)


def _stored_vectors(folder: Path, name: str, about: IndexManifest) -> Vectors:
    """Stored vectors, with the ranges of int8."""
    stored = _stored_array(folder / name, (about.rows, about.dim), about.vectors)
    if about.vectors == "float32":
        return np.asarray(stored)  # indexing a memmap is slow
    ranges = _stored_array(folder / RANGES[name], (2, about.dim))
    return Int8Vectors(stored, np.array(ranges))


def _stored_rows(path: Path, about: IndexManifest) -> pl.DataFrame:
    """The rows of an index; raises DataError if they don't match its manifest."""
    try:
        rows = read_parquet(path)
    except DataError as error:
        raise DataError(
            f"is missing or not readable as parquet; {_REMEDY}", path=path
        ) from error
    columns = (*about.text, HASH)
    if rows.height != about.rows or not set(columns).issubset(rows.columns):
        raise DataError(
            f"has {rows.height:,} rows; expected {about.rows:,} with {', '.join(columns)}; {_REMEDY}",
            path=path,
        )
    return rows


def _stored_array(
    path: Path, shape: tuple[int, int], dtype: str = "float32"
) -> ndarray:
    """An array mapped from disk; raises DataError if it has another shape or type."""
    array = mapped_array(path, _REMEDY)
    if array.shape != shape or array.dtype != dtype:
        raise DataError(
            f"has {array.dtype} of shape {array.shape}; expected {dtype} of shape {shape}; {_REMEDY}",
            path=path,
        )
    return array


def is_index(folder: Path) -> bool:
    """Whether a folder contains an index and nothing else, so that it may be replaced."""
    ours = {ABOUT, ROWS, *RANGES, *RANGES.values(), PROBE, WORDS, INDEX_FILE}
    names = {path.name for path in folder.iterdir()}
    return (folder / ABOUT).is_file() and names <= ours


@dataclass(frozen=True)
class TextRows:
    """Rows with their texts, the columns that form a text, how many were empty, and the column of keys."""

    frame: pl.DataFrame
    columns: tuple[str, ...]
    texts: list[str]
    empty: int = 0
    key: str | None = None


def read_rows(
    source: Source, column_roles: Mapping[str, str] | None = None
) -> TextRows:
    """Read the rows of all tables of a source, in order; raises DataError if no row has a text."""
    where = source_name(source)
    roles = dict(column_roles or {})
    table = _numbered_rows(source, roles)
    frame = table.drop(_ORIGIN)
    key = _key_column(frame, where, roles.pop(_KEY_ROLE, None))
    columns = _text_columns(frame, where, roles)
    frame = _in_text_form(frame, columns, where)
    texts = joined(frame, columns)
    has_text = [not is_blank(text) for text in texts]
    if not any(has_text):
        raise DataError(f"no row has a text in {', '.join(columns)}", path=where)
    rows = frame.hstack(table.select(_ORIGIN)).filter(has_text)
    kept = list(compress(texts, has_text))
    return TextRows(rows, columns, kept, has_text.count(False), key)


def _numbered_rows(source: Source, roles: Mapping[str, str]) -> pl.DataFrame:
    """The rows of all tables with their file and number, as in error messages."""
    parts = [*chain.from_iterable(parts_of(source, lines=True).values())]
    files = [PurePath(part.where) for part in parts]
    names = [file.name for file in files]
    if len(set(names)) < len(names):  # in several folders
        folder = commonpath(files)
        names = [str(file.relative_to(folder)) for file in files]
    tables = [pl.DataFrame(schema=[*_ORIGIN])]
    for part, name in zip(parts, names, strict=True):
        tables.append(part.numbered(roles).with_columns(pl.lit(name).alias(FILE)))
    return join_frames(tables)


def _key_column(frame: pl.DataFrame, where: str, key: str | None) -> str | None:
    """The column of keys: the given one, or one called `key`; raises DataError without the given one."""
    names = [name for name, dtype in frame.schema.items() if _is_single_text(dtype)]
    if key is None:
        return _KEY if _KEY in names else None
    if key not in names:
        shown = one_line(", ".join(names))
        raise DataError(
            f"no column {key!r} of numbers or texts for {_KEY_ROLE}; there are {shown}",
            path=where,
        )
    return key


def _text_columns(
    frame: pl.DataFrame, where: str, roles: Mapping[str, str]
) -> tuple[str, ...]:
    """The columns that form a text; `roles` are the given ones. Raises DataError if these aren't texts."""
    names = frame.columns
    is_single = roles.keys() == {"text"}
    if not roles:
        is_single = "text" in map(str.lower, names)
    columns = []
    if not is_single:
        role_columns = document_roles(frame, where, roles, needed=False)
        columns = [role_columns[role] for role in _TEXT_ROLES if role in role_columns]
    if not columns:
        columns = [text_column(names, where, roles, frame.iter_rows(named=True))]
    for name in columns:
        dtype = frame.schema[name]
        if not _is_single_text(dtype):
            problem = f"the column {name!r} contains {dtype}; expected texts"
            raise DataError(problem, path=where)
    return tuple(columns)


def _in_text_form(
    frame: pl.DataFrame, columns: Sequence[str], where: str
) -> pl.DataFrame:
    """The columns whose values can be written as text; structures become JSON, and texts lose their tags.

    Columns without a text form are left out, with a note.
    """
    without_text_form = [
        name for name, dtype in frame.schema.items() if not _has_text_form(dtype)
    ]
    if without_text_form:
        note_once(
            "%s: left out the columns %s, whose values have no text form",
            where,
            ", ".join(without_text_form),
        )
    frame = frame.drop(without_text_form)
    converted = []
    for column in frame:
        dtype = column.dtype
        is_flat_list = isinstance(dtype, pl.List) and not dtype.inner.is_nested()
        if dtype.is_nested() and not is_flat_list:
            converted.append(column_as_json(column))
        elif column.name in columns and dtype == pl.String:
            texts = [text and without_tags(text, where) for text in column]
            converted.append(pl.Series(column.name, texts, pl.String))
    return frame.with_columns(converted)


def _has_text_form(dtype: Any) -> bool:
    """Whether values can be converted to text, also those of lists and structures."""
    without_text = (pl.Binary, pl.Duration, pl.Object)
    return all(leaf not in without_text for leaf in leaf_types(dtype))


def _is_single_text(dtype: Any) -> bool:
    return _has_text_form(dtype) and not dtype.is_nested()


def row_ids(rows: pl.DataFrame, key: str | None) -> pl.Series:
    """What identifies each row for people, named by its column: a key, or the row's number in its file."""
    is_chunk = _CHUNK_COLUMNS.issubset(rows.columns)
    id_columns = ("place",) if is_chunk else _ID_COLUMNS
    names = [
        name
        for name in (key, *id_columns)
        if name in rows.columns and not rows.schema[name].is_nested()
    ]
    if not names:
        return _row_numbers(rows)
    ids = rows[names[0]]
    texts = as_written(ids).fill_null("")
    is_known = texts.str.contains(r"\S")
    if is_known.all():
        return texts if ids.dtype.is_float() else ids
    row_names = "row " + _row_numbers(rows).cast(pl.String)
    return texts.zip_with(is_known, row_names).alias(f"{ids.name} or row")


def _row_numbers(rows: pl.DataFrame) -> pl.Series:
    """The number of each row in its file, with the file's name if there are several."""
    name = ROW if "row" in rows.columns else "row"
    if rows[FILE].n_unique() == 1:
        return rows[ROW].alias(name)
    return rows.select(pl.concat_str(_ORIGIN, separator=":").alias(name)).to_series()


def as_json(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row for JSON: dates and other types as text, NaN and infinity as None."""
    return {name: _json_value(value) for name, value in row.items()}


def _json_value(value: Any) -> Any:
    if isinstance(value, float) and not isfinite(value):
        return None
    if isinstance(value, list):
        return [_json_value(item) for item in value]
    if isinstance(value, str | int | float | None):
        return value
    return str(value)


def with_rows(
    pairs: pl.DataFrame, first: pl.DataFrame, second: pl.DataFrame
) -> pl.DataFrame:
    """Add the columns of both rows to pairs, with the suffixes _1 and _2."""
    sides = [
        first.select(pl.all().name.suffix("_1")),
        second.select(pl.all().name.suffix("_2")),
    ]
    return pl.concat([pairs, *sides], how="horizontal")
