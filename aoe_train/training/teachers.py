"""Guide and teacher: models beside the trained one, whose vectors of the training texts are made once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from aoe_train.data.run_data import column_names, column_prompts
from aoe_train.encoding.text_vectors import TextVectors
from aoe_train.model.encoder import Encoder
from aoe_train.objectives.kinds import Advisers, check_advisers
from aoe_train.records import ABSENT, AdviceStore, AdviserVectors, ColumnVectors
from aoe_train.settings.prompts import DOCUMENTS, QUERY
from aoe_train.settings.training import AdviserSettings, EncoderSettings, TeacherSettings
from aoe_train.training.teacher_files import scores_from_file, vectors_from_file
from pairkit.app.errors import ConfigError
from pairkit.system.files import sha256

if TYPE_CHECKING:
    from aoe_train.objectives.settings import ObjectiveSettings
    from aoe_train.records import Examples
    from aoe_train.settings.training import TeacherSettings, TrainSettings
    from pairkit.app.progress import Listener


Role = Literal["guide", "teacher"]
_FILES = (".parquet", ".jsonl")
_COMPARE = ("margin_mse", "score_distill")  # the parts that take a teacher's scores of pairs


class Teacher:
    """A guide or a teacher.

    One process loads it to identify it; the others get the identity.
    """

    def __init__(self, role: Role, given: AdviserSettings) -> None:
        """Take it at its name."""
        self.role, self.name, self._given = role, given.model or "", given
        self._known: Mapping[str, Any] | None = None
        if self.file is not None and (given.revision or given.prompts):
            raise ConfigError(
                f"{role}.prompts and {role}.revision are for models; {self.name} is a file of vectors, made"
                " already: leave them out"
            )
        if self.name.lower().endswith(".npy"):
            raise ConfigError(
                f"{role} {self.name}: a .npy doesn't say of which texts its vectors are; write a .parquet"
                " with `aoe encode`, which has both"
            )

    @property
    def file(self) -> Path | None:
        """The file of vectors, where it is no model."""
        path = Path(self.name)
        return path if path.suffix.lower() in _FILES else None

    @cached_property
    def encoder(self) -> Encoder:
        """The model, loaded when it is first asked for."""
        return Encoder.load(self.name, revision=self._given.revision, inference_only=True)

    def release(self) -> None:
        """Let go of the model, whose memory is wanted."""
        self.__dict__.pop("encoder", None)

    @property
    def identity(self) -> Mapping[str, Any]:
        """What tells its vectors from another's, as JSON."""
        if self._known is None:
            if self.file is None:
                self._known = {**self.encoder.identity(), "dim": self.encoder.dim}
            elif self.file.is_file():
                self._known = {"file": sha256(self.file)}
            else:
                raise ConfigError(
                    f"{self.role} {self.name}: no such file; give a model, or a file of vectors"
                )
        return self._known

    def set_identity(self, identity: Mapping[str, Any]) -> None:
        """Take what another process found."""
        self._known = identity

    @property
    def dim(self) -> int | None:
        """Size of its vectors; None of a file, which will tell."""
        found: int | None = self.identity.get("dim")
        return found

    @property
    def _settings(self) -> EncoderSettings | None:
        found = self.identity.get("settings")
        return None if found is None else EncoderSettings.model_validate(found)

    def prompts(self, examples: Examples) -> list[str]:
        """The words for each column; none of a file."""
        settings = self._settings
        if settings is None:
            return [""] * examples.rows.shape[1]
        own = settings.named_prompts
        has_anchors = examples.kind in ("positive", "triplet")
        if self._given.prompts is None and has_anchors and {QUERY, *DOCUMENTS} & own.own.keys():
            return [own.query, *[own.document] * (examples.rows.shape[1] - 1)]
        try:
            return column_prompts(self._given.prompts, settings, [examples]).by_column(examples)
        except ConfigError as error:
            raise ConfigError(f"{self.role}.{error}") from error

    def check(self, objective: ObjectiveSettings, own: EncoderSettings) -> None:
        """Refuse vectors that are compared in a way that the objective doesn't support."""
        settings = self._settings
        measure = None if settings is None else similarity_of(settings)
        if self.role == "guide":
            if measure not in (None, "cosine"):
                raise ConfigError(
                    f"guide {self.name}: its vectors are compared by {measure}, and a guide is asked for"
                    " cosines; take a model whose vectors are compared by cosine"
                )
            return
        parts = [part for part in _COMPARE if part in objective.weights.wanted]
        trained = similarity_of(own)
        if parts and (trained not in ("cosine", "dot") or measure not in (None, trained)):
            raise ConfigError(
                f"teacher {self.name}: its vectors are compared by {measure or trained}, those of the model"
                f" by {trained}; {', '.join(parts)} needs both by cosine or both by dot: another teacher,"
                " --set encoder.similarity_fn_name=…, or the part embed_distill"
            )

    def record(self, examples: Examples, dim: int) -> dict[str, Any]:
        """Who it was, for a run's record and the card."""
        known: dict[str, Any] = {"model": self.name, "revision": self._given.revision, "dim": dim}
        settings = self._settings
        if settings is None:
            return {**known, **self.identity}
        return {
            **known,
            "weights": self.identity["weights"],
            "prompts": dict(zip(column_names(examples), self.prompts(examples), strict=True)),
            "similarity": settings.similarity_fn_name,
        }


def similarity_of(settings: EncoderSettings) -> str:
    """By what vectors are compared; dot products of vectors of length 1 are cosines."""
    measure = settings.similarity_fn_name
    return "cosine" if settings.normalize and measure == "dot" else measure


def scores_identity(teacher: TeacherSettings) -> dict[str, Any]:
    """What tells the scores that a person brings from others, for a run's origin; empty without any."""
    if teacher.scores is None:
        if teacher.score_range is not None:
            raise ConfigError("teacher.score_range is for scores; give --teacher-scores too, or leave it out")
        return {}
    path = Path(teacher.scores)
    if not path.is_file():
        raise ConfigError(f"--teacher-scores {path}: no such file")
    return {"teacher_scores": sha256(path)}


def teachers_of(settings: TrainSettings) -> list[Teacher]:
    """Those that the settings name."""
    found = []
    roles: tuple[tuple[Role, AdviserSettings], ...] = (
        ("guide", settings.guide),
        ("teacher", settings.teacher),
    )
    for role, given in roles:
        if given.model is not None:
            found.append(Teacher(role, given))
        elif given.revision or given.prompts:
            raise ConfigError(f"{role}: there is none; name it by --{role}, or leave its settings out")
    return found


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
