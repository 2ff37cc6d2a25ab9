"""A teacher's vectors and scores from files.

Vectors are in the columns `text` and `vector`. Scores are in a table of training rows with the column
`teacher_scores`: for rows of two texts a number, else a list with the scores of the anchor's positive and
negatives. Or they are the `score` or `label` of pairs. Rows are matched by their texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from aoe_train.objectives.training_rows import ABSENT, Examples
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line
from pairkit.dataset.reading.columns import Roles, find_roles
from pairkit.dataset.reading.pair_rows import to_rows, with_texts
from pairkit.dataset.reading.tables import first_row, read_table
from pairkit.dataset.records import NEGATIVES, ROW

SCORES = "teacher_scores"
_TEXT = "text"
_VECTOR = "vector"
_Pair = tuple[str, str]


def scores_from_file(
    path: Path, examples: Examples, scale: tuple[float, float] | None
) -> npt.NDArray[np.float32]:
    """The scores (row, other column) of each row's first text with each of its others.

    Raises ConfigError for single texts, and DataError if a pair has no score.
    """
    if examples.kind == "single":
        raise ConfigError(
            "teacher.scores: found single texts, expected pairs or triplets; use --teacher"
        )
    score_of_pair = _read_scores(path)
    low, high = scale or (0.0, 1.0)
    scores = np.full((len(examples), examples.rows.shape[1] - 1), np.nan, np.float32)
    missing: list[_Pair] = []
    for row, (first, *others) in enumerate(examples.rows.tolist()):
        for column, other in enumerate(others):
            if other == ABSENT:
                continue
            pair = examples.texts[first], examples.texts[other]
            if pair in score_of_pair:
                scores[row, column] = (score_of_pair[pair] - low) / (high - low)
            else:
                missing.append(pair)
    if missing:
        raise DataError(
            f"has no score for {len(missing):,} training pairs, such as {_excerpts(missing[0])}; add their scores",
            path=path,
        )
    return scores


def _read_scores(path: Path) -> dict[_Pair, float]:
    """The scores of a file by pair of texts; raises DataError for missing or contradictory scores."""
    table = read_table(path)
    start = first_row(path)
    roles = find_roles(table, str(path))
    text_roles = Roles(roles.text1, roles.text2, negatives=roles.negatives)
    numbered = table.with_row_index(ROW, offset=start)
    rows = to_rows(with_texts(numbered, text_roles, str(path)), text_roles)
    column = SCORES if SCORES in table.columns else roles.label
    if not column:
        raise DataError(
            f"found the columns {one_line(', '.join(table.columns))}; expected {SCORES} and the columns of"
            " training rows, or pairs with a score",
            path=path,
        )
    score_of_pair: dict[_Pair, float] = {}
    lists = _scores_by_row(table[column], path, start)
    pairs_and_scores = zip(_pairs_by_row(rows), lists, strict=True)
    for row, (pairs, scores) in enumerate(pairs_and_scores, start):
        if len(pairs) != len(scores):
            raise DataError(
                f"found {len(scores)} scores for {len(pairs)} pairs; expected one for the anchor with its"
                " positive and with each negative",
                path=path,
                row=row,
            )
        for pair, score in zip(pairs, scores, strict=True):
            if score_of_pair.setdefault(pair, score) != score:
                raise DataError(
                    f"{_excerpts(pair)} have the scores {score_of_pair[pair]:g} and {score:g}; keep one of them",
                    path=path,
                    row=row,
                )
    return score_of_pair


def _excerpts(pair: _Pair) -> str:
    """The starts of both texts, for messages."""
    return " and ".join(repr(one_line(text, 60)) for text in pair)


def _pairs_by_row(rows: pl.DataFrame) -> Iterator[list[_Pair]]:
    """The pairs of each row: its anchor with the positive, then with each negative."""
    for row in rows.iter_rows(named=True):
        others = [row["positive"], *row.get(NEGATIVES, ())]
        yield [(row["anchor"], other) for other in others]


def _scores_by_row(column: pl.Series, path: Path, start: int) -> list[list[float]]:
    """The scores of each row, a single number as a list of one; raises DataError for other values."""
    if not isinstance(column.dtype, pl.List | pl.Array):
        column = column.cast(pl.Float64, strict=False).reshape((-1, 1))
    lists = []
    for row, scores in enumerate(column.to_list(), start):
        if scores is None or not all(
            isinstance(score, int | float) and np.isfinite(score) for score in scores
        ):
            raise DataError(
                f"{one_line(column.name)} is not a number; expected scores, as lists for rows with negatives"
                " (JSON lines or Parquet)",
                path=path,
                row=row,
            )
        lists.append([float(score) for score in scores])
    return lists


def vectors_from_file(path: Path, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """The vectors of these texts, in their order; raises DataError if the file lacks one."""
    table = read_table(path)
    for name in (_TEXT, _VECTOR):
        if name not in table.columns:
            raise DataError(
                f"found the columns {one_line(', '.join(table.columns))}; expected {_TEXT} and {_VECTOR}, as"
                " `aoe encode` writes them to a .parquet",
                path=path,
            )
    matrix = _vector_matrix(table[_VECTOR], path)
    table_texts = table[_TEXT].cast(pl.String).to_list()
    row_of = {text: row for row, text in enumerate(table_texts)}
    missing = [text for text in texts if text not in row_of]
    if missing:
        raise DataError(
            f"has no vector for {len(missing):,} of {len(texts):,} training texts, such as"
            f" {one_line(missing[0], 60)!r}; encode these, too",
            path=path,
        )
    return np.ascontiguousarray(matrix[[row_of[text] for text in texts]])


def _vector_matrix(vectors: pl.Series, path: Path) -> npt.NDArray[np.float32]:
    """The vectors of a table; raises DataError unless they have one size and are finite."""
    dtype = vectors.dtype
    is_list = isinstance(dtype, pl.List | pl.Array) and not dtype.inner.is_nested()
    if not is_list or vectors.is_empty():
        raise DataError(
            f"{_VECTOR} has no lists of numbers; expected a vector in each row",
            path=path,
        )
    lists = vectors.cast(pl.List(pl.Float32), strict=False)
    sizes = lists.list.len().fill_null(0).to_numpy()
    wrong = (sizes != sizes[0]) | (sizes == 0)
    if wrong.any():
        row = int(wrong.argmax())
        raise DataError(
            f"{_VECTOR} has {sizes[row]} numbers; expected {sizes[0]}, as in the first row",
            path=path,
            row=first_row(path) + row,
        )
    matrix: npt.NDArray[np.float32] = lists.explode().to_numpy().reshape(len(lists), -1)
    is_finite = np.isfinite(matrix).all(axis=1)
    if not is_finite.all():
        row = first_row(path) + int(is_finite.argmin())
        raise DataError(
            f"{_VECTOR} has NaN, infinity or null; expected numbers", path=path, row=row
        )
    return matrix
