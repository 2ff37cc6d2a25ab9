"""From a data source and a backbone to everything that a training loop needs; for training and dry run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch.utils.data import DataLoader

from aoe_train.backbones.decoder import add_lora, four_bit_config
from aoe_train.batches import Batches
from aoe_train.collate import Collate
from aoe_train.encoder import Encoder
from aoe_train.examples import check_labels, read_examples
from aoe_train.objectives.kinds import RANKED
from aoe_train.objectives.mix import Objective
from aoe_train.packing.attention import NAME as PACKED_ATTENTION
from aoe_train.packing.memory import keep_freed_memory
from aoe_train.packing.rows import train_used_rows
from aoe_train.packing.run import use_fast_layers
from aoe_train.token_cache import default_cache_dir
from aoe_train.trainer.pair_model import PairModel
from pairkit.reader import split_names

if TYPE_CHECKING:
    from transformers import TrainingArguments

    from aoe_train.records import Examples
    from aoe_train.settings import TrainSettings
    from aoe_train.tokens import TokenStore


@dataclass(frozen=True)
class Sources:
    """What a run is made from, and where its model goes.

    Attributes:
        data: A pair dataset's folder, a file of pairs or triplets or texts, or a hub name.
        backbone: A model folder, a hub name, or `minilm`.
        out: The model's folder.
        dev_data: Held-out rows; None takes the data's validation split if it has one.
        columns: Roles to the data's names of columns.
        label_values: Words to numbers, for labels that are words.
        revision: A commit of the backbone's hub repository.
        trust_remote_code: Whether the backbone may bring code; needs a revision.
    """

    data: str
    backbone: str
    out: Path
    dev_data: str | None = None
    columns: Mapping[str, str] | None = None
    label_values: Mapping[str, float] | None = None
    revision: str | None = None
    trust_remote_code: bool = False


@dataclass(frozen=True)
class Data:
    """Rows to train on, and rows to choose the best weights by."""

    train: Examples
    dev: Examples | None


def read_data(sources: Sources, settings: TrainSettings) -> Data:
    """Read the rows of both.

    Raises:
        ConfigError: no such source, or a bad mapping.
        DataError: no rows, rows that can't be used, or labels that rank nothing.
        RemoteError: the hub could not be asked.
    """
    read = partial(read_examples, columns=sources.columns, label_values=sources.label_values)
    train = read(sources.data)
    if RANKED & settings.objective.weights.wanted.keys():
        check_labels(train, sources.data)
    dev = None
    if sources.dev_data is not None:
        dev = read(sources.dev_data, split=_dev_split(sources.dev_data))
    elif "validation" in (splits := split_names(sources.data)) and len(splits) > 1:
        dev = read(sources.data, split="validation")
    return Data(train, dev)


def _dev_split(source: str) -> str | None:
    splits = split_names(source)
    return "validation" if "validation" in splits else splits[0] if len(splits) == 1 else None


def load_encoder(sources: Sources, settings: TrainSettings, device: Any) -> Encoder:
    """The backbone with what it is to be trained with; see `Encoder.load` for the errors."""
    encoder = Encoder.load(
        sources.backbone,
        revision=sources.revision,
        trust_remote_code=sources.trust_remote_code,
        device=device,
        precision="fp32",
        packing=settings.run.packing,
        quantization=settings.lora and four_bit_config(settings.lora),
        **settings.encoder.model_dump(exclude_unset=True),
    )
    if settings.run.gradient_checkpointing:
        backbone = encoder.model.backbone
        backbone.activation_checkpointing_enable({"use_reentrant": False})
        if encoder.model.packed:  # the backward pass runs layers again, where nobody says how to attend
            backbone.config._attn_implementation = PACKED_ATTENTION
    return encoder


@dataclass(frozen=True)
class Prepared:
    """All that training takes."""

    encoder: Encoder
    data: Data
    store: TokenStore
    batches: Batches
    loader: PlannedLoader
    model: PairModel


class PlannedLoader(DataLoader[int]):
    """Batches of a plan, epoch by epoch, each with its rows' numbers: an error can then name them."""

    def __init__(self, plan: Batches, collate: Collate, rows: int, **options: Any) -> None:
        super().__init__(
            range(rows),  # type: ignore[arg-type]
            batch_sampler=plan,
            collate_fn=lambda numbers: {**collate(numbers), "numbers": numbers},
            **options,
        )

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch to iterate over, from 0; transformers calls it."""
        self.batch_sampler.set_epoch(epoch)  # type: ignore[union-attr]


def prepare(encoder: Encoder, data: Data, settings: TrainSettings, args: TrainingArguments) -> Prepared:
    """Tokenise, plan batches, and put backbone and objective together.

    Args:
        encoder: What is trained, in place.
        data: The rows.
        settings: The run's.
        args: Says which of how many processes this is.

    Raises:
        ConfigError: objective, data and backbone don't go together, or sizes don't fit.
        DataError: too few rows, or a text without tokens.
    """
    backbone = encoder.model.backbone
    if settings.lora is not None:
        add_lora(backbone, settings.lora)
        use_fast_layers(backbone)
    examples = data.train
    store = encoder.tokens(examples.texts, cache_dir=default_cache_dir())
    if settings.optim.weight_decay == 0 and not args.fsdp:
        padding = getattr(backbone.config, "pad_token_id", None) or 0  # for batches that are padded
        train_used_rows(backbone, np.union1d(store.ids, [padding]))
    keep_freed_memory()
    objective = Objective(
        settings.objective, dim=encoder.dim, kind=examples.kind, label_range=_label_range(examples)
    )
    batches = _plan(examples, store, settings, args)
    return Prepared(
        encoder,
        data,
        store,
        batches,
        PlannedLoader(
            batches,
            Collate(examples, store, dedup=settings.batches.dedup),
            len(examples),
            pin_memory=args.device.type == "cuda",
        ),
        PairModel(encoder.model, objective, chunk=settings.run.chunk),
    )


def _plan(examples: Examples, store: TokenStore, settings: TrainSettings, args: TrainingArguments) -> Batches:
    return Batches(
        examples,
        store.lengths,
        settings.optim.batch_size * args.world_size,
        strategy=settings.batches.strategy,
        max_tokens=settings.batches.max_tokens,
        seed=settings.seed,
        world=args.world_size,
        rank=args.process_index,
        drop_last=settings.batches.drop_last,
    )


def _label_range(examples: Examples) -> tuple[float, float] | None:
    labels = examples.labels
    return None if labels is None else (float(labels.min()), float(labels.max()))
