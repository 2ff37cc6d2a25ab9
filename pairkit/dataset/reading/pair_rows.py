"""Read the columns of a table as pairs, triplets or single texts, and check every text.

All frames here have the column `ROW`, for the row numbers in messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import polars as pl

from pairkit.base.errors import DataError
from pairkit.base.printable import BLANK, one_line
from pairkit.dataset.frames import MIXED, as_written, storable
from pairkit.dataset.labels import MISSING
from pairkit.dataset.reading.columns import Roles
from pairkit.dataset.records import NEGATIVES, ROW

# A list of texts in the syntax of JSON or Python.
_LIST = r"""(?s)^\s*\[\s*(["'].*["'])?\s*\]\s*$"""


def with_texts(frame: pl.DataFrame, roles: Roles, where: str) -> pl.DataFrame:
    """Rows with texts as String, lists of positives as List, and all negatives in the column `NEGATIVES`."""
    frame = frame.drop(roles.unwanted)
    positives = () if roles.label or not roles.text2 else (roles.text2,)
    texts = []
    lists = []
    for name in filter(None, (roles.text1, roles.text2, *roles.negatives)):
        may_have_lists = name in (*positives, *roles.negatives)
        if not may_have_lists or not _has_lists(frame[name]):
            texts.append(as_text(frame, name, where))
        elif name in positives:
            lists.append(_lists_of_texts(frame, positives, where).alias(name))
    frame = frame.with_columns(texts)
    if roles.negatives:
        negatives = _lists_of_texts(frame, roles.negatives, where)
        lists.append(negatives.alias(NEGATIVES))
    return frame.drop(roles.negatives).with_columns(lists)


def to_pairs(
    frame: pl.DataFrame, roles: Roles, labels: pl.Series | None
) -> pl.DataFrame:
    """Rows of `with_texts` as text1, text2, label and other columns; a triplet becomes a positive and negatives.

    Rows with a null in `labels` are dropped.
    """
    if labels is not None:
        frame = frame.filter(labels.is_not_null())
        labels = labels.drop_nulls()
        binary = labels.is_in([0.0, 1.0]).all()
        labels = labels.cast(pl.Int64 if binary else pl.Float32).alias(roles.label)
        return _pair_rows(frame, roles.text1, roles.text2, labels)
    positives = _one_positive(frame.drop(NEGATIVES, strict=False), roles)
    pairs = _pair_rows(positives, roles.text1, roles.text2, _all_labels(1, positives))
    if not roles.negatives:
        return pairs
    rows = frame.drop(roles.text2).explode(NEGATIVES)
    negatives = _pair_rows(rows, roles.text1, NEGATIVES, _all_labels(0, rows))
    # Stable, so that a positive comes before the negatives of its row.
    return pl.concat([pairs, negatives]).sort(ROW, maintain_order=True)


def _all_labels(label: int, rows: pl.DataFrame) -> pl.Series:
    """A constant label. It has no name, because `_pair_rows` would drop a column of its name."""
    return pl.repeat(label, rows.height, dtype=pl.Int64, eager=True).alias("")


def to_rows(
    frame: pl.DataFrame, roles: Roles, labels: pl.Series | None = None
) -> pl.DataFrame:
    """Rows of `with_texts`: pairs with labels, positives with negatives, or single texts."""
    if labels is not None:
        pairs = to_pairs(frame, roles, labels)
        return pairs.select("text1", "text2", "label", ROW)
    if not roles.text2:
        return frame.select(pl.col(roles.text1).alias("text"), ROW)
    anchor = pl.col(roles.text1).alias("anchor")
    columns = [anchor, pl.col(roles.text2).alias("positive")]
    if roles.negatives:
        columns.append(pl.col(NEGATIVES))
    return _one_positive(frame, roles).select(*columns, ROW)


def _one_positive(frame: pl.DataFrame, roles: Roles) -> pl.DataFrame:
    """A row for each positive, if rows have lists of them."""
    has_positive_lists = frame.schema[roles.text2] == pl.List
    return frame.explode(roles.text2) if has_positive_lists else frame


def check_flat(column: pl.Series, rows: pl.Series, where: str) -> None:
    """Raise DataError if a column has lists or structures in place of single values."""
    if not column.dtype.is_nested():
        return
    values = column.struct.field("json") if column.dtype == MIXED else column
    is_structure = values.is_not_null()
    raise DataError(
        f"the column {one_line(column.name)} has lists or structures; expected a single value in each"
        " row",
        path=where,
        row=int(rows[is_structure.arg_max() or 0]),
    )


def as_text(frame: pl.DataFrame, name: str, where: str) -> pl.Series:
    """A column as texts; raises DataError for lists, and for bytes that aren't UTF-8."""
    column = frame[name]
    check_flat(column, frame[ROW], where)
    text = _decode(column) if column.dtype == pl.Binary else as_written(column)
    invalid = text.is_null() & column.is_not_null()
    if invalid.any():
        raise DataError(
            f"{one_line(name)} has bytes that aren't UTF-8; expected a text",
            path=where,
            row=int(frame[ROW][invalid.arg_max() or 0]),
        )
    return text


def _decode(column: pl.Series) -> pl.Series:
    """Bytes as texts, null if invalid; polars would fail for the whole column."""
    texts = []
    for value in column:
        try:
            texts.append(None if value is None else value.decode())
        except UnicodeDecodeError:
            texts.append(None)
    return pl.Series(column.name, texts, pl.String)


def _pair_rows(
    frame: pl.DataFrame,
    text1: str,
    text2: str,
    label: pl.Series,
) -> pl.DataFrame:
    """text1, text2, label, then other columns, with the prefix `source_` for equal names."""
    names = {name: f"source_{name}" for name in ("text1", "text2", "label")}
    others = frame.drop(text1, text2, label.name, strict=False)
    others = others.rename(names, strict=False)
    pairs = frame.select(
        as_written(frame[text1]).alias("text1"),
        as_written(frame[text2]).alias("text2"),
        label.alias("label"),
    )
    return pairs.hstack(storable(others))


def missing_text_masks(
    frame: pl.DataFrame, roles: Roles
) -> Iterator[tuple[str, pl.Series]]:
    """For each required text: a reason, such as `empty_text1`, and a mask of the rows that lack the text."""
    for name, column in roles.required.items():
        texts = frame[column]
        if texts.dtype == pl.List:
            yield f"empty_{name}", texts.list.len() == 0
            continue
        texts = texts.fill_null("")
        is_missing = texts.str.contains(MISSING)
        is_blank = texts.str.contains(f"^{BLANK}*$")
        yield f"empty_{name}", is_blank
        yield f"placeholder_{name}", is_missing & ~is_blank
    if roles.negatives:
        yield "empty_negative", frame[NEGATIVES].list.len() == 0


def _lists_of_texts(frame: pl.DataFrame, names: Sequence[str], where: str) -> pl.Series:
    """The texts of each row in the order of the columns, without blank ones and placeholders such as `NaN`."""
    columns = {}
    for name in names:
        columns[name] = _as_lists(frame[name], frame[ROW], where).fill_null([])
    lists = pl.DataFrame(columns)
    is_text = ~pl.element().str.contains(MISSING)
    texts = pl.concat_list(names).list.eval(pl.element().filter(is_text))
    return lists.select(texts).to_series()


def _has_lists(column: pl.Series) -> bool:
    """Whether values are lists, also as texts in the syntax of JSON or Python, or some of them are."""
    if column.dtype != pl.String:
        return isinstance(column.dtype, pl.List | pl.Array) or column.dtype == MIXED
    filled = column.drop_nulls()
    return len(filled) > 0 and filled.str.contains(_LIST).all()


def _as_lists(column: pl.Series, rows: pl.Series, where: str) -> pl.Series:
    """A column as lists of texts; a single text becomes a list of one."""
    if not _has_lists(column):
        return column.to_frame().select(pl.concat_list(column.name)).to_series()
    if column.dtype == pl.String:
        return _parse_json_lists(column, rows, where)
    if column.dtype == MIXED:
        cells = column.struct.unnest()
        lists = _parse_json_lists(cells["json"].alias(column.name), rows, where)
        is_text = pl.col("text").is_not_null()
        either = pl.when(is_text).then(pl.concat_list("text")).otherwise(lists)
        return cells.select(either).to_series()
    inner = column.dtype.inner  # type: ignore[attr-defined]
    if inner.is_nested() or inner == pl.Binary:
        raise DataError(
            f"the lists in {one_line(column.name)} don't hold texts; expected texts or lists of texts",
            path=where,
        )
    return column.cast(pl.List(pl.String))


def _parse_json_lists(column: pl.Series, rows: pl.Series, where: str) -> pl.Series:
    """Parse texts of JSON lists; raises DataError for the first one that isn't JSON."""
    lists = []
    for row, value in zip(rows, column, strict=True):
        try:
            parsed = json.loads(value or "[]")
            has_texts = isinstance(parsed, list)
            has_texts &= all(isinstance(text, str | None) for text in parsed)
        except (ValueError, RecursionError):
            has_texts = False
        if not has_texts:
            raise DataError(
                f"{one_line(column.name)} has a value that isn't a JSON list of texts; write it as JSON, or"
                " give the rows as JSON lines or Parquet",
                path=where,
                row=row,
            )
        lists.append(parsed)
    return pl.Series(column.name, lists, pl.List(pl.String))
