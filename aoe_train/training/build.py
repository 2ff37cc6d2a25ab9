"""Build what a training loop needs from rows and a backbone: tokens, batches, objectives, one model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import nn

from aoe_train.data.batches import Batches, Collate, PlannedLoader
from aoe_train.data.defaults import dataset_weights
from aoe_train.data.mixture import MixedCollate, Mixture
from aoe_train.data.run_data import Data, run_prompts
from aoe_train.model.backbones.decoder import add_lora
from aoe_train.model.backbones.depth import after_layers, count_layers, train_top_layers
from aoe_train.model.encoder import Encoder
from aoe_train.model.memory import keep_freed_memory
from aoe_train.model.packing.layers import train_used_rows
from aoe_train.model.packing.run import use_fast_layers
from aoe_train.model.run_folder import cache_dir
from aoe_train.objectives.kinds import Advisers, TeacherSample
from aoe_train.objectives.objective import OwnObjective, make_objective
from aoe_train.objectives.settings import TAUGHT
from aoe_train.records import ABSENT, NO_ADVICE, AdviceStore, AdviserVectors
from aoe_train.training.pair_model import PairModel, TextObjective, TextObjectiveModel, prepare_objective
from aoe_train.training.processes import on_main
from aoe_train.training.teachers import Teacher, check_teachers, teachers_of
from pairkit.app.errors import ConfigError
from pairkit.app.progress import stage
from pairkit.dataset.labels import score_scale

if TYPE_CHECKING:
    from transformers import PreTrainedModel, TrainingArguments

    from aoe_train.model.tokens.tokens import TokenStore
    from aoe_train.objectives.settings import ObjectiveSettings
    from aoe_train.records import Examples
    from aoe_train.settings.training import EncoderSettings, TrainSettings
    from aoe_train.training.load import Loaded, ResolvedSettings
    from pairkit.app.progress import Listener

_SAMPLE = 2048  # texts by which a map to a teacher's vectors begins, or their axes are found
_AT_ONCE = 1 << 20  # tokens that are looked at in one go


@dataclass(frozen=True)
class Dataset:
    """One dataset to train on."""

    name: str
    examples: Examples
    store: TokenStore
    batches: Batches
    views: bool = True
    advice: AdviceStore = NO_ADVICE


@dataclass(frozen=True)
class TrainingSetup:
    """What the training loop takes; `data` and `datasets` have the prompts of texts."""

    encoder: Encoder
    data: Data
    datasets: Sequence[Dataset]
    batches: Batches | Mixture
    loader: PlannedLoader
    model: PairModel


def build(
    loaded: Loaded,
    resolved: ResolvedSettings,
    args: TrainingArguments,
    own: Mapping[str, OwnObjective],
    advice: Mapping[str, AdviceStore],
    progress: Listener | None = None,
) -> TrainingSetup:
    """Tokenise, plan batches, and put backbone and objectives together."""
    encoder, settings = loaded.encoder, resolved.run
    data, encoder.settings = _with_prompts(loaded.data, settings, encoder.settings)
    views = {name: _compares_views(resolved.datasets[name], own.get(name)) for name in data.train}
    _set_trained_weights(encoder, settings)
    if any(rows.kind == "single" and views[name] for name, rows in data.train.items()):
        _check_dropout(encoder.model.backbone)
    datasets = [
        _dataset(name, rows, encoder, resolved, args, progress, views[name], advice.get(name, NO_ADVICE))
        for name, rows in data.train.items()
    ]
    model = _model(encoder, datasets, resolved, args, own)
    batches, collate = _batches(datasets, settings, args)
    rows = sum(len(dataset.examples) for dataset in datasets)
    loader = PlannedLoader(batches, collate, rows, pin_memory=args.device.type == "cuda")
    return TrainingSetup(encoder, data, datasets, batches, loader, model)


def _set_trained_weights(encoder: Encoder, settings: TrainSettings) -> None:
    """Leave gradients to the weights that learn: adapters, the top layers or all."""
    backbone = encoder.model.backbone
    if settings.run.shard and hasattr(backbone, "forward_packed"):
        raise ConfigError(
            "run.shard: a Recurrent Attention Network runs its layers as often as its texts have windows, in"
            " each process differently; leave it out"
        )
    if settings.lora is not None:
        add_lora(backbone, settings.lora)
        use_fast_layers(backbone)
    if settings.optim.top_layers is not None:
        train_top_layers(backbone, settings.optim.top_layers)
    if encoder.model.pooling == "cells":  # which never pass through it
        cast("Any", backbone).layers[-1].review.requires_grad_(requires_grad=False)


def _check_dropout(backbone: PreTrainedModel) -> None:
    """The two views of a single text differ by dropout alone."""
    if any(isinstance(module, nn.Dropout) and module.p > 0 for module in backbone.modules()):
        return
    named = backbone.config.to_dict().items()  # attention dropout is no module in many models
    if not any(value for name, value in named if name.startswith("att") and "drop" in name):
        raise ConfigError(
            "data of single texts: the two views of a text differ by dropout alone, and the backbone has "
            "none; set its dropout in config.json, such as hidden_dropout_prob 0.1, use --lora, or give "
            "pairs"
        )


def _model(
    encoder: Encoder,
    datasets: Sequence[Dataset],
    resolved: ResolvedSettings,
    args: TrainingArguments,
    own: Mapping[str, OwnObjective],
) -> PairModel:
    """The text model with the objective of each dataset."""
    backbone, settings = encoder.model.backbone, resolved.run
    reads_texts = any(isinstance(one, TextObjective) for one in own.values())
    # Rows that are sharded cost little, and an embedding in two parts can't be gathered as one. A
    # TextObjective may show the model other tokens than the texts have.
    if (
        not reads_texts
        and settings.optim.weight_decay == 0
        and args.optim.startswith("adamw")
        and not settings.run.shard
    ):
        train_used_rows(backbone, _used_tokens(backbone, [dataset.store for dataset in datasets]))
    keep_freed_memory()
    layers = _learn_layers(encoder, _same_layers(resolved))
    losses = [_loss(dataset, resolved, encoder, own.get(dataset.name), layers) for dataset in datasets]
    several = len(datasets) > 1
    # PairTrainer moves it too, but a dry run has no trainer, and sharding comes before the trainer.
    loss = (nn.ModuleList(losses) if several else losses[0]).to(args.device)
    # A TextObjective may leave weights out, RAN passes its memory on only if a text has a second window, and
    # a batch has one dataset's objective.
    args.ddp_find_unused_parameters = (
        reads_texts
        or hasattr(backbone, "forward_packed")
        or (several and any(True for _ in loss.parameters()))
    )
    kind = TextObjectiveModel if reads_texts else PairModel
    return kind(encoder.model, loss, chunk=settings.run.chunk, dim=encoder.settings.dim, layers=layers)


def _with_prompts(
    data: Data, settings: TrainSettings, encoder: EncoderSettings
) -> tuple[Data, EncoderSettings]:
    """The rows with their prompts, and the encoder's settings with the prompts."""
    prompts = run_prompts(settings, encoder, data.train, data.dev)
    train, dev = (
        {name: prompts.of(name).applied(rows) for name, rows in examples.items()}
        for examples in (data.train, data.dev)
    )
    return Data(train, dev), prompts.kept


def _dataset(
    name: str,
    examples: Examples,
    encoder: Encoder,
    resolved: ResolvedSettings,
    args: TrainingArguments,
    progress: Listener | None,
    views: bool,
    advice: AdviceStore,
) -> Dataset:
    settings = resolved.datasets[name]
    store = encoder.tokens(examples.texts, examples.prompts, cache_dir=cache_dir("tokens"), progress=progress)
    batches = Batches(
        examples,
        store.lengths,
        settings.optim.batch_size * args.world_size,
        strategy=settings.batches.strategy,
        max_tokens=settings.batches.max_tokens,
        seed=settings.seed,
        world=args.world_size,
        rank=args.process_index,
        drop_last=settings.batches.drop_last,
        views=views,
    )
    return Dataset(name, examples, store, batches, views, advice)


def _compares_views(settings: TrainSettings, own: OwnObjective | None) -> bool:
    """Whether the objective compares two views of a single text."""
    if own is not None:
        return not isinstance(own, TextObjective)
    return not settings.objective.weights.wanted.keys() <= TAUGHT


def _same_layers(resolved: ResolvedSettings) -> ObjectiveSettings:
    """The objective of the first dataset, whose layers are those of all: a model has them once."""
    first, *others = (settings.objective for settings in resolved.datasets.values())
    if any(other.layers != first.layers for other in others):
        raise ConfigError(
            "objective.layers differs between datasets: a model has its layers for all of them; give it for"
            " the run, not in datasets.NAME"
        )
    return first


def _loss(
    dataset: Dataset,
    resolved: ResolvedSettings,
    encoder: Encoder,
    own: OwnObjective | None,
    layers: tuple[int, ...],
) -> nn.Module:
    examples, wanted = dataset.examples, resolved.datasets[dataset.name]
    if isinstance(own, TextObjective):
        return prepare_objective(own, encoder, examples.kind, wanted.seed)
    labels = examples.labels
    try:
        return make_objective(
            wanted.objective,
            dim=encoder.dim,
            kind=examples.kind,
            label_range=None if labels is None else score_scale(float(labels.min()), float(labels.max())),
            own=own,
            advisers=_known_of_teachers(wanted, encoder, dataset.advice, examples),
            layers=layers,
        )
    except ConfigError as error:
        if not resolved.run.datasets:
            raise
        raise ConfigError(f"dataset {dataset.name}: {error}") from error


def _batches(
    datasets: Sequence[Dataset], settings: TrainSettings, args: TrainingArguments
) -> tuple[Batches, Collate] | tuple[Mixture, MixedCollate]:
    """The batches of a run, and the function that makes their tensors."""
    collates = [
        Collate(
            dataset.examples,
            dataset.store,
            dedup=settings.batches.dedup,
            views=dataset.views,
            advice=dataset.advice,
        )
        for dataset in datasets
    ]
    if len(datasets) == 1:
        return datasets[0].batches, collates[0]
    mixture = Mixture(
        [dataset.batches for dataset in datasets],
        dataset_weights(settings, [dataset.name for dataset in datasets]),
        settings.mix,
        seed=settings.seed,
        world=args.world_size,
        rank=args.process_index,
    )
    return mixture, MixedCollate(mixture, collates)


def _known_of_teachers(
    settings: TrainSettings, encoder: Encoder, advice: AdviceStore, examples: Examples
) -> Advisers:
    """What the objective needs of guide and teacher before the first batch."""
    teacher, objective = advice.teacher, settings.objective
    sample = None
    if teacher is not None and "embed_distill" in objective.weights.wanted:
        sizes = {encoder.dim, *objective.dims}
        if sizes != {teacher.dim} or objective.projection == "principal":
            sample = _sample(encoder, teacher, examples)
    return Advisers(
        guide="guide" in advice.vectors,
        teacher_dim=None if teacher is None else teacher.dim,
        scores=advice.scores is not None,
        dot=encoder.settings.similarity_fn_name == "dot" and not encoder.settings.normalize,
        sample=sample,
    )


def _sample(encoder: Encoder, teacher: AdviserVectors, examples: Examples) -> TeacherSample:
    """Vectors of some texts by both models, evenly spread over the rows."""
    columns = examples.rows.shape[1]
    count = min(len(examples), -(-_SAMPLE // columns))
    rows = np.unique(np.linspace(0, len(examples) - 1, count).astype(np.int64))
    there = examples.rows[rows] != ABSENT
    numbers = examples.rows[rows][there].tolist()
    prompts = examples.prompts
    own = encoder.encode(
        [examples.texts[number] for number in numbers],
        prompt=prompts if isinstance(prompts, str) else [prompts[number] for number in numbers],
        normalize=False,
    )
    wanted = teacher.of_rows(rows)[:, :columns]
    return TeacherSample(torch.from_numpy(own), wanted[torch.from_numpy(there)])


def _learn_layers(encoder: Encoder, settings: ObjectiveSettings) -> tuple[int, ...]:
    """Numbers of the earlier layers to train; the text model gets what follows a layer."""
    if not settings.layers:
        return ()
    backbone = encoder.model.backbone
    whole = count_layers(backbone)
    layers = tuple(range(1, whole)) if settings.layers == "all" else settings.layers
    if not layers or max(layers) >= whole:
        raise ConfigError(
            f"objective.layers {', '.join(map(str, layers)) or 'all'}: this backbone has {whole} layers, of"
            " which the last learns in any case; expected earlier ones"
        )
    encoder.model.learn_layers(after_layers(backbone))
    return layers


def _used_tokens(backbone: PreTrainedModel, stores: Iterable[TokenStore]) -> np.ndarray:
    """The ids that occur, ascending, with the padding's for batches that are padded."""
    used = np.zeros(cast("Any", backbone).get_input_embeddings().num_embeddings, dtype=np.bool_)
    for store in stores:
        for start in range(0, len(store.ids), _AT_ONCE):
            used[store.ids[start : start + _AT_ONCE]] = True
    used[getattr(backbone.config, "pad_token_id", None) or 0] = True
    return np.flatnonzero(used)


def load_teachers(
    resolved: ResolvedSettings, loaded: Loaded, own: Collection[str], show: Listener, *, identify: bool = True
) -> list[Teacher]:
    """The guide and teacher of a run, checked against its rows; to `identify` them, rank 0 loads them."""
    found = teachers_of(resolved.run)
    if identify:
        with stage("load advisers", show) if found else nullcontext():
            known: list[Mapping[str, Any]] = on_main(lambda: [teacher.identity for teacher in found])
        for teacher, identity in zip(found, known, strict=True):
            teacher.set_identity(identity)
    for name, rows in loaded.data.train.items():
        wanted, given = resolved.datasets[name].objective, resolved.run.teacher
        check_teachers(found, wanted, loaded.encoder, rows, given, own=name in own)
    return found
