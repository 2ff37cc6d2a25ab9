"""Build the inputs of the training loop from rows and a backbone: tokens, batches, objectives, the model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from aoe_train.data.column_prompts import run_prompts
from aoe_train.data.neighbourhoods import NeighbourBatches, NeighbourTeacher
from aoe_train.data.run_data import Data
from aoe_train.data.token_batches import Batches, Mixture, collate
from aoe_train.model.backbones.changes import (
    add_lora,
    has_lora,
    merge_lora,
    train_top_layers,
)
from aoe_train.model.encoder import Encoder
from aoe_train.model.packing.layers import train_all_rows, train_used_rows
from aoe_train.model.packing.sequences import use_fast_layers
from aoe_train.model.run_folder import cache_dir
from aoe_train.model.text_model import PackedBackbone
from aoe_train.objectives.objective import LossFunction, qualified_name
from aoe_train.objectives.objective_settings import TAUGHT
from aoe_train.objectives.training_rows import (
    Examples,
    TeacherOutputs,
)
from aoe_train.training.pair_model import (
    PairModel,
    TextObjective,
    build_objective,
    return_layers,
)
from aoe_train.training.teachers import precompute_vectors
from aoe_train.training.training_arguments import completed
from pairkit.base.errors import ConfigError
from pairkit.base.system.machine import keep_freed_memory

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedModel, TrainingArguments

    from aoe_train.model.tokenised import TokenStore
    from aoe_train.settings.train_settings import TrainSettings
    from aoe_train.training.load import Loaded

_TOKENS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Dataset:
    """A training dataset.

    Attributes:
        settings: The run's settings, overridden by the dataset's own.
        custom_loss: The user's own loss, which replaces the objective of the settings.
        views: Whether a single text is encoded twice, as two views; of no effect on
            other rows.
    """

    name: str
    examples: Examples
    settings: TrainSettings
    custom_loss: LossFunction | None
    store: TokenStore
    batches: Batches
    views: bool
    teacher_outputs: TeacherOutputs

    @property
    def loss_weights(self) -> dict[str, float]:
        """The loss parts by name with their weights, or the custom loss that replaces them."""
        if self.custom_loss is not None:
            return {qualified_name(self.custom_loss): 1.0}
        return self.settings.objective.weights.active


@dataclass(frozen=True)
class Built:
    """The inputs of the training loop."""

    loaded: Loaded
    args: TrainingArguments
    encoder: Encoder  # with the run's prompts; it shares its network with `model`
    data: Data  # with prompts
    datasets: Sequence[Dataset]
    batches: Mixture
    loader: DataLoader[int]
    model: PairModel

    @property
    def steps_an_epoch(self) -> int:
        """Optimiser steps an epoch."""
        return math.ceil(len(self.batches) / self.args.gradient_accumulation_steps)

    @property
    def steps(self) -> int:
        """Optimiser steps of the whole run."""
        return math.ceil(self.args.num_train_epochs * self.steps_an_epoch)

    def rows(self, steps: int) -> int:
        """Number of rows in this many optimiser steps, over all processes."""
        epochs, more_steps = divmod(steps, self.steps_an_epoch)
        batches = more_steps * self.args.gradient_accumulation_steps
        unfinished = self.batches.plan(epochs)[:batches]
        return self.batches.rows_seen(epochs) + sum(map(len, unfinished))

    def save(self, folder: Path) -> None:
        """Write the encoder, and the files of a `TextObjective`."""
        backbone = self.encoder.model.backbone
        train_all_rows(backbone)
        # Without a path, the adapters' folder could not name their backbone.
        if has_lora(backbone) and not backbone.name_or_path:
            merge_lora(backbone)
        self.encoder.save(folder)
        if isinstance(self.model.objective, TextObjective):
            self.model.objective.save(folder)


def build(loaded: Loaded, *, placeholders: bool = False) -> Built:
    """Tokenise, plan batches, and combine backbone and objectives.

    `placeholders` replace teachers' vectors. Raises ConfigError for settings that the rows or the backbone
    don't support. The backbone of `loaded` is changed: adapters are added, and weights are frozen.
    """
    settings = loaded.settings
    has_score = bool(loaded.data.dev) or loaded.sources.dev_metric is not None
    if settings.optim.patience is not None and not has_score:
        raise ConfigError("optim.patience: needs dev data; give --dev-data")
    # The main process fills the cache for the others.
    with loaded.process.args.main_process_first(local=False):
        outputs = precompute_vectors(loaded, placeholders=placeholders)
        encoder, data = _apply_prompts(loaded)
        _set_trained_weights(encoder, settings)
        datasets = [
            _build_dataset(name, rows, encoder, loaded, outputs[name])
            for name, rows in data.train.items()
        ]
        model = _build_model(encoder, datasets, loaded)
        batches = Mixture(
            [dataset.batches for dataset in datasets],
            [settings.section(dataset.name).weight for dataset in datasets],
            settings.mix,
            seed=settings.seed,
            world=loaded.process.args.world_size,
            rank=loaded.process.args.process_index,
        )
    args = completed(
        loaded,
        batches=len(batches),
        evaluate=has_score,
        find_unused=_may_skip_weights(model, loaded),
    )
    loader = _build_loader(datasets, batches, args.device)
    return Built(loaded, args, encoder, data, datasets, batches, loader, model)


def _apply_prompts(loaded: Loaded) -> tuple[Encoder, Data]:
    """The encoder and the rows with the run's prompts."""
    given = loaded.encoder
    data = loaded.data
    prompts, settings = run_prompts(
        loaded.settings, given.settings, data.train, data.dev
    )
    train = {name: prompts[name].applied(rows) for name, rows in data.train.items()}
    dev = {name: prompts[name].applied(rows) for name, rows in data.dev.items()}
    return Encoder(given.model, given.tokenizer, settings), Data(train, dev)


def _may_skip_weights(model: PairModel, loaded: Loaded) -> bool:
    """Whether a step may leave weights without gradients.

    It does if it runs a part of the network, or the objective of one of several datasets.
    """
    backbone: Any = model.text_model.backbone
    return (
        isinstance(model.objective, TextObjective)
        or (isinstance(backbone, PackedBackbone) and backbone.varies)
        or (loaded.sources.several and bool([*model.objective.parameters()]))
    )


def _set_trained_weights(encoder: Encoder, settings: TrainSettings) -> None:
    """Add adapters, and freeze all weights but the trained ones: adapters, the top layers or all."""
    backbone: Any = encoder.model.backbone
    is_packed = isinstance(backbone, PackedBackbone)
    if settings.run.shard and is_packed and backbone.varies:
        raise ConfigError(
            f"run.shard: not supported for a {backbone.title}, whose processes run different modules; leave"
            " it out"
        )
    if settings.lora is not None:
        add_lora(backbone, settings.lora)
        use_fast_layers(backbone)
    if settings.optim.top_layers is not None:
        train_top_layers(backbone, settings.optim.top_layers)
    if is_packed:
        for module in backbone.unused_modules(encoder.model.pooling):
            module.requires_grad_(requires_grad=False)


def _check_dropout(backbone: PreTrainedModel) -> None:
    """Refuse single texts without dropout, which makes the two views of a text different."""
    if not any(_dropout_rates(backbone)):
        raise ConfigError(
            "single texts need a backbone with dropout, which makes the two views of a text different; set it"
            " in config.json, such as hidden_dropout_prob 0.1, use --lora, or train on pairs"
        )


def _dropout_rates(backbone: PreTrainedModel) -> Iterator[float]:
    """Rates of dropout modules, and those that other modules or attention apply."""
    for module in backbone.modules():
        if isinstance(module, nn.Dropout):
            yield module.p
        for name, value in vars(module).items():
            if "dropout" in name and isinstance(value, float):
                yield value
    for name, rate in backbone.config.to_dict().items():
        if name.startswith("att") and "drop" in name:
            yield rate


def _build_model(
    encoder: Encoder, datasets: Sequence[Dataset], loaded: Loaded
) -> PairModel:
    """The text model with the objective of each dataset, on the run's device."""
    backbone = encoder.model.backbone
    settings = loaded.settings
    args = loaded.process.args
    # Only embeddings of occurring tokens are trained. Not with sharding, which can't gather an embedding in
    # two parts, nor with a TextObjective, which may use other tokens than those of the texts.
    if (
        not isinstance(datasets[0].custom_loss, TextObjective)
        and settings.optim.weight_decay == 0
        and args.optim.startswith("adamw")
        and not settings.run.shard
    ):
        train_used_rows(backbone, _used_tokens(backbone, datasets))
    keep_freed_memory()
    layers = return_layers(encoder, datasets)
    objective = build_objective(datasets, encoder, layers)
    # The training loop moves the objective, too, but a dry run has no loop, and sharding comes before it.
    objective.to(args.device)
    return PairModel(
        encoder.model,
        objective,
        chunk=settings.run.chunk,
        dim=encoder.settings.dim,
        layers=layers,
    )


def _build_dataset(
    name: str,
    examples: Examples,
    encoder: Encoder,
    loaded: Loaded,
    teacher_outputs: TeacherOutputs,
) -> Dataset:
    """The tokens and batches of a dataset."""
    settings = loaded.datasets[name]
    world = loaded.process.args.world_size
    custom_loss = loaded.sources.losses.get(name)
    if custom_loss is None:
        views = not settings.objective.weights.active.keys() <= TAUGHT
    else:
        views = not isinstance(custom_loss, TextObjective)
    if examples.kind == "single" and views:
        _check_dropout(encoder.model.backbone)
    store = encoder.tokens(
        examples.texts,
        examples.prompts,
        cache_dir=cache_dir("tokens"),
        progress=loaded.process.show,
    )
    size = settings.optim.batch_size * world
    teacher = teacher_outputs.vectors.get("teacher")
    if isinstance(teacher, NeighbourTeacher):
        batches: Batches = NeighbourBatches(
            examples,
            store.lengths,
            size,
            teacher.nearest,
            seed=settings.seed,
            world=world,
        )
    else:
        batches = Batches(
            examples,
            store.lengths,
            size,
            settings.batches,
            seed=settings.seed,
            world=world,
            views=views,
        )
    return Dataset(
        name, examples, settings, custom_loss, store, batches, views, teacher_outputs
    )


def _build_loader(
    datasets: Sequence[Dataset], batches: Mixture, device: torch.device
) -> DataLoader[int]:
    """Loads the batches with the `numbers` of their rows; with several datasets also with their `dataset`."""

    def collated(rows: list[int]) -> dict[str, object]:
        dataset_number, row_numbers = batches.locate(rows)
        dataset = datasets[dataset_number]
        batch = collate(
            row_numbers,
            dataset.examples,
            dataset.store,
            dataset.teacher_outputs,
            views=dataset.views,
        )
        batch["numbers"] = row_numbers
        if len(datasets) > 1:
            batch["dataset"] = dataset_number
        return batch

    return DataLoader(
        range(batches.starts[-1]),  # type: ignore[arg-type]
        batch_sampler=batches,
        collate_fn=collated,
        pin_memory=device.type == "cuda",
    )


def _used_tokens(backbone: Any, datasets: Iterable[Dataset]) -> np.ndarray:
    """The token ids that occur, ascending, including the padding token."""
    used = np.zeros(backbone.get_input_embeddings().num_embeddings, np.bool_)
    for dataset in datasets:
        ids = dataset.store.ids
        for start in range(0, len(ids), _TOKENS_AT_ONCE):
            used[ids[start : start + _TOKENS_AT_ONCE]] = True
    used[getattr(backbone.config, "pad_token_id", None) or 0] = True
    return np.flatnonzero(used)
