"""Vectors that a person brings: a table with a text and its vector in each row, as `aoe encode` writes it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from pairkit.errors import DataError
from pairkit.printable import one_line
from pairkit.tables import first_row, read_table

_TEXT, _VECTOR = "text", "vector"


def given_vectors(path: Path, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """The vectors of these texts, in their order; other texts in the file are left aside.

    Raises:
        DataError: No such columns, a row whose vector is no list of numbers or has another length than the
            first, or a text that is not there; says which.
    """
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
