"""From a data source and a backbone to everything that a training loop needs; for training and plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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
from aoe_train._column_prompts import run_prompts
from aoe_train._conflicts import Say, silent
from aoe_train._defaults import Rows, chosen, chosen_for_all, chosen_objective, weights
from aoe_train._encoder import Encoder
from aoe_train._examples import check_labels, negative_counts, negatives_in_words, read_examples
from aoe_train._memory import keep_freed_memory
from aoe_train._mixture import MixedCollate, Mixture
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
from pairkit.named_sources import named_sources
from pairkit.printable import one_line
from pairkit.progress import Listener, unwatched
from pairkit.reader import split_names

if TYPE_CHECKING:
    from transformers import PreTrainedModel, TrainingArguments

    from aoe_train._objectives.settings import ObjectiveSettings
    from aoe_train._records import Examples
    from aoe_train._settings import EncoderSettings, TrainSettings
    from aoe_train._tokens import TokenStore

_SAMPLE = 2048  # texts by which a map to a teacher's vectors begins, or their axes are found


_AT_ONCE = 1 << 20  # tokens of a round


@dataclass(frozen=True)
class Sources:
    """What a run is made from, and where its model goes.

    Attributes:
        data: By name, what to train on: pair datasets' folders, files of pairs or triplets or texts, Hub ids,
            or rows in memory. One source, or a list of them, is given names.
        backbone: A model folder, a Hub id, `minilm` or `smollm2`.
        out: The model's folder.
        dev_data: By name, held-out rows, given alike; None takes the validation splits that the data have.
        columns: Roles to the data's names of columns.
        revision: A commit of the backbone's repository on the Hub.
        trust_remote_code: Whether the backbone may bring code; needs a revision.
    """

    data: Mapping[str, Source]
    backbone: str
    out: Path
    dev_data: Mapping[str, Source] | None = None
    columns: Mapping[str, str] | None = None
    revision: str | None = None
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        """Name what has no name, in the order of names: the order in which datasets are given has no say."""
        dev = None if self.dev_data is None else named_sources(self.dev_data)
        named = dict(sorted(named_sources(self.data).items()))
        for name, value in {"data": named, "dev_data": dev, "out": Path(self.out)}.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "backbone", str(self.backbone))

    @property
    def several(self) -> bool:
        """Whether there is more than one dataset to train on."""
        return len(self.data) > 1

    def names(self) -> dict[str, str | dict[str, str] | None]:
        """What messages and records call them: a table by name where there are several."""
        dev = None if self.dev_data is None else one_or_all(_source_names(self.dev_data))
        return {"data": one_or_all(_source_names(self.data)), "backbone": self.backbone, "dev_data": dev}


def one_or_all(by_name: Mapping[str, Any]) -> Any:
    """The one value where there is one, else all by name; a record of one dataset has no names in it."""
    return next(iter(by_name.values())) if len(by_name) == 1 else dict(by_name)


def _source_names(sources: Mapping[str, Source]) -> dict[str, str]:
    return {name: source_name(source) for name, source in sources.items()}


@dataclass(frozen=True)
class Data:
    """Rows to train on, and rows to choose the best weights by; each by name."""

    train: Mapping[str, Examples]
    dev: Mapping[str, Examples]


def read_data(
    sources: Sources,
    settings: TrainSettings,
    say: Say = silent,
    *,
    ranked: Collection[str] | None = None,
    show: Listener = unwatched,
) -> Data:
    """Read the rows of all.

    Args:
        sources: Where they are.
        settings: The run's; each dataset is read with those `of` it.
        say: Told what was made of labels, of rows that have fewer negatives than others, and why a validation
            split can't be used that nobody asked for.
        ranked: Datasets for which the settings' parts are what is trained by, which may need labels that
            differ; None for all.
        show: Told how far the rows are that are put on disk.

    Raises:
        ConfigError: no such source, a bad mapping, or settings for what is no dataset.
        DataError: no rows, rows that can't be used, or labels that rank nothing.
        RemoteError: the Hub could not be asked.
    """
    check_names(settings, sources)
    train: dict[str, Examples] = {}
    told: dict[str, str] = {}
    for name, source in sources.data.items():
        with _named_errors(name, sources):
            train[name], told[name] = _read_train(
                name, sources, settings, _named_say(name, sources, say), show
            )
            wanted = chosen_objective(settings.of(name), train[name].kind).weights.wanted
            if (ranked is None or name in ranked) and RANKED & wanted.keys():
                check_labels(train[name], source)
    return Data(train, _read_dev(sources, settings, told, say))


def _read_train(
    name: str, sources: Sources, settings: TrainSettings, say: Say, show: Listener
) -> tuple[Examples, str]:
    """A dataset's rows, and what was told of their labels."""
    source = sources.data[name]
    rows = _reader(name, sources, settings, say)(source, streaming=settings.data.streaming, show=show)
    if len(counts := negative_counts(rows)) > 1:
        say(f"{source_name(source)}: negatives: {negatives_in_words(counts)}")
    return rows, _tell_labels(rows, source, say)


def _read_dev(
    sources: Sources, settings: TrainSettings, told: Mapping[str, str], say: Say
) -> dict[str, Examples]:
    """The held-out rows that were given, or the validation splits that can be used."""
    dev: dict[str, Examples] = {}
    for name, source in (sources.data if sources.dev_data is None else sources.dev_data).items():
        tell = _named_say(name, sources, say)
        with _named_errors(name, sources):
            read = _reader(name, sources, settings, tell)
            if sources.dev_data is not None:
                rows = read(source, split=_dev_split(source))
                _tell_labels(rows, source, tell, told.get(name, next(iter(told.values()))))
                if reason := _not_scorable(rows):
                    raise DataError(f"{reason}; give other --dev-data, or none", path=source_name(source))
                dev[name] = rows
            elif "validation" in (splits := split_names(source)) and len(splits) > 1:
                rows = read(source, split="validation")
                if reason := _not_scorable(rows):
                    tell(f"{source_name(source)}: its validation split is left out: {reason}")
                else:
                    dev[name] = rows
    if settings.mix.dev is not None and settings.mix.dev not in dev:
        raise ConfigError(
            f"mix.dev: no dev set {one_line(settings.mix.dev, 80)!r}; "
            + (f"there are {', '.join(dev)}" if dev else "there is none: give --dev-data")
        )
    return dev


def _reader(name: str, sources: Sources, settings: TrainSettings, say: Say) -> Callable[..., Examples]:
    """Reads the rows of a dataset or dev set as its settings say; a dev set may be called otherwise."""
    (first, *others) = sources.data
    like = first if name not in {*sources.data, *settings.datasets} and not others else name
    own, section = settings.of(like).data, settings.datasets.get(like)
    columns = sources.columns if section is None or section.columns is None else section.columns
    rules = LabelRules(own.labels, own.label_range)
    return partial(read_examples, columns=columns, rules=rules, conflicts=own.conflicts, say=say)


def check_names(settings: TrainSettings, sources: Sources) -> None:
    """See that settings are for datasets that there are, and mean something for them.

    Raises:
        ConfigError: They are for none; names those that there are.
    """
    held_out = sources.dev_data or {}
    known = dict.fromkeys([*sources.data, *held_out])
    for name, own in settings.datasets.items():
        if name not in known:
            raise ConfigError(f"datasets.{one_line(name, 80)}: no such dataset; there are {', '.join(known)}")
        only = sorted(own.model_fields_set & {"weight", "batch_size", "preset", "objective"})
        if name not in sources.data and only:
            raise ConfigError(
                f"datasets.{name}.{only[0]}: {name} is held out; it is for {', '.join(sources.data)}"
            )
        if "weight" in only and settings.mix.until == "once":
            raise ConfigError(
                f"datasets.{name}.weight: has no say where each row is seen once an epoch; leave it out, or"
                " set mix.epoch to longest or shortest"
            )


@contextmanager
def _named_errors(name: str, sources: Sources) -> Iterator[None]:
    """Where there are several datasets, an error says which it is about."""
    try:
        yield
    except (ConfigError, DataError) as error:
        if not sources.several and len(sources.dev_data or {}) < 2:
            raise
        raise type(error)(f"dataset {name}: {error}") from error


def _named_say(name: str, sources: Sources, say: Say) -> Say:
    return (lambda words: say(f"{name}: {words}")) if sources.several else say


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
    """All that is about one dataset that is trained on.

    Attributes:
        name: By which it is told.
        examples: Its rows.
        store: The tokens of their texts.
        batches: How they are dealt out.
        views: Whether anything compares two views of a text that is its own positive.
        advice: What guide and teacher say of the rows.
    """

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
    """Tokenise, plan batches, and put backbone and objectives together.

    Args:
        encoder: What is trained, in place.
        data: The rows.
        settings: The run's.
        args: Says which of how many processes this is.
        own: By dataset, a loss of one's own in place of the settings' parts.
        advice: By dataset, what guide and teacher say of its rows.
        progress: Told how many texts are tokenised.

    Raises:
        ConfigError: objective, data and backbone don't go together, or sizes don't fit.
        DataError: too few rows, or a text without tokens.
    """
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
    if encoder.model.pooling == "cells":  # which never pass through it
        cast("Any", backbone).layers[-1].review.requires_grad_(requires_grad=False)
    views = {name: _views(settings.of(name), own=name in (own or {})) for name, rows in data.train.items()}
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
    # Rows that are shared out cost little, and an embedding in two parts can't be gathered as one.
    if settings.optim.weight_decay == 0 and args.optim.startswith("adamw") and not settings.run.shard:
        train_used_rows(backbone, _used_tokens(backbone, [dataset.store for dataset in datasets]))
    keep_freed_memory()
    layers = _learn_layers(encoder, _same_layers(settings, data.train))
    losses = [
        _loss(dataset, settings, encoder, (own or {}).get(dataset.name), layers) for dataset in datasets
    ]
    several = len(datasets) > 1
    loss = (nn.ModuleList(losses) if several else losses[0]).to(args.device)
    # Trainer would move it, but a plan has none, and weights are shared out before it.
    # RAN passes its memory on only where a text has a second window, and a batch has one dataset's objective.
    args.ddp_find_unused_parameters = hasattr(backbone, "forward_packed") or (
        several and any(True for _ in loss.parameters())
    )
    batches, collate = _together(datasets, settings, args)
    rows = sum(len(dataset.examples) for dataset in datasets)
    loader = PlannedLoader(batches, collate, rows, pin_memory=args.device.type == "cuda")
    model = PairModel(encoder.model, loss, chunk=settings.run.chunk, dim=encoder.settings.dim, layers=layers)
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


def _views(settings: TrainSettings, *, own: bool) -> bool:
    """Whether anything compares two views of a text, where one is its own positive."""
    return own or not settings.objective.weights.wanted.keys() <= TAUGHT


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
