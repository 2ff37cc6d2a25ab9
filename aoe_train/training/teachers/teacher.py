"""Who advises a run: a model, known by its weights, settings and prompts, or a file of its vectors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from aoe_train.data.run_data import column_names, column_prompts
from aoe_train.model.encoder import Encoder
from aoe_train.settings.prompts import DOCUMENTS, QUERY
from aoe_train.settings.training import AdviserSettings, EncoderSettings, TeacherSettings
from pairkit.app.errors import ConfigError
from pairkit.system.files import sha256

if TYPE_CHECKING:
    from aoe_train.objectives.settings import ObjectiveSettings
    from aoe_train.records import Examples
    from aoe_train.settings.training import TrainSettings

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
