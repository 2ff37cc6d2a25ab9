"""The rows of an index, of a table or the chunks of documents, and its files.

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
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import quote

import numpy as np
import polars as pl
from numpy import ndarray
from polars import selectors as cs

from aoe_train.encoding.embedders.embedder import Embedder, count_tokens, local_encoder
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

if TYPE_CHECKING:
    from pairkit.extracting.chunks import Chunk
    from pairkit.extracting.documents import Document

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
TEXT_COLUMNS = ("title", "text")
_MAX_TOKENS = 512  # of a chunk by default; the model may read fewer
_MIN_TOKENS = 8  # of a chunk without those that the model adds
_MAX_WORDS = 256  # of a chunk if the model's tokens are unknown
_SHORTEST = "a"  # one token
_COLUMNS = (*TEXT_COLUMNS, "file", "place", "anchor", "url")
_LINK_FIELDS = ("file", "page", "anchor", "line")
_FOLDER_PAGES = frozenset(("index", "readme"))  # found at the address of their folder


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


class IndexContent(NamedTuple):
    """The files of an index except for words and faiss, which are read on first use."""

    about: IndexManifest
    rows: pl.DataFrame
    vectors: Vectors  # the model's, mapped into memory
    searched: Vectors  # the same, or those of a purpose
    probe: ndarray  # (1, dim)


def read_index(folder: Path) -> IndexContent:
    """Read an index; raises ConfigError if there is none, and DataError if its files don't match each other."""
    path = folder / ABOUT
    if not path.is_file():
        raise ConfigError(
            f"{folder}: no {ABOUT}; make an index first, with `aoe index`"
        )
    about = decode(IndexManifest, read_json(path, _REMEDY), path, _REMEDY)
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
    if not (folder / ABOUT).is_file():
        return False
    return {path.name for path in folder.iterdir()} <= ours


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
    schema = frame.schema
    omitted = [name for name in schema if not _has_text_form(schema[name])]
    if omitted:
        shown = ", ".join(omitted)
        note_once(
            "%s: left out the columns %s, whose values have no text form", where, shown
        )
    frame = frame.drop(omitted)
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


def _has_text_form(dtype: object) -> bool:
    """Whether values can be converted to text, also those of lists and structures."""
    without_text = (pl.Binary, pl.Duration, pl.Object)
    return all(leaf not in without_text for leaf in leaf_types(dtype))


def _is_single_text(dtype: Any) -> bool:
    return _has_text_form(dtype) and not dtype.is_nested()


def row_ids(rows: pl.DataFrame, key: str | None) -> pl.Series:
    """What identifies each row for people, named by its column: a key, or the row's number in its file."""
    is_chunk = _CHUNK_COLUMNS.issubset(rows.columns)
    id_columns = ("place",) if is_chunk else _ID_COLUMNS
    flat_columns = rows.select(~cs.nested()).columns
    name = next((name for name in (key, *id_columns) if name in flat_columns), None)
    if name is None:
        return _row_numbers(rows)
    ids = rows[name]
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


def as_json(row: Mapping[str, object]) -> dict[str, object]:
    """A row for JSON: dates and other types as text, NaN and infinity as None."""
    return {name: _json_value(value) for name, value in row.items()}


def _json_value(value: object) -> object:
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
    return pairs.hstack(first.select(pl.all().name.suffix("_1"))).hstack(
        second.select(pl.all().name.suffix("_2"))
    )


def chunk_rows(
    documents: Sequence[Document],
    embedder: Embedder,
    chunk_tokens: int | None,
    link: str | None,
) -> TextRows:
    """A row for each chunk, with title, text, file, lines, anchor and url; `link` was checked."""
    from pairkit.extracting.chunks import split_into_chunks  # imports markdown_it

    prompt = embedder.prompts.document
    encoder = local_encoder(embedder)
    longest = _MAX_WORDS
    if encoder is not None and encoder.settings.max_length:
        longest = encoder.settings.max_length
    most = chunk_tokens or min(longest, _MAX_TOKENS)
    # The tokens that the model adds to a text: those of the prompt, and special ones.
    added = count_tokens(embedder, [_SHORTEST], prompt).item() - 1
    if not added + _MIN_TOKENS <= most <= longest:
        raise ConfigError(
            f"--chunk-tokens {most}: {embedder.name} reads at most {longest} tokens, and adds {added} to each"
            f" text; expected {added + _MIN_TOKENS} to {longest}"
        )

    def count(texts: Sequence[str]) -> Sequence[int]:
        tokens = count_tokens(embedder, list(texts), prompt)
        return [*(tokens - added).tolist()]

    rows = []
    for document in documents:
        for chunk in split_into_chunks(document, count, most - added):
            place = _place(document, chunk)
            url = _url(document, chunk, link)
            rows.append(
                (chunk.title, chunk.text, document.name, place, chunk.anchor, url)
            )
    if not rows:
        raise DataError("the documents have no text; expected headings or paragraphs")
    frame = pl.DataFrame(rows, dict.fromkeys(_COLUMNS, pl.String), orient="row")
    if not any(frame["url"]):
        frame = frame.drop("url")
    return TextRows(frame, TEXT_COLUMNS, joined(frame, TEXT_COLUMNS))


def _place(document: Document, chunk: Chunk) -> str:
    """File and lines, such as "guide/install.md:12-30", or pages."""
    numbers = str(chunk.first)
    if chunk.last != chunk.first:
        numbers += f"-{chunk.last}"
    if document.unit == "line":
        return f"{document.name}:{numbers}"
    return f"{document.name}, {document.unit} {numbers}"


def check_link(link: str | None) -> None:
    """Refuse an invalid template of addresses."""
    try:
        (link or "").format(**dict.fromkeys(_LINK_FIELDS, ""))
    except (LookupError, AttributeError, TypeError, ValueError) as error:
        fields = ", ".join(f"{{{name}}}" for name in _LINK_FIELDS)
        raise ConfigError(
            f"--link {link}: expected an address with {fields}"
        ) from error


def _url(document: Document, chunk: Chunk, link: str | None) -> str:
    """The address of a chunk; empty if unknown."""
    if link is None:
        if not document.url:
            return ""
        return f"{document.url}#{quote(chunk.anchor)}".rstrip("#")
    path = PurePosixPath(document.name)
    page = path.with_suffix("")
    if path.stem.lower() in _FOLDER_PAGES:
        page = path.parent
    values = {
        "file": str(path),
        "page": "" if page == PurePosixPath() else str(page),
        "anchor": chunk.anchor,
        "line": str(chunk.first),
    }
    quoted = {name: quote(value) for name, value in values.items()}
    return link.format(**quoted).rstrip("#")
