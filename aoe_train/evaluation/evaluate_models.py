"""Evaluate models on tasks: open each in all requested sizes, score it, and compare it with another model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from aoe_train.data.examples import Say
from aoe_train.encoding.embedders.cached import CachedEmbedder, open_model
from aoe_train.encoding.embedders.embedder import (
    Embedder,
    Endpoint,
    Function,
    PromptedEmbedder,
    QuantizedEmbedder,
    VectorSize,
    in_sizes,
)
from aoe_train.evaluation.duplicates import DuplicatesTask, score_rows
from aoe_train.evaluation.overlap import overlap, training_hashes
from aoe_train.evaluation.pair_task import SearchTask
from aoe_train.evaluation.scores import (
    EvaluatedModel,
    Evaluation,
    Score,
    Scoring,
    score_candidates,
)
from aoe_train.evaluation.suites import TRACKER, ChosenTasks
from aoe_train.evaluation.tasks import EvaluationTask, Resampling
from aoe_train.model.backbones.load_backbone import check_name, find_folder
from pairkit.base.cli.progress import Listener, stage
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.system.folders import base_name

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder
    from aoe_train.model.quantization import Quantize
    from aoe_train.settings.train_settings import EncodingPrecision, Purpose

    Model = str | Path | Encoder | Function

_NO_MODEL = "no model to evaluate; give --model a folder, a Hub id or an Encoder"


class Sizes(NamedTuple):
    """Numbers of layers, dimensions and number types, at least one of each; None is the model's own."""

    layers: Sequence[int | None]
    dims: Sequence[int | None]
    formats: Sequence[Quantize]


@dataclass(frozen=True)
class ModelRequest:
    """Arguments of `evaluate` that choose its models; prompts aren't used for `against`."""

    models: Sequence[Model]
    against: Model | None
    endpoint: Endpoint | None
    against_endpoint: Endpoint | None
    sizes: Sizes | None
    purpose: Purpose | None
    prompt: str | None
    prompt_name: str | None
    precision: EncodingPrecision
    cache: bool

    def check(self) -> None:
        """Refuse missing models and contradictory options before anything is read."""
        of_models = (self.against, self.endpoint, self.sizes, self.purpose)
        if not self.models and any((*of_models, self.prompt, self.prompt_name)):
            raise ConfigError(_NO_MODEL)
        if self.purpose is not None and self.sizes is not None:
            raise ConfigError(
                "--purpose compares full vectors; leave out --layers, --dim and --quantize"
            )
        if self.against_endpoint is not None and self.against is None:
            raise ConfigError(
                "--against-endpoint without --against; give --against the model's name there"
            )
        if self.sizes is not None and self.against is not None:
            raise ConfigError(
                "--against compares full vectors; leave it out, or leave out --layers, --dim and --quantize"
            )
        local = [] if self.endpoint else _sources(self.models)
        rival = [] if self.against_endpoint else _sources([self.against])
        for model in local + rival:
            check_name(model)
        if len(self.models) < 2:
            return

        names = [str(model) for model in self.models]
        if len(set(names)) < len(names):
            raise ConfigError(
                f"--model: a duplicate among {', '.join(names)}; give each model once"
            )
        if self.against is not None:
            raise ConfigError(
                "--against: found several --model, expected one; run once for each model"
            )
        for model in local:
            find_folder(model)

    @property
    def names_in_full(self) -> bool:
        """Whether tables have whole paths, because the last parts of several may be equal."""
        names = [
            base_name(str(model)) for model in _sources([*self.models, self.against])
        ]
        return len(self.models) > 1 or len(set(names)) < len(names)


def _sources(models: Sequence[Model | None]) -> list[str | Path]:
    """The folders and names of models."""
    return [model for model in models if isinstance(model, str | Path)]


def evaluate_models(
    request: ModelRequest,
    tasks: ChosenTasks,
    resampling: Resampling,
    *,
    gains: bool,
    show: Listener,
    say: Say,
) -> Evaluation:
    """Score all models; with `gains` also whether to replace the model that they are compared with."""
    purpose = request.purpose
    if purpose is not None:
        tasks = _searched_for(purpose, tasks)
    if not request.models:
        return _judged_candidates(tasks, resampling)

    opener = _Opener(request, tasks.tasks, show, say)
    first_task = tasks.tasks[0]
    changes = (request.sizes, purpose, request.against)
    if isinstance(first_task, DuplicatesTask) and not any(changes):
        rows = score_rows(first_task, opener.models(), resampling, show)
        rankings = {name: {first_task.name: row} for name, row in rows.items()}
        return Evaluation(TRACKER, rankings, _resampling=resampling, _rankings=True)

    scoring = Scoring(tasks.tasks, resampling, purpose, gains, show)
    rival = opener.rival()
    scores: dict[str, Mapping[str, Score]] = {}
    sizes: dict[str, VectorSize] = {}
    for model in opener.models():
        for key, variant in _in_sizes(model, request.sizes).items():
            try:
                scores[key] = scoring.score(variant, rival)
            except DataError as error:
                if request.sizes is None:
                    raise
                raise DataError(f"{key}: {error}") from error
            if isinstance(variant.embedder, QuantizedEmbedder):
                sizes[key] = variant.embedder.size
    against = None if rival is None else rival.name
    return Evaluation(tasks.suite, scores, tasks.missing, against, sizes, resampling)


def _searched_for(purpose: Purpose, tasks: ChosenTasks) -> ChosenTasks:
    """The tasks, named after the purpose; judged results have no collection to search."""
    if any(isinstance(task, SearchTask) for task in tasks.tasks):
        raise ConfigError(
            "--purpose: judged results aren't a collection of texts; give it to `aoe sample-pairs`"
        )
    return tasks._replace(suite=f"{tasks.suite}, searched for {purpose}")


def _judged_candidates(tasks: ChosenTasks, resampling: Resampling) -> Evaluation:
    """Score the candidates of a sheet of judged search results, which needs no model."""
    sheet = tasks.tasks[0]
    if not isinstance(sheet, SearchTask):
        raise ConfigError(
            f"{_NO_MODEL} (only judged results of `aoe sample-pairs --queries` need none)"
        )
    candidates = score_candidates(sheet, resampling)
    first = next(iter(candidates))
    return Evaluation(tasks.suite, candidates, against=first, _resampling=resampling)


def _in_sizes(
    model: EvaluatedModel, sizes: Sizes | None
) -> Mapping[str, EvaluatedModel]:
    """The model in each size of vectors, by its name in tables."""
    if sizes is None:
        return {model.name: model}
    variants = in_sizes(
        model.embedder, model.name, sizes.dims, sizes.formats, model.layers
    )
    return {
        key: model._replace(embedder=embedder) for key, embedder in variants.items()
    }


class _Opener(NamedTuple):
    """Opens models, and reports which of the tasks' texts they were trained on."""

    request: ModelRequest
    tasks: Sequence[EvaluationTask]
    show: Listener
    say: Say

    def models(self) -> Iterator[EvaluatedModel]:
        """Each model with each number of layers, opened when its turn comes."""
        request = self.request
        depths = [None] if request.sizes is None else request.sizes.layers
        names = set[str]()
        for source in request.models:
            model = None
            for layers in depths:
                embedder = self._open(source, request.endpoint, layers)
                if request.prompt is not None or request.prompt_name is not None:
                    embedder = PromptedEmbedder(
                        embedder,
                        prompt=request.prompt,
                        prompt_name=request.prompt_name,
                    )
                if model is None:
                    model = self._evaluated(source, embedder, request.endpoint)
                    if model.name in names:
                        raise ConfigError(
                            f"--model: several are named {model.name}; give each its own name"
                        )
                    names.add(model.name)
                yield model._replace(embedder=embedder, layers=layers)

    def rival(self) -> EvaluatedModel | None:
        """The model to compare with, if there is one."""
        source = self.request.against
        if source is None:
            return None
        server = self.request.against_endpoint
        return self._evaluated(source, self._open(source, server), server)

    def _open(
        self, source: Model, server: Endpoint | None, layers: int | None = None
    ) -> Embedder:
        with stage(f"load {source}", self.show):
            model = open_model(
                source,
                endpoint=server,
                precision=self.request.precision,
                layers=layers,
                say=self.say,
            )
            return CachedEmbedder(
                model, store=self.request.cache, show=self.show, say=self.say
            )

    def _evaluated(
        self, source: Model, embedder: Embedder, server: Endpoint | None
    ) -> EvaluatedModel:
        """A model with its name, its training texts if known, and their overlap with each task."""
        name = embedder.name
        if self.request.names_in_full and isinstance(source, str | Path):
            name = str(source)
        trained = training_hashes(None if server else source)
        overlaps = {}
        if len(trained):
            overlaps = {task.name: overlap(task, trained) for task in self.tasks}
        for task, shared in overlaps.items():
            if shared.texts:
                self.say(f"warning: {task}: {name} was {shared}")
        return EvaluatedModel(name, embedder, trained, overlaps)
