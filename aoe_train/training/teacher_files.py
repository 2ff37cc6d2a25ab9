"""Vectors and scores of a teacher that come as a file.

Vectors are in the columns `text` and `vector`, as `aoe encode` writes them. Scores of pairs are from a
cross-encoder, or from people.

A table with the columns of training rows and one more: `teacher_scores`, a list of the score of (anchor,
positive) and of (anchor, negative) for each negative, or a number for rows of two texts. Or pairs with their
scores as `score` or `label`. Rows to train on are found in it by their texts, in whatever order they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from aoe_train.records import ABSENT
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.printable import one_line
from pairkit.dataset.columns import Roles, find_roles, to_rows
from pairkit.dataset.negatives import NEGATIVES
from pairkit.dataset.tables import first_row, read_table

if TYPE_CHECKING:
    from aoe_train.records import Examples


SCORES = "teacher_scores"
_Pair = tuple[str, str]


def scores_from_file(
    path: Path, examples: Examples, scale: tuple[float, float] | None
) -> npt.NDArray[np.float32]:
    """The scores (row, other column) of each row's first text with each of its others."""
    if examples.kind == "single":
        raise ConfigError("teacher.scores: found single texts, expected pairs or triplets; take a --teacher")
    known = _read(path)
    low, high = scale or (0.0, 1.0)
    first = examples.rows[:, 0]
    found = np.full((len(examples), examples.rows.shape[1] - 1), np.nan, np.float32)
    missing: list[_Pair] = []
    for column in range(1, examples.rows.shape[1]):
        for row, (one, other) in enumerate(
            zip(first.tolist(), examples.rows[:, column].tolist(), strict=True)
        ):
            if other == ABSENT:
                continue
            pair = examples.texts[one], examples.texts[other]
            if pair in known:
                found[row, column - 1] = (known[pair] - low) / (high - low)
            else:
                missing.append(pair)
    if missing:
        one, other = (repr(one_line(text, 60)) for text in missing[0])
        raise DataError(
            f"has no score for {len(missing):,} pairs of the data, such as {one} and {other}; score these,"
            " too",
            path=path,
        )
    return found


def _read(path: Path) -> dict[_Pair, float]:
    table, begin = read_table(path), first_row(path)
    roles = find_roles(table.columns, str(path))
    rows = to_rows(
        table, Roles(roles.text1, roles.text2, negatives=roles.negatives), str(path), first_row=begin
    )
    if SCORES in table.columns:
        lists = _as_lists(table[SCORES], path, begin)
    elif roles.label:
        lists = _as_lists(table[roles.label], path, begin)
    else:
        raise DataError(
            f"no column {SCORES}; there are {one_line(', '.join(table.columns))}: expected {SCORES} beside"
            " the columns of training rows, or pairs with a score",
            path=path,
        )
    known: dict[_Pair, float] = {}
    for row, (pairs, scores) in enumerate(zip(_pairs(rows), lists, strict=True), begin):
        if len(pairs) != len(scores):
            raise DataError(
                f"{len(scores)} scores for {len(pairs)} pairs; expected one of the anchor with its positive"
                " and with each negative",
                path=path,
                row=row,
            )
        for pair, score in zip(pairs, scores, strict=True):
            if known.setdefault(pair, score) != score:
                one, other = (repr(one_line(text, 60)) for text in pair)
                raise DataError(
                    f"{one} and {other} have the scores {known[pair]:g} and {score:g}; keep one of them",
                    path=path,
                    row=row,
                )
    return known


def _pairs(rows: pl.DataFrame) -> Iterator[list[_Pair]]:
    names = [NEGATIVES] if NEGATIVES in rows.columns else []
    for anchor, positive, *negatives in rows.select("anchor", "positive", *names).iter_rows():
        others = [positive, *(text for found in negatives for text in found)]
        yield [(anchor, other) for other in others]


def _as_lists(column: pl.Series, path: Path, begin: int) -> list[list[float]]:
    if not isinstance(column.dtype, pl.List | pl.Array):
        column = (
            column.cast(pl.Float64, strict=False).to_frame().select(pl.concat_list(column.name)).to_series()
        )
    found: list[list[float] | None] = column.to_list()
    for row, scores in enumerate(found, begin):
        if scores is None or not all(isinstance(one, int | float) and np.isfinite(one) for one in scores):
            raise DataError(
                f"{one_line(column.name)} holds what is no number; expected scores, in lists where rows have"
                " negatives (as JSON lines or Parquet)",
                path=path,
                row=row,
            )
    return [list(map(float, scores or ())) for scores in found]


_TEXT, _VECTOR = "text", "vector"


def vectors_from_file(path: Path, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """The vectors of these texts, in their order; other texts in the file are left aside."""
    table = read_table(path)
    for name in (_TEXT, _VECTOR):
        if name not in table.columns:
            raise DataError(
                f"no column {name}; there are {one_line(', '.join(table.columns))}: expected {_TEXT} and"
                f" {_VECTOR}, as `aoe encode` writes them to a .parquet",
                path=path,
            )
    matrix = _matrix(table[_VECTOR], path)
    said = table[_TEXT].cast(pl.String).to_list()
    place = {text: row for row, text in enumerate(said)}
    missing = [text for text in texts if text not in place]
    if missing:
        raise DataError(
            f"has no vector for {len(missing):,} of {len(texts):,} texts of the data, such as"
            f" {one_line(missing[0], 60)!r}; encode these, too",
            path=path,
        )
    return np.ascontiguousarray(matrix[[place[text] for text in texts]])


def _matrix(vectors: pl.Series, path: Path) -> npt.NDArray[np.float32]:
    lists = vectors
    if isinstance(lists.dtype, pl.Array):
        lists = lists.cast(pl.List(lists.dtype.inner))
    inner = lists.dtype.inner if isinstance(lists.dtype, pl.List) else None
    if inner is None or not pl.Series(dtype=inner).dtype.is_numeric():
        raise DataError(f"{_VECTOR} holds no lists of numbers; expected a vector in each row", path=path)
    lengths = lists.list.len().fill_null(0)
    wrong = (lengths != lengths[0]) | (lengths == 0)
    if wrong.any():
        row = wrong.arg_max() or 0
        raise DataError(
            f"{_VECTOR} has {lengths[row]} numbers, in the first row {lengths[0]}; expected equally many in"
            " all",
            path=path,
            row=first_row(path) + row,
        )
    flat = lists.explode().cast(pl.Float32).to_numpy()
    if not np.isfinite(flat).all():
        row = int((~np.isfinite(flat)).argmax()) // int(lengths[0])
        raise DataError(
            f"{_VECTOR} holds NaN, infinity or nothing; expected numbers",
            path=path,
            row=first_row(path) + row,
        )
    return flat.reshape(len(lists), int(lengths[0]))
