"""Guide and teacher of a run, whose vectors of the training texts are computed once, before training.

Vectors in a file are in the columns `text` and `vector`. Scores are in a table of training rows with the column
`teacher_scores`: for rows of two texts a number, else a list with the scores of the anchor's positive and
negatives. Or they are the `score` or `label` of pairs. Rows are matched by their texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from aoe_train.data.column_prompts import column_names, column_prompts
from aoe_train.data.neighbourhoods import neighbour_teacher
from aoe_train.encoding.encode_run import cached_vectors
from aoe_train.model.encoder import Encoder
from aoe_train.model.run_folder import cache_dir
from aoe_train.objectives.objective_checks import TeacherInfo, check_teacher_use
from aoe_train.objectives.training_rows import (
    ABSENT,
    ColumnVectors,
    Examples,
    TeacherOutputs,
    TeacherVectors,
    TextSelection,
)
from aoe_train.settings.run_settings import TeacherModelSettings, TeacherSettings
from aoe_train.settings.train_settings import (
    DOCUMENTS,
    QUERY,
    EncoderSettings,
    TrainSettings,
)
from aoe_train.training.processes import on_main
from pairkit.base.cli.progress import Listener, stage
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line
from pairkit.base.system.files import sha256
from pairkit.dataset.reading.columns import Roles, find_roles
from pairkit.dataset.reading.pair_rows import to_rows, with_texts
from pairkit.dataset.reading.tables import first_row, read_table
from pairkit.dataset.records import NEGATIVES, ROW
from pairkit.extracting.html_blocks import without_tags

if TYPE_CHECKING:
    from aoe_train.data.run_data import Data, Sources
    from aoe_train.objectives.objective_settings import ObjectiveSettings
    from aoe_train.training.load import Loaded


SCORES = "teacher_scores"
_TEXT = "text"
_VECTOR = "vector"
_Pair = tuple[str, str]
Role = Literal["guide", "teacher"]
_FILES = (".parquet", ".jsonl")
_SCORE_PARTS = ("margin_mse", "score_distill")


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
    scores = np.zeros((len(examples), examples.rows.shape[1] - 1), np.float32)
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
    values = table[column]
    if not values.dtype.is_nested():
        values = values.cast(pl.Float64, strict=False)
    score_of_pair: dict[_Pair, float] = {}
    rows_and_scores = zip(rows.iter_rows(named=True), values.to_list(), strict=True)
    for number, (row, found) in enumerate(rows_and_scores, start):
        others = [row["positive"], *row.get(NEGATIVES, ())]
        pairs = [(row["anchor"], other) for other in others]
        scores = found if isinstance(found, list) else [found]
        if problem := _add_scores(score_of_pair, pairs, scores):
            raise DataError(problem, path=path, row=number)
    return score_of_pair


def _add_scores(
    score_of_pair: dict[_Pair, float], pairs: Sequence[_Pair], scores: Sequence[Any]
) -> str | None:
    """Add the scores of a row's pairs; returns what is wrong with them, if anything."""
    for score in scores:
        if not isinstance(score, int | float) or not np.isfinite(score):
            return (
                "the score is not a number; expected scores, as lists for rows with negatives (JSON lines or"
                " Parquet)"
            )
    if len(pairs) != len(scores):
        return (
            f"found {len(scores)} scores for {len(pairs)} pairs; expected one for the anchor with its"
            " positive and with each negative"
        )
    for pair, score in zip(pairs, scores, strict=True):
        known = score_of_pair.setdefault(pair, float(score))
        if known != score:
            return f"{_excerpts(pair)} have the scores {known:g} and {score:g}; keep one of them"
    return None


def _excerpts(pair: _Pair) -> str:
    """The starts of both texts, for messages."""
    return " and ".join(repr(one_line(text, 60)) for text in pair)


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
    row_of = {text: row for row, text in enumerate(table_texts) if text is not None}
    # Single texts are trained on without the tags of HTML.
    for text, row in [*row_of.items()]:
        row_of.setdefault(without_tags(text, path), row)
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
    number = dtype.inner if isinstance(dtype, pl.List | pl.Array) else None
    if number is None or number.is_nested() or vectors.is_empty():
        raise DataError(
            f"{_VECTOR} has no lists of numbers; expected a vector in each row",
            path=path,
        )
    if number in (pl.Int8, pl.UInt8):
        raise DataError(
            f"{_VECTOR} has quantised vectors; encode the texts again without --quantize",
            path=path,
        )
    lists = vectors.cast(pl.List(pl.Float32), strict=False)
    sizes = lists.list.len().fill_null(0)
    is_finite = lists.list.eval(pl.element().is_finite().fill_null(value=False))
    is_usable = (sizes == sizes[0]) & (sizes > 0) & is_finite.list.all()
    if not is_usable.all():
        row = is_usable.to_list().index(False)
        raise DataError(
            f"{_VECTOR} has {sizes[row]} numbers, or NaN, infinity or null; expected {sizes[0]} numbers, as in"
            " the first row",
            path=path,
            row=first_row(path) + row,
        )
    matrix: npt.NDArray[np.float32] = lists.explode().to_numpy().reshape(len(lists), -1)
    return matrix


class Teacher:
    """A guide or a teacher; one process loads it to identify it, and the others get the identity."""

    def __init__(
        self,
        role: Role,
        settings: TeacherModelSettings,
        backbone: Encoder | None = None,
    ) -> None:
        """Check its settings; `backbone` is that of the run, before training, if it teaches itself."""
        self.role = role
        self.name = settings.model or ""
        self._settings = settings
        self._backbone = backbone
        self.identity: Mapping[str, Any] = {}  # set by `load_teachers`
        if self.file is not None and (settings.revision or settings.prompts):
            raise ConfigError(
                f"{role}.prompts and {role}.revision have no effect on vectors from a file ({self.name});"
                " leave them out"
            )
        if self.name.lower().endswith(".npy"):
            raise ConfigError(
                f"{role} {self.name}: a .npy lacks the texts of its vectors; expected a .parquet, which `aoe"
                " encode` can write"
            )

    @property
    def file(self) -> Path | None:
        """The file of vectors, if it is not a model."""
        path = Path(self.name)
        return path if path.suffix.lower() in _FILES else None

    @cached_property
    def encoder(self) -> Encoder:
        """The model, loaded on first use."""
        return self._backbone or Encoder.load(
            self.name, revision=self._settings.revision, inference_only=True
        )

    def unload(self) -> None:
        """Free the memory of the model."""
        self.__dict__.pop("encoder", None)

    def identify(self) -> Mapping[str, object]:
        """The hashes and settings that determine its vectors, for run.json."""
        if self.file is None:
            return {**self.encoder.identity(), "dim": self.encoder.dim}
        if not self.file.is_file():
            raise ConfigError(
                f"{self.role} {self.name}: no such file; give a model, or a file of vectors"
            )
        return {"file": sha256(self.file)}

    @property
    def dim(self) -> int | None:
        """Size of its vectors; None for a file, which isn't read yet."""
        return self.identity.get("dim")

    @cached_property
    def _encoder_settings(self) -> EncoderSettings | None:
        """The settings of the model; None for a file."""
        settings = self.identity.get("settings")
        return None if settings is None else EncoderSettings.model_validate(settings)

    def prompts(self, examples: Examples) -> list[str]:
        """The prompt of each column."""
        settings = self._encoder_settings
        columns = examples.rows.shape[1]
        if settings is None:
            return [""] * columns
        prompts = self._settings.prompts
        named = settings.named_prompts
        has_anchors = examples.kind in ("positive", "triplet")
        is_for_search = {QUERY, *DOCUMENTS} & named.prompts.keys()
        if prompts is None and has_anchors and is_for_search:
            return [named.query] + [named.document] * (columns - 1)
        try:
            return column_prompts(prompts, settings, [examples]).by_column(examples)
        except ConfigError as error:
            raise ConfigError(f"{self.role}.{error}") from error

    def check(self, objective: ObjectiveSettings, trained: EncoderSettings) -> None:
        """Raise ConfigError if the objective doesn't support the similarity of the vectors."""
        settings = self._encoder_settings
        teacher_similarity = None if settings is None else similarity_of(settings)
        if self.role == "guide":
            if teacher_similarity not in (None, "cosine"):
                raise ConfigError(
                    f"guide {self.name}: its vectors are compared by {teacher_similarity}; expected a model with cosine"
                    " similarity"
                )
            return
        active = objective.weights.active
        score_parts = [part for part in _SCORE_PARTS if part in active]
        similarity = similarity_of(trained)
        is_same = teacher_similarity in (None, similarity)
        if score_parts and not (is_same and similarity in ("cosine", "dot")):
            raise ConfigError(
                f"teacher {self.name}: its vectors are compared by {teacher_similarity or similarity}, the model's by"
                f" {similarity}, but {', '.join(score_parts)} needs both by cosine or both by dot; use another"
                " teacher, --set encoder.similarity_fn_name=…, or the part embed_distill"
            )

    def record(self, examples: Examples, dim: int) -> dict[str, object]:
        """Its entry in run.json, which the card shows."""
        record = {"model": self.name, "revision": self._settings.revision, "dim": dim}
        settings = self._encoder_settings
        if settings is None:
            return {**record, **self.identity}
        prompts = dict(zip(column_names(examples), self.prompts(examples), strict=True))
        return {
            **record,
            "weights": self.identity["weights"],
            "prompts": prompts,
            "similarity": settings.similarity_fn_name,
        }


def similarity_of(settings: EncoderSettings) -> str:
    """The similarity of a model's vectors; dot products of vectors of length 1 are cosines."""
    similarity = settings.similarity_fn_name
    return "cosine" if settings.normalize and similarity == "dot" else similarity


def scores_identity(teacher: TeacherSettings) -> dict[str, object]:
    """The hash of the given scores, for run.json; empty without scores. Raises ConfigError without a file."""
    if teacher.scores is None:
        if teacher.score_range is not None:
            raise ConfigError(
                "teacher.score_range has no effect without --teacher-scores; leave it out"
            )
        return {}
    path = Path(teacher.scores)
    if not path.is_file():
        raise ConfigError(f"--teacher-scores {path}: no such file")
    return {"teacher_scores": sha256(path)}


def load_teachers(
    settings: TrainSettings,
    datasets: Mapping[str, TrainSettings],
    sources: Sources,
    encoder: Encoder,
    data: Data,
    show: Listener,
) -> list[Teacher]:
    """The guide and teacher of a run, identified by rank 0."""
    teachers = _guide_and_teacher(settings, encoder, sources.backbone)
    with stage("load guide and teacher", show) if teachers else nullcontext():
        identities = on_main(lambda: [teacher.identify() for teacher in teachers])
    for teacher, identity in zip(teachers, identities, strict=True):
        teacher.identity = identity
    # Unsupported combinations are refused before the teachers encode texts, which can take hours.
    dims = {teacher.role: teacher.dim or encoder.dim for teacher in teachers}
    has_scores = settings.teacher.scores is not None
    info = TeacherInfo("guide" in dims, dims.get("teacher"), scores=has_scores)
    for name, rows in data.train.items():
        objective = datasets[name].objective
        if name not in sources.losses:
            check_teacher_use(objective, kind=rows.kind, teachers=info)
            for teacher in teachers:
                teacher.check(objective, encoder.settings)
                teacher.prompts(rows)
        elif teachers or has_scores:
            role = teachers[0].role if teachers else "teacher"
            raise ConfigError(
                f"a custom loss can't use a {role}; leave one of the two out, or let the loss load the other"
                " model's vectors"
            )
    return teachers


def _guide_and_teacher(
    settings: TrainSettings, backbone: Encoder, backbone_name: str
) -> list[Teacher]:
    """The guide and the teacher that a run has; with smoothing, the backbone teaches itself.

    Raises ConfigError for settings of one that has no model.
    """
    teachers = []
    sections: dict[Role, TeacherModelSettings] = {
        "guide": settings.guide,
        "teacher": settings.teacher,
    }
    for role, section in sections.items():
        if section.model is not None:
            teachers.append(Teacher(role, section))
        elif section.revision or section.prompts:
            raise ConfigError(
                f"{role}: has settings but no model; give --{role}, or leave them out"
            )
        elif role == "teacher" and settings.teacher.smoothing is not None:
            own = {"model": backbone_name, "prompts": settings.prompts}
            teachers.append(Teacher(role, section.model_copy(update=own), backbone))
    return teachers


def precompute_vectors(
    loaded: Loaded, *, placeholders: bool
) -> dict[str, TeacherOutputs]:
    """Vectors of all texts by guide and teacher, and the given scores.

    With smoothing, a single text learns from its neighbours. With `placeholders`, vectors of models are zeros;
    those in files are read.
    """
    settings = loaded.settings.teacher
    datasets = loaded.data.train
    outputs = {}
    for name, examples in datasets.items():
        scores = None
        if settings.scores is not None:
            scores = scores_from_file(
                Path(settings.scores), examples, settings.score_range
            )
        outputs[name] = TeacherOutputs({}, scores)
    for teacher in loaded.teachers:
        for name, examples in datasets.items():
            if placeholders and teacher.dim is not None:
                zeros = np.zeros((1, teacher.dim), np.float32)
                column = ColumnVectors(zeros, np.zeros(len(examples), np.int64))
                columns = max(2, examples.rows.shape[1])
                teacher_vectors = TeacherVectors([column] * columns)
            else:
                teacher_vectors = _encode_columns(
                    teacher, examples, loaded.process.show
                )
            if teacher.role == "teacher" and settings.smoothing is not None:
                # Both columns are equal, as `collate` repeats a single text.
                column, _ = teacher_vectors.columns
                by_text = column.vectors[column.indices]
                teacher_vectors = neighbour_teacher(examples.texts, by_text, settings)
            outputs[name].vectors[teacher.role] = teacher_vectors
        teacher.unload()
    return outputs


def _encode_columns(
    teacher: Teacher, examples: Examples, show: Listener
) -> TeacherVectors:
    """The vectors of all columns; texts of columns with the same prompt are encoded together."""
    by_column: dict[int, ColumnVectors] = {}
    prompts = teacher.prompts(examples)
    for prompt in dict.fromkeys(prompts):
        columns = [column for column, each in enumerate(prompts) if each == prompt]
        rows = examples.rows[:, columns]
        # Absent texts are replaced by any other text.
        present = np.where(rows == ABSENT, rows[:1, :1], rows)
        used, flat = np.unique(present, return_inverse=True)
        texts = TextSelection(examples.texts, used)
        if teacher.file is not None:
            vectors = vectors_from_file(teacher.file, texts)
        else:
            vectors = cached_vectors(
                texts,
                teacher.identity,
                prompt,
                lambda: teacher.encoder,
                folder=cache_dir("vectors"),
                show=show,
            )
        for column, indices in zip(columns, flat.reshape(rows.shape).T, strict=True):
            by_column[column] = ColumnVectors(vectors, indices)
    of_columns = [by_column[column] for column in range(len(prompts))]
    if examples.kind == "single":  # a single text is its own positive
        of_columns *= 2
    return TeacherVectors(of_columns)
