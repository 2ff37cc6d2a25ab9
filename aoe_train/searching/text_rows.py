"""Reads the rows and texts to be indexed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import isfinite
from typing import Any

import polars as pl

from pairkit.base.errors import DataError
from pairkit.dataset.reading.columns import document_roles, text_column
from pairkit.dataset.reading.in_memory import Source, source_name
from pairkit.dataset.reading.parts import parts_of


def with_rows(pairs: pl.DataFrame, first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """Add the columns of both rows to pairs, with the suffixes _1 and _2."""
    sides = [
        side.rename({name: f"{name}_{number}" for name in side.columns})
        for number, side in enumerate((first, second), 1)
    ]
    return pl.concat([pairs, *sides], how="horizontal")


KEY = "key"  # a column of ids that people write, such as ABC-12; searched as words
_ID_COLUMNS = (KEY, "id", "number", "url")


@dataclass(frozen=True)
class TextRows:
    """Rows with their texts, the columns that form a text, and the number of rows left out as empty."""

    frame: pl.DataFrame
    columns: tuple[str, ...]
    texts: list[str]
    empty: int = 0


def read_rows(source: Source, column_roles: Mapping[str, str] | None = None) -> TextRows:
    """Read the rows of all tables of a source, in order."""
    tables = [part.read(column_roles)[0] for parts in parts_of(source, lines=True).values() for part in parts]
    frame = pl.concat(tables, how="diagonal_relaxed") if tables else pl.DataFrame()
    columns = _columns(frame, source_name(source), column_roles)
    frame = frame.select(name for name, dtype in frame.schema.items() if _is_scalar(dtype))
    texts = joined(frame, columns)
    has_text = pl.Series([bool(text.strip()) for text in texts], dtype=pl.Boolean)
    kept = [text for text in texts if text.strip()]
    if not kept:
        raise DataError(f"no row has a text in {', '.join(columns)}", path=source_name(source))
    return TextRows(frame.filter(has_text), columns, kept, len(texts) - len(kept))


def joined(frame: pl.DataFrame, columns: Sequence[str]) -> list[str]:
    """The text of each row."""
    parts = [frame[name].cast(pl.String).fill_null("").to_list() for name in columns]
    return ["\n\n".join(part for part in row if part.strip()) for row in zip(*parts, strict=True)]


def with_keys(frame: pl.DataFrame, texts: Sequence[str]) -> Sequence[str]:
    """The texts, each after the key of its row if there are keys."""
    if KEY not in frame.columns:
        return texts
    keys = frame[KEY].cast(pl.String).fill_null("")
    return [f"{key} {text}" for key, text in zip(keys, texts, strict=True)]


def _is_scalar(dtype: pl.DataType) -> bool:
    """Whether values of a type can be converted to text."""
    return not dtype.is_nested() and dtype not in (pl.Binary, pl.Duration, pl.Object)


def naming_column(columns: Collection[str]) -> str | None:
    """The column that identifies rows for people, if there is one."""
    return next((name for name in _ID_COLUMNS if name in columns), None)


def as_json(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row for JSON: dates and other types as text, NaN and infinity as None."""
    return {name: _json_value(value) for name, value in row.items()}


def _json_value(value: Any) -> Any:
    if isinstance(value, float) and not isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float) else str(value)


def text_hash(text: str) -> str:
    """SHA-256 of a text."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _columns(frame: pl.DataFrame, where: str, column_roles: Mapping[str, str] | None) -> tuple[str, ...]:
    """The columns that form a text."""
    names, columns = frame.columns, tuple[str, ...]()
    if column_roles.keys() != {"text"} if column_roles else "text" not in map(str.lower, names):
        roles = document_roles(names, where, column_roles, needed=False)
        columns = tuple(roles[role] for role in ("title", "body", "question", "answer") if role in roles)
    columns = columns or (text_column(names, where, column_roles),)
    if nested := [name for name in columns if not _is_scalar(frame.schema[name])]:
        dtype = frame.schema[nested[0]]
        content = "lists" if dtype.is_nested() else f"{dtype}"
        raise DataError(f"the column {nested[0]!r} contains {content}; expected texts", path=where)
    return columns
