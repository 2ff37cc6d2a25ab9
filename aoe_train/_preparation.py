"""From a data source and a backbone to everything that a training loop needs; for training and plan."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from aoe_train._advice import NO_ADVICE, AdviceStore, AdviserVectors
from aoe_train._backbones.decoder import absorb_lora, add_lora, four_bit_config, has_lora
from aoe_train._backbones.depth import after_layers, count_layers
from aoe_train._batches import Batches
from aoe_train._cache_dir import cache_dir
from aoe_train._collate import Collate
from aoe_train._column_prompts import column_prompts
from aoe_train._conflicts import Say, silent
from aoe_train._defaults import chosen, chosen_objective
from aoe_train._encoder import Encoder
from aoe_train._examples import check_labels, negative_counts, negatives_in_words, read_examples
from aoe_train._memory import keep_freed_memory
from aoe_train._model_folder.files import read_object
from aoe_train._objectives.own import OwnObjective
from aoe_train._objectives.parts import RANKED, TAUGHT, Advisers, Sample
from aoe_train._objectives.sizes import make_objective
from aoe_train._packing.attention import NAME as PACKED_ATTENTION
from aoe_train._packing.rows import train_used_rows
from aoe_train._packing.run import use_fast_layers
from aoe_train._precision import choose_precision
from aoe_train._records import ABSENT
from aoe_train._trainer.arguments import set_optimisation
from aoe_train._trainer.pair_model import PairModel
from pairkit.errors import ConfigError, DataError
from pairkit.in_memory import Source, source_name
from pairkit.labels import LabelRules, score_scale, worth_telling
from pairkit.progress import Listener, unwatched
from pairkit.reader import split_names

if TYPE_CHECKING:
    from transformers import PreTrainedModel, TrainingArguments

    from aoe_train._objectives.settings import ObjectiveSettings
    from aoe_train._records import Examples
    from aoe_train._settings import TrainSettings
    from aoe_train._tokens import TokenStore

_SAMPLE = 2048  # texts by which a map to a teacher's vectors begins, or their axes are found


_AT_ONCE = 1 << 20  # tokens of a round


@dataclass(frozen=True)
class Sources:
    """What a run is made from, and where its model goes.

    Attributes:
        data: A pair dataset's folder, a file of pairs or triplets or texts, a Hub id, or rows in memory.
        backbone: A model folder, a Hub id, `minilm` or `smollm2`.
        out: The model's folder.
        dev_data: Held-out rows; None takes the data's validation split if it has one.
        columns: Roles to the data's names of columns.
        revision: A commit of the backbone's repository on the Hub.
        trust_remote_code: Whether the backbone may bring code; needs a revision.
    """

    data: Source
    backbone: str
    out: Path
    dev_data: Source | None = None
    columns: Mapping[str, str] | None = None
    revision: str | None = None
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        """Take paths and strings alike."""
        object.__setattr__(self, "out", Path(self.out))
        for name in ("data", "backbone", "dev_data"):
            if isinstance(value := getattr(self, name), Path):
                object.__setattr__(self, name, str(value))

    def names(self) -> dict[str, str | None]:
        """What messages and records call them."""
        dev = None if self.dev_data is None else source_name(self.dev_data)
        return {"data": source_name(self.data), "backbone": self.backbone, "dev_data": dev}


@dataclass(frozen=True)
class Data:
    """Rows to train on, and rows to choose the best weights by."""

    train: Examples
    dev: Examples | None


def read_data(
    sources: Sources,
    settings: TrainSettings,
    say: Say = silent,
    *,
    ranked: bool = True,
    show: Listener = unwatched,
) -> Data:
    """Read the rows of both.

    Args:
        sources: Where they are.
        settings: The run's.
        say: Told what was made of labels, of rows that have fewer negatives than others, and why a validation
            split can't be used that nobody asked for.
        ranked: Whether the settings' parts are what is trained by, which may need labels that differ.
        show: Told how far the rows are that are put on disk.

    Raises:
        ConfigError: no such source, or a bad mapping.
        DataError: no rows, rows that can't be used, or labels that rank nothing.
        RemoteError: the Hub could not be asked.
    """
    rules = LabelRules(settings.data.labels, settings.data.label_range)
    read = partial(
        read_examples, columns=sources.columns, rules=rules, conflicts=settings.data.conflicts, say=say
    )
    train = read(sources.data, streaming=settings.data.streaming, show=show)
    if len(counts := negative_counts(train)) > 1:
        say(f"{source_name(sources.data)}: negatives: {negatives_in_words(counts)}")
    told = _tell_labels(train, sources.data, say)
    if ranked and RANKED & chosen_objective(settings, train.kind).weights.wanted.keys():
        check_labels(train, sources.data)
    dev = None
    if sources.dev_data is not None:
        dev = read(sources.dev_data, split=_dev_split(sources.dev_data))
        _tell_labels(dev, sources.dev_data, say, told)
        if reason := _not_scorable(dev):
            raise DataError(f"{reason}; give other --dev-data, or none", path=source_name(sources.dev_data))
    elif "validation" in (splits := split_names(sources.data)) and len(splits) > 1:
        dev = read(sources.data, split="validation")
        if reason := _not_scorable(dev):
            say(f"{source_name(sources.data)}: its validation split is left out: {reason}")
            dev = None
    return Data(train, dev)


def _tell_labels(examples: Examples, source: Source, say: Say, before: str = "") -> str:
    """Say what was made of labels that are not 0 and 1 as they come, unless that was said before."""
    labels = examples.reading.labels
    words = worth_telling(labels)
    if labels is not None and words != before:
        say(f"{source_name(source)}: {labels}")
    return words


def _not_scorable(dev: Examples) -> str | None:
    """Why a model can't be scored on these held-out rows; None where it can."""
    if dev.kind == "single":
        return "single texts tell nothing that a model could be scored by"
    if dev.labels is not None and (dev.labels == dev.labels[0]).all():
        return f"all {len(dev)} labels are {dev.labels[0]:g}, which ranks nothing"
    return None


def _dev_split(source: Source) -> str | None:
    splits = split_names(source)
    return "validation" if "validation" in splits else splits[0] if len(splits) == 1 else None


def load_encoder(sources: Sources, settings: TrainSettings, device: Any) -> Encoder:
    """The backbone with what it is to be trained with.

    Weights that learn are float32; those that adapters leave as they are come in the numbers that the run
    computes with.

    Raises:
        ConfigError, DataError, RemoteError: see `Encoder.load`; a backbone that can't do what the run asks.
    """
    encoder = Encoder.load(
        sources.backbone,
        revision=sources.revision,
        trust_remote_code=sources.trust_remote_code,
        device=device,
        precision=choose_precision(settings.run.precision, device) if settings.lora else "fp32",
        packing=settings.run.packing,
        quantization=settings.lora and four_bit_config(settings.lora),
        **settings.encoder.model_dump(exclude_unset=True),
    )
    backbone = encoder.model.backbone
    if has_lora(backbone):
        if settings.lora and settings.lora.four_bit:
            raise ConfigError(
                f"{sources.backbone}: has adapters, which 4-bit weights can't take in; `aoe export` it to a "
                "whole model first, or set lora.four_bit=false"
            )
        absorb_lora(backbone)
    if settings.run.gradient_checkpointing:
        _recompute_layers(encoder)
    return encoder


def _recompute_layers(encoder: Encoder) -> None:
    backbone = encoder.model.backbone
    try:
        backbone.activation_checkpointing_enable({"use_reentrant": False})
    except ValueError as error:
        raise ConfigError(
            f"run.gradient_checkpointing: {type(backbone).__name__} can't recompute its layers; use run.chunk"
        ) from error
    if encoder.model.packed:  # the backward pass runs layers again, where nobody says how to attend
        backbone.config._attn_implementation = PACKED_ATTENTION


def choose(
    settings: TrainSettings, sources: Sources, data: Data, encoder: Encoder, args: TrainingArguments
) -> TrainSettings:
    """Settings with what nobody gave, by rows and backbone; the arguments follow them."""
    train = data.train
    written = _written(sources.data) or 2 * train.reading.written > len(train)
    made = chosen(settings, train.kind, rows=len(train), dim=encoder.dim, written=written)
    set_optimisation(args, made.optim)
    return made


def _written(source: Source) -> bool:
    """Whether LLMs or rules wrote the pairs: a dataset's record says that `label` made it."""
    folder = Path(source_name(source))
    for place in (folder, folder.parent):  # `triplet` and `positive` lie in the dataset's folder
        with suppress(DataError, OSError, ValueError):  # of others; a name may be no path at all
            if str(read_object(place / "run.json").get("made_by")).startswith("label "):
                return True
    return False


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


def prepare(
    encoder: Encoder,
    data: Data,
    settings: TrainSettings,
    args: TrainingArguments,
    *,
    objective: OwnObjective | None = None,
    advice: AdviceStore = NO_ADVICE,
    progress: Listener | None = None,
) -> Prepared:
    """Tokenise, plan batches, and put backbone and objective together.

    Args:
        encoder: What is trained, in place.
        data: The rows.
        settings: The run's.
        args: Says which of how many processes this is.
        objective: A loss of one's own, in place of the settings' parts.
        advice: What guide and teacher say of the rows to train on.
        progress: Told how many texts are tokenised.

    Raises:
        ConfigError: objective, data and backbone don't go together, or sizes don't fit.
        DataError: too few rows, or a text without tokens.
    """
    kinds = [rows for rows in (data.train, data.dev) if rows is not None]
    prompts = column_prompts(settings.prompts, encoder.settings, kinds)
    encoder.settings = prompts.kept
    data = Data(prompts.applied(data.train), None if data.dev is None else prompts.applied(data.dev))
    backbone = encoder.model.backbone
    if settings.run.shard and hasattr(backbone, "forward_packed"):
        raise ConfigError(
            "run.shard: a Recurrent Attention Network runs its layers as often as its texts have windows, in"
            " each process differently; leave it out"
        )
    if settings.lora is not None:
        add_lora(backbone, settings.lora)
        use_fast_layers(backbone)
    if encoder.model.pooling == "cells":  # which never pass through it
        cast("Any", backbone).layers[-1].review.requires_grad_(requires_grad=False)
    examples = data.train
    views = objective is not None or not settings.objective.weights.wanted.keys() <= TAUGHT
    if examples.kind == "single" and views and not _has_dropout(backbone):
        raise ConfigError(
            "data of single texts: the two views of a text differ by dropout alone, and the backbone has "
            "none; set its dropout in config.json, such as hidden_dropout_prob 0.1, use --lora, or give "
            "pairs"
        )
    store = encoder.tokens(examples.texts, examples.prompts, cache_dir=cache_dir("tokens"), progress=progress)
    # Rows that are shared out cost little, and an embedding in two parts can't be gathered as one.
    if settings.optim.weight_decay == 0 and args.optim.startswith("adamw") and not settings.run.shard:
        train_used_rows(backbone, _used_tokens(backbone, store))
    keep_freed_memory()
    # RAN passes its memory on only where a text has a second window.
    args.ddp_find_unused_parameters = hasattr(backbone, "forward_packed")
    layers = _learn_layers(encoder, settings.objective)
    loss = make_objective(
        settings.objective,
        dim=encoder.dim,
        kind=examples.kind,
        label_range=_label_range(examples),
        own=objective,
        advisers=_advisers(settings, encoder, advice, examples),
        layers=layers,
    ).to(args.device)  # Trainer would move it, but a plan has none, and weights are shared out before it
    batches = _plan(examples, store, settings, args, views=views)
    return Prepared(
        encoder,
        data,
        store,
        batches,
        PlannedLoader(
            batches,
            Collate(examples, store, dedup=settings.batches.dedup, views=views, advice=advice),
            len(examples),
            pin_memory=args.device.type == "cuda",
        ),
        PairModel(encoder.model, loss, chunk=settings.run.chunk, dim=encoder.settings.dim, layers=layers),
    )


def _advisers(settings: TrainSettings, encoder: Encoder, advice: AdviceStore, examples: Examples) -> Advisers:
    """What is known of them before the first batch."""
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


def _sample(encoder: Encoder, teacher: AdviserVectors, examples: Examples) -> Sample:
    """Vectors of some texts, evenly from all rows, by both models."""
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
    told = teacher.of_rows(rows)[:, :columns]
    return Sample(torch.from_numpy(own), told[torch.from_numpy(there)])


def _learn_layers(encoder: Encoder, settings: ObjectiveSettings) -> tuple[int, ...]:
    """Numbers of the earlier layers that shall learn; the text model is told what comes after a layer."""
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


def _has_dropout(backbone: PreTrainedModel) -> bool:
    if any(isinstance(module, nn.Dropout) and module.p > 0 for module in backbone.modules()):
        return True
    named = backbone.config.to_dict().items()  # what attention drops is no module in many models
    return any(value for name, value in named if name.startswith("att") and "drop" in name)


def _used_tokens(backbone: PreTrainedModel, store: TokenStore) -> np.ndarray:
    """The ids that occur, ascending, with the padding's for batches that are padded."""
    used = np.zeros(cast("Any", backbone).get_input_embeddings().num_embeddings, dtype=np.bool_)
    for start in range(0, len(store.ids), _AT_ONCE):
        used[store.ids[start : start + _AT_ONCE]] = True
    used[getattr(backbone.config, "pad_token_id", None) or 0] = True
    return np.flatnonzero(used)


def _plan(
    examples: Examples, store: TokenStore, settings: TrainSettings, args: TrainingArguments, *, views: bool
) -> Batches:
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
        views=views,
    )


def _label_range(examples: Examples) -> tuple[float, float] | None:
    labels = examples.labels
    return None if labels is None else score_scale(float(labels.min()), float(labels.max()))
