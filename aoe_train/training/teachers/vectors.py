"""The vectors of every row's texts by guide and teacher, computed once before training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from aoe_train.encoding.text_vectors import TextVectors
from aoe_train.objectives.kinds import Advisers, check_advisers
from aoe_train.records import ABSENT, AdviceStore, AdviserVectors, ColumnVectors
from aoe_train.training.teachers.scores import scores_from_file
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.printable import one_line
from pairkit.dataset.tables import first_row, read_table

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder
    from aoe_train.objectives.settings import ObjectiveSettings
    from aoe_train.records import Examples
    from aoe_train.settings.training import TeacherSettings
    from aoe_train.training.teachers.teacher import Teacher
    from pairkit.app.progress import Listener


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


def check_teachers(
    teachers: Sequence[Teacher],
    objective: ObjectiveSettings,
    encoder: Encoder,
    examples: Examples,
    given: TeacherSettings,
    *,
    own: bool = False,
) -> None:
    """Refuse what can't work before the teachers have encoded anything, which may take hours."""
    if own:
        if teachers or given.scores:
            role = teachers[0].role if teachers else "teacher"
            raise ConfigError(
                f"a loss of one's own hears of no {role}; leave one of the two out, or let your"
                " loss hold the other model's vectors"
            )
        return
    dims = {teacher.role: teacher.dim or encoder.dim for teacher in teachers}
    scores = given.scores is not None
    known = Advisers(guide="guide" in dims, teacher_dim=dims.get("teacher"), scores=scores)
    check_advisers(objective, dim=encoder.dim, kind=examples.kind, advisers=known)
    for teacher in teachers:
        teacher.check(objective, encoder.settings)
        teacher.prompts(examples)


def precompute_vectors(
    teachers: Iterable[Teacher],
    datasets: Mapping[str, Examples],
    given: TeacherSettings,
    cache: Path,
    show: Listener,
) -> dict[str, AdviceStore]:
    """Encode all texts by guide and teacher, or take vectors from the cache, and read given scores."""
    return _for_all(
        teachers, datasets, given, lambda teacher, examples: _vectors(teacher, examples, cache, show)
    )


def placeholder_vectors(
    teachers: Iterable[Teacher],
    datasets: Mapping[str, Examples],
    given: TeacherSettings,
    cache: Path,
    show: Listener,
) -> dict[str, AdviceStore]:
    """What `precompute_vectors` gives in size, with zeros for what a model would have to encode."""

    def vectors(teacher: Teacher, examples: Examples) -> AdviserVectors:
        if teacher.dim is None:
            return _vectors(teacher, examples, cache, show)
        zeros = np.zeros((1, teacher.dim), np.float32)
        column = ColumnVectors(zeros, np.zeros(len(examples), np.int64))
        return AdviserVectors([column] * max(2, examples.rows.shape[1]))

    return _for_all(teachers, datasets, given, vectors)


def _for_all(
    teachers: Iterable[Teacher],
    datasets: Mapping[str, Examples],
    given: TeacherSettings,
    vectors: Callable[[Teacher, Examples], AdviserVectors],
) -> dict[str, AdviceStore]:
    found: dict[str, dict[str, AdviserVectors]] = {name: {} for name in datasets}
    for teacher in teachers:
        for name, examples in datasets.items():
            found[name][teacher.role] = vectors(teacher, examples)
        teacher.release()
    return {name: AdviceStore(found[name], _scores(given, examples)) for name, examples in datasets.items()}


def _scores(given: TeacherSettings, examples: Examples) -> np.ndarray | None:
    if given.scores is None:
        return None
    return scores_from_file(Path(given.scores), examples, given.score_range)


def _vectors(teacher: Teacher, examples: Examples, cache: Path, show: Listener) -> AdviserVectors:
    columns: dict[int, ColumnVectors] = {}
    prompts = teacher.prompts(examples)
    for prompt in dict.fromkeys(prompts):
        own = [column for column, words in enumerate(prompts) if words == prompt]
        rows = examples.rows[:, own]
        numbers, flat = np.unique(np.where(rows == ABSENT, rows[:1, :1], rows), return_inverse=True)
        texts = [examples.texts[number] for number in numbers.tolist()]
        if teacher.file is not None:
            found = vectors_from_file(teacher.file, texts)
        else:
            made = TextVectors(texts, teacher.identity, prompt, folder=cache)
            found = made.load_or_make(lambda: teacher.encoder, show)
        places = flat.reshape(rows.shape)
        columns |= {column: ColumnVectors(found, places[:, at]) for at, column in enumerate(own)}
    found_columns = [columns[column] for column in range(len(prompts))]
    views = 2 if examples.kind == "single" else 1  # as the text is its own positive
    return AdviserVectors(found_columns * views)
