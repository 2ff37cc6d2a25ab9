"""Evaluate models on tasks: open each in all requested sizes, score it, and compare it with another model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from aoe_train.encoding.embedders.cached import CachedEmbedder, open_model
from aoe_train.encoding.embedders.embedder import (
    Embedder,
    Endpoint,
    PromptedEmbedder,
    QuantizedEmbedder,
    VectorSize,
    in_sizes,
)
from aoe_train.evaluation.duplicates import DuplicatesTask, score_rows
from aoe_train.evaluation.overlap import Overlap, overlap, read_digests
from aoe_train.evaluation.resample import Resampling
from aoe_train.evaluation.score import Score, score, score_candidates
from aoe_train.evaluation.scores import Evaluation
from aoe_train.evaluation.search_results import SearchTask
from aoe_train.evaluation.suites import TRACKER, ChosenTasks
from aoe_train.model.backbones.load_backbone import check_name, find_folder
from pairkit.base.cli.progress import stage
from pairkit.base.errors import ConfigError, DataError

if TYPE_CHECKING:
    import numpy as np

    from aoe_train.encoding.embedders.embedder import Function
    from aoe_train.model.encoder import Encoder
    from aoe_train.model.quantization import Quantize
    from aoe_train.settings.train_settings import EncodingPrecision, Purpose
    from pairkit.base.cli.progress import Listener

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
        prompts = (self.prompt, self.prompt_name)
        needs_model = any(
            (self.against, self.endpoint, self.sizes, self.purpose, *prompts)
        )
        if not self.models and needs_model:
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
        local: list[object] = []
        if self.endpoint is None:
            local += self.models
        if self.against_endpoint is None:
            local.append(self.against)
        for model in local:
            if isinstance(model, str | Path):
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
            if isinstance(model, str | Path):
                find_folder(model)


class _OpenModel(NamedTuple):
    """A model to score: its name in tables, and hashes of the texts that it was trained on."""

    name: str
    embedder: Embedder
    trained: np.ndarray | None
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
    plain = (
        request.sizes is None and request.against is None and request.purpose is None
    )
    only_task = tasks.tasks[0]
    if plain and isinstance(only_task, DuplicatesTask):
        return _rank(request, only_task, resampling, show, say)
    rival = None
    hashes = None
    if request.against is not None:
        rival = _open(request, request.against, request.against_endpoint, show, say)
        if request.against_endpoint is None:
            hashes = _training_hashes(request.against)
    if rival is not None and hashes is not None:
        rival_overlaps = {task.name: overlap(task, hashes) for task in tasks.tasks}
        _warn_overlap(rival.name, rival_overlaps, say)
    scores: dict[str, Mapping[str, Score]] = {}
    sizes: dict[str, VectorSize] = {}
    for model in _open_models(request, show, say):
        by_task: Mapping[str, Score] = {}
        for key, variant in _variants(request, model).items():
            try:
                by_task = score(
                    variant,
                    tasks.tasks,
                    rival=rival,
                    trained=model.trained,
                    rival_trained=hashes,
                    resamples=resampling,
                    gains=gains,
                    purpose=request.purpose,
                    progress=show,
                )
            except DataError as error:
                if request.sizes is None:
                    raise
                raise DataError(f"{key}: {error}") from error
            scores[key] = by_task
            if isinstance(variant, QuantizedEmbedder):
                sizes[key] = variant.size()
        overlaps = {name: scored.overlap for name, scored in by_task.items()}
        _warn_overlap(model.embedder.name, overlaps, say)
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


def _variants(request: ModelRequest, model: _OpenModel) -> Mapping[str, Embedder]:
    """The model in all requested sizes, by name."""
    sizes = request.sizes
    if sizes is None:
        return {model.name: model.embedder}
    return in_sizes(model.embedder, model.name, sizes.dims, sizes.formats, model.layers)


def _rank(
    request: ModelRequest,
    task: DuplicatesTask,
    resampling: Resampling,
    show: Listener,
    say: Say,
) -> Evaluation:
    """Compare the rankings of a tracker's reports by words, by each model, and by both."""
    opened = _open_models(request, show, say)
    models = ((model.name, model.embedder, model.trained) for model in opened)
    rows = score_rows(task, models, resamples=resampling, progress=show)
    for name, row in rows.items():
        if row.weight is None:
            _warn_overlap(name, {task.name: row.overlap}, say)
    ranked = {name: {task.name: row} for name, row in rows.items()}
    return Evaluation(TRACKER, ranked, _resampling=resampling, _rankings=True)


def _open_models(
    request: ModelRequest, show: Listener, say: Say
) -> Iterator[_OpenModel]:
    """Each model with each number of layers, opened when its turn comes."""
    depths = [None] if request.sizes is None else request.sizes.layers
    for source, layers in product(request.models, depths):
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
        trained = None if request.endpoint else _training_hashes(source)
        yield _OpenModel(name, embedder, trained, layers)


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
            str(source) if isinstance(source, str | Path) else source,
            endpoint=server,
            precision=request.precision,
            layers=layers,
            say=say,
        )
        return CachedEmbedder(model, store=request.cache, progress=show, say=say)


def _training_hashes(model: object) -> np.ndarray | None:
    """Hashes of what a model was trained on, if it has them."""
    folder: Path | None = getattr(model, "folder", None)
    if isinstance(model, str | Path):
        folder = find_folder(model)
    return None if folder is None else read_digests(folder)


def _warn_overlap(model: str, overlaps: Mapping[str, Overlap | None], say: Say) -> None:
    for task, shared in overlaps.items():
        if shared is not None and shared.texts:
            say(f"warning: {task}: {model} was {shared}")
