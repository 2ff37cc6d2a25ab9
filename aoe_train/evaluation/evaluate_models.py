"""Evaluate models on tasks: open each in all requested sizes, score it, and compare it with another model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
from aoe_train.evaluation.overlap import Overlap, overlap, training_hashes
from aoe_train.evaluation.resample import Resampling
from aoe_train.evaluation.score import Score, score, score_candidates
from aoe_train.evaluation.scores import Evaluation
from aoe_train.evaluation.search_results import SearchTask
from aoe_train.evaluation.suites import TRACKER, ChosenTasks
from aoe_train.evaluation.tasks import EvaluationTask
from aoe_train.model.backbones.load_backbone import check_name, find_folder
from pairkit.base.cli.progress import Listener, stage
from pairkit.base.errors import ConfigError, DataError

if TYPE_CHECKING:
    import numpy as np

    from aoe_train.model.encoder import Encoder
    from aoe_train.model.quantization import Quantize
    from aoe_train.settings.train_settings import EncodingPrecision, Purpose

Say = Callable[[str], None]
_NO_MODEL = "no model to evaluate; give --model a folder, a Hub id or an Encoder"


class Sizes(NamedTuple):
    """Numbers of layers, dimensions and number types, at least one of each; None is the model's own."""

    layers: Sequence[int | None]
    dims: Sequence[int | None]
    formats: Sequence[Quantize]


@dataclass(frozen=True)
class ModelRequest:
    """Arguments of `evaluate` that choose its models; prompts aren't used for `against`."""

    models: Sequence[str | Path | Encoder | Function]
    against: str | Path | Encoder | Function | None
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
        candidates: list[object] = []
        if self.endpoint is None:
            candidates += self.models
        if self.against_endpoint is None:
            candidates.append(self.against)
        local = [model for model in candidates if isinstance(model, str | Path)]
        for model in local:
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


class _OpenModel(NamedTuple):
    """A model to score, its name in tables, and its training hashes with their overlap with each task."""

    name: str
    embedder: Embedder
    trained: np.ndarray | None
    overlaps: Mapping[str, Overlap]
    layers: int | None


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
    if request.purpose is not None:
        if any(isinstance(task, SearchTask) for task in tasks.tasks):
            raise ConfigError(
                "--purpose: judged results aren't a collection of texts; give it to `aoe sample-pairs`"
            )
        tasks = tasks._replace(suite=f"{tasks.suite}, searched for {request.purpose}")
    if not request.models:
        return _judged_candidates(tasks, resampling)

    models = _open_models(request, tasks.tasks, show, say)
    first_task = tasks.tasks[0]
    changes_vectors = request.sizes is not None or request.purpose is not None
    if (
        isinstance(first_task, DuplicatesTask)
        and request.against is None
        and not changes_vectors
    ):
        with_overlap = (
            (model.name, model.embedder, model.overlaps.get(first_task.name))
            for model in models
        )
        rows = score_rows(first_task, with_overlap, resamples=resampling, show=show)
        ranked = {name: {first_task.name: row} for name, row in rows.items()}
        return Evaluation(TRACKER, ranked, _resampling=resampling, _rankings=True)

    rival = None
    rival_trained = None
    if request.against is not None:
        rival = _open(request, request.against, request.against_endpoint, show, say)
        if request.against_endpoint is None:
            rival_trained = training_hashes(request.against)
        _overlaps(rival.name, tasks.tasks, rival_trained, say)
    scores: dict[str, Mapping[str, Score]] = {}
    sizes: dict[str, VectorSize] = {}
    for model in models:
        variants: Mapping[str, Embedder] = {model.name: model.embedder}
        if request.sizes is not None:
            _, dims, formats = request.sizes
            variants = in_sizes(model.embedder, model.name, dims, formats, model.layers)
        for key, variant in variants.items():
            try:
                scores[key] = score(
                    variant,
                    tasks.tasks,
                    rival=rival,
                    overlaps=model.overlaps,
                    trained=[model.trained, rival_trained],
                    resamples=resampling,
                    gains=gains,
                    purpose=request.purpose,
                    show=show,
                )
            except DataError as error:
                if request.sizes is None:
                    raise
                raise DataError(f"{key}: {error}") from error
            if isinstance(variant, QuantizedEmbedder):
                sizes[key] = variant.size
    against = None if rival is None else rival.name
    return Evaluation(tasks.suite, scores, tasks.missing, against, sizes, resampling)


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


def _open_models(
    request: ModelRequest, tasks: Sequence[EvaluationTask], show: Listener, say: Say
) -> Iterator[_OpenModel]:
    """Each model with each number of layers, opened when its turn comes."""
    depths = [None] if request.sizes is None else request.sizes.layers
    for source in request.models:
        trained = None if request.endpoint else training_hashes(source)
        overlaps = None
        for layers in depths:
            embedder = _open(request, source, request.endpoint, show, say, layers)
            if request.prompt is not None or request.prompt_name is not None:
                embedder = PromptedEmbedder(
                    embedder,
                    prompt=request.prompt,
                    prompt_name=request.prompt_name,
                )
            name = embedder.name
            if len(request.models) > 1 and isinstance(source, str | Path):
                name = str(source)
            if overlaps is None:
                overlaps = _overlaps(name, tasks, trained, say)
            yield _OpenModel(name, embedder, trained, overlaps, layers)


def _open(
    request: ModelRequest,
    source: Any,
    server: Endpoint | None,
    show: Listener,
    say: Say,
    layers: int | None = None,
) -> Embedder:
    with stage(f"load {source}", show):
        model = open_model(
            source,
            endpoint=server,
            precision=request.precision,
            layers=layers,
            say=say,
        )
        return CachedEmbedder(model, store=request.cache, show=show, say=say)


def _overlaps(
    model: str, tasks: Sequence[EvaluationTask], trained: np.ndarray | None, say: Say
) -> dict[str, Overlap]:
    """The overlap of each task with a model's training texts, with warnings; empty if these are unknown."""
    if trained is None:
        return {}
    overlaps = {task.name: overlap(task, trained) for task in tasks}
    for task, shared in overlaps.items():
        if shared.texts:
            say(f"warning: {task}: {model} was {shared}")
    return overlaps
