"""From rows and a backbone to everything that a training loop needs; for training and plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from aoe_train.data.batches import Batches
from aoe_train.data.collate import Collate
from aoe_train.data.column_prompts import run_prompts
from aoe_train.data.defaults import Rows, chosen, chosen_for_all, chosen_for_decoder, weights
from aoe_train.data.mixture import MixedCollate, Mixture
from aoe_train.data.run_data import Data
from aoe_train.model.backbones.decoder import absorb_lora, add_lora, four_bit_config, has_lora, is_causal
from aoe_train.model.backbones.depth import after_layers, count_layers, train_top_layers
from aoe_train.model.backbones.load import check_pin, find_folder, outline
from aoe_train.model.backbones.recompute import recompute_layers
from aoe_train.model.backbones.static import is_static, refuse_static
from aoe_train.model.cache_dir import cache_dir
from aoe_train.model.encoder import Encoder
from aoe_train.model.encoder_settings import stored_settings
from aoe_train.model.folder.files import read_object
from aoe_train.model.memory import keep_freed_memory
from aoe_train.model.packing.attention import NAME as PACKED_ATTENTION
from aoe_train.model.packing.rows import train_used_rows
from aoe_train.model.packing.run import use_fast_layers
from aoe_train.model.precision import choose_precision
from aoe_train.objectives.own import OwnObjective
from aoe_train.objectives.parts import TAUGHT, Advisers, Sample
from aoe_train.objectives.sizes import make_objective
from aoe_train.records import ABSENT, NO_ADVICE, AdviceStore, AdviserVectors
from aoe_train.training.text_objective import TextObjective, TextObjectiveModel, begun
from aoe_train.training.trainer.arguments import set_optimisation
from aoe_train.training.trainer.pair_model import PairModel
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.progress import Listener
from pairkit.dataset.in_memory import Source, source_name
from pairkit.dataset.labels import score_scale

if TYPE_CHECKING:
    from transformers import PreTrainedModel, TrainingArguments

    from aoe_train.data.run_data import Sources
    from aoe_train.model.tokens.tokens import TokenStore
    from aoe_train.objectives.settings import ObjectiveSettings
    from aoe_train.records import Examples
    from aoe_train.settings.training import EncoderSettings, TrainSettings

_SAMPLE = 2048  # texts by which a map to a teacher's vectors begins, or their axes are found
_AT_ONCE = 1 << 20  # tokens that are looked at in one go


def load_encoder(sources: Sources, settings: TrainSettings, device: Any) -> tuple[Encoder, TrainSettings]:
    """The backbone with what it is to be trained with, and the settings with what suits a decoder.

    Weights that learn are float32; those that adapters leave as they are come in the numbers that the run
    computes with.
    """
    folder = _folder(sources)
    settings = _for_decoder(settings, folder, trust_remote_code=sources.trust_remote_code)
    encoder = Encoder.load(
        folder,
        trust_remote_code=sources.trust_remote_code,
        device=device,
        precision=choose_precision(settings.run.precision, device) if settings.lora else "fp32",
        packing=settings.run.packing,
        quantization=settings.lora and four_bit_config(settings.lora),
        **settings.encoder.model_dump(exclude_unset=True),
    )
    backbone = encoder.model.backbone
    refuse_static(backbone, f"{sources.backbone}: training")
    if has_lora(backbone):
        if settings.lora and settings.lora.four_bit:
            raise ConfigError(
                f"{sources.backbone}: has adapters, which 4-bit weights can't take in; `aoe export` it to a "
                "whole model first, or set lora.four_bit=false"
            )
        absorb_lora(backbone)
    if settings.run.gradient_checkpointing:
        _recompute_layers(encoder)
    return encoder, settings


def _folder(sources: Sources) -> Path:
    """The backbone's."""
    check_pin(sources.backbone, sources.revision, trust_remote_code=sources.trust_remote_code)
    return find_folder(sources.backbone, revision=sources.revision)


def _for_decoder(settings: TrainSettings, folder: Path, *, trust_remote_code: bool) -> TrainSettings:
    """The settings with what suits a decoder that nobody gave; known before its weights are read.

    A folder that says how its vectors are made is an encoder, whatever it was before. What code of its own
    makes of a configuration is not known.
    """
    encodes = is_static(folder) or "pooling" in stored_settings(folder)
    if encodes or trust_remote_code or not is_causal(outline(folder)):
        return settings
    return chosen_for_decoder(settings)


def _recompute_layers(encoder: Encoder) -> None:
    backbone = encoder.model.backbone
    try:
        recompute_layers(backbone)
    except ValueError as error:
        raise ConfigError(
            f"run.gradient_checkpointing: {type(backbone).__name__} can't recompute its layers; use run.chunk"
        ) from error
    if encoder.model.packed:  # the backward pass runs layers again, where nobody says how to attend
        backbone.config._attn_implementation = PACKED_ATTENTION


def choose(
    settings: TrainSettings, sources: Sources, data: Data, encoder: Encoder, args: TrainingArguments
) -> TrainSettings:
    """Settings with what nobody gave, by rows and backbone; the arguments follow them.

    Those of a single dataset are `of` it.
    """
    found = {
        name: Rows(
            rows.kind,
            len(rows),
            _written(sources.data[name]) or 2 * rows.reading.written > len(rows),
        )
        for name, rows in data.train.items()
    }
    if sources.several:
        made = chosen_for_all(settings, found, dim=encoder.dim)
    else:
        ((name, rows),) = found.items()
        made = chosen(settings.of(name), rows.kind, rows=rows.number, dim=encoder.dim, written=rows.written)
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
class Dataset:
    """All that is about one dataset that is trained on."""

    name: str
    examples: Examples
    store: TokenStore
    batches: Batches
    views: bool = True
    advice: AdviceStore = NO_ADVICE


@dataclass(frozen=True)
class Prepared:
    """All that training takes; `data` and `datasets` have the prompts of texts."""

    encoder: Encoder
    data: Data
    datasets: Sequence[Dataset]
    batches: Batches | Mixture
    loader: PlannedLoader
    model: PairModel


class PlannedLoader(DataLoader[int]):
    """Batches of a plan, epoch by epoch, each with its rows' numbers: an error can then name them."""

    def __init__(
        self, plan: Batches | Mixture, collate: Collate | MixedCollate, rows: int, **options: Any
    ) -> None:
        super().__init__(
            range(rows),  # type: ignore[arg-type]
            batch_sampler=plan,
            collate_fn=lambda numbers: {"numbers": numbers, **collate(numbers)},
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
    own: Mapping[str, OwnObjective] | None = None,
    advice: Mapping[str, AdviceStore] | None = None,
    progress: Listener | None = None,
) -> Prepared:
    """Tokenise, plan batches, and put backbone and objectives together."""
    data, encoder.settings = _with_prompts(data, settings, encoder.settings)
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
    own = own or {}
    reads_texts = any(isinstance(one, TextObjective) for one in own.values())
    views = {name: _views(settings.of(name), own.get(name)) for name in data.train}
    single = any(rows.kind == "single" and views[name] for name, rows in data.train.items())
    if single and not _has_dropout(backbone):
        raise ConfigError(
            "data of single texts: the two views of a text differ by dropout alone, and the backbone has "
            "none; set its dropout in config.json, such as hidden_dropout_prob 0.1, use --lora, or give "
            "pairs"
        )
    datasets = [
        _dataset(name, rows, encoder, settings.of(name), args, progress, views[name], advice or {})
        for name, rows in data.train.items()
    ]
    # Rows that are shared out cost little, and an embedding in two parts can't be gathered as one. A
    # TextObjective may show the model other tokens than the texts have.
    if (
        not reads_texts
        and settings.optim.weight_decay == 0
        and args.optim.startswith("adamw")
        and not settings.run.shard
    ):
        train_used_rows(backbone, _used_tokens(backbone, [dataset.store for dataset in datasets]))
    keep_freed_memory()
    layers = _learn_layers(encoder, _same_layers(settings, data.train))
    losses = [_loss(dataset, settings, encoder, own.get(dataset.name), layers) for dataset in datasets]
    several = len(datasets) > 1
    # Trainer would move it, but a plan has none, and weights are shared out before it.
    loss = (nn.ModuleList(losses) if several else losses[0]).to(args.device)
    # A TextObjective may leave weights out, RAN passes its memory on only where a text has a second window,
    # and a batch has one dataset's objective.
    args.ddp_find_unused_parameters = (
        reads_texts
        or hasattr(backbone, "forward_packed")
        or (several and any(True for _ in loss.parameters()))
    )
    batches, collate = _together(datasets, settings, args)
    rows = sum(len(dataset.examples) for dataset in datasets)
    loader = PlannedLoader(batches, collate, rows, pin_memory=args.device.type == "cuda")
    kind = TextObjectiveModel if reads_texts else PairModel
    model = kind(encoder.model, loss, chunk=settings.run.chunk, dim=encoder.settings.dim, layers=layers)
    return Prepared(encoder, data, datasets, batches, loader, model)


def _with_prompts(
    data: Data, settings: TrainSettings, encoder: EncoderSettings
) -> tuple[Data, EncoderSettings]:
    """The rows with their prompts, and the encoder's settings with these."""
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
    settings: TrainSettings,
    args: TrainingArguments,
    progress: Listener | None,
    views: bool,
    advice: Mapping[str, AdviceStore],
) -> Dataset:
    store = encoder.tokens(examples.texts, examples.prompts, cache_dir=cache_dir("tokens"), progress=progress)
    batches = _plan(examples, store, settings, args, views=views)
    return Dataset(name, examples, store, batches, views, advice.get(name, NO_ADVICE))


def _views(settings: TrainSettings, own: OwnObjective | None) -> bool:
    """Whether anything compares two views of a text, where one is its own positive."""
    if own is not None:
        return not isinstance(own, TextObjective)
    return not settings.objective.weights.wanted.keys() <= TAUGHT


def _same_layers(settings: TrainSettings, names: Iterable[str]) -> ObjectiveSettings:
    """The objective of any dataset: which layers learn is the same for all, as a model has them once."""
    found = {name: settings.of(name).objective for name in names}
    first, *others = found.values()
    if any(other.layers != first.layers for other in others):
        raise ConfigError(
            "objective.layers differs between datasets: a model has its layers for all of them; give it for"
            " the run, not in datasets.NAME"
        )
    return first


def _loss(
    dataset: Dataset,
    settings: TrainSettings,
    encoder: Encoder,
    own: OwnObjective | None,
    layers: tuple[int, ...],
) -> nn.Module:
    examples, wanted = dataset.examples, settings.of(dataset.name)
    if isinstance(own, TextObjective):
        return begun(own, encoder, examples.kind, settings.seed)
    try:
        return make_objective(
            wanted.objective,
            dim=encoder.dim,
            kind=examples.kind,
            label_range=_label_range(examples),
            own=own,
            advisers=_advisers(wanted, encoder, dataset.advice, examples),
            layers=layers,
        )
    except ConfigError as error:
        if not settings.datasets:
            raise
        raise ConfigError(f"dataset {dataset.name}: {error}") from error


def _together(
    datasets: Sequence[Dataset], settings: TrainSettings, args: TrainingArguments
) -> tuple[Batches, Collate] | tuple[Mixture, MixedCollate]:
    """The batches of a run, and what makes them."""
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
        weights(settings, [dataset.name for dataset in datasets]),
        settings.mix,
        seed=settings.seed,
        world=args.world_size,
        rank=args.process_index,
    )
    return mixture, MixedCollate(mixture, collates)


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


def _used_tokens(backbone: PreTrainedModel, stores: Iterable[TokenStore]) -> np.ndarray:
    """The ids that occur, ascending, with the padding's for batches that are padded."""
    used = np.zeros(cast("Any", backbone).get_input_embeddings().num_embeddings, dtype=np.bool_)
    for store in stores:
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
