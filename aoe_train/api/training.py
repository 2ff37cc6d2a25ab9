"""The functions behind `aoe train`, and their result."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aoe_train.api.parameters import (
    MODEL,
    column_prompts,
    compare_command,
    named_sources,
    notes,
    optional,
    options,
    review_steps,
)
from pairkit.base.cli.options import INPUT, RUN, Request, parameter, takes
from pairkit.base.cli.terminal import CommandResult
from pairkit.base.errors import ConfigError, spoken_notes

if TYPE_CHECKING:
    from transformers import TrainerCallback

    from aoe_train.data.run_data import Sources
    from aoe_train.evaluation.gain import Gain
    from aoe_train.model.encoder import Encoder
    from aoe_train.objectives.objective import LossFunction
    from aoe_train.settings.train_settings import TrainSettings
    from aoe_train.training.train import RunRecord
    from aoe_train.training.train_plan import Plan
    from pairkit.base.cli.progress import Listener
    from pairkit.dataset.labels import Meaning
    from pairkit.dataset.reading.in_memory import Source
    from pairkit.dataset.reading.named_sources import Given

_training = partial(optional, panel="Training")
_KEPT_BACKBONE = (
    "kept the backbone: the model was not shown to be better, so the backbone's weights were saved"
    " (--if-not-better=model saves the model's)"
)


class TrainRequest(
    Request, shared=options, settings="aoe_train.settings.train_settings:TrainSettings"
):
    """The arguments of `train` and `plan`."""

    data: Given | None = optional(options["data"], repeat=True, read=named_sources)
    _: KW_ONLY
    backbone: str | Path = parameter(
        default="minilm", short="-b", metavar="MODEL", panel=MODEL, main=True
    )
    out: str | Path = "model"
    preset: str | None = _training(setting="preset", metavar="NAME", main=True)
    purpose: str | None = _training(setting="purpose", metavar="NAME", main=True)
    dims: Sequence[int] | str | None = _training(
        setting="objective.dims", metavar="N,…", main=True
    )
    layers: Sequence[int] | str | None = _training(
        setting="objective.layers", metavar="N,…"
    )
    top_layers: int | None = _training(setting="optim.top_layers")
    interpolate: float | None = _training(setting="optim.interpolate")
    dev_data: Given | None = optional(
        metavar="DATA", panel=INPUT, main=True, repeat=True, read=named_sources
    )
    accept_on: Source | None = optional(metavar="DATA", panel=INPUT, main=True)
    if_not_better: str | None = _training(setting="optim.if_not_better", metavar="NAME")
    columns: Mapping[str, str] | None = None
    labels: Mapping[str, Meaning] | str | None = optional(
        options["labels"], setting="data.labels"
    )
    label_range: tuple[float, float] | str | None = optional(
        options["label_range"], setting="data.label_range"
    )
    bad_rows: str | None = optional(options["bad_rows"], setting="data.bad_rows")
    conflicts: str | None = optional(
        setting="data.conflicts", metavar="NAME", panel=INPUT
    )
    epochs: float | None = _training(setting="optim.epochs", metavar="N", main=True)
    batch_size: int | None = _training(setting="optim.batch_size")
    lr: float | None = _training(setting="optim.lr")
    max_length: int | None = optional(setting="encoder.max_length", panel=MODEL)
    pooling: str | None = optional(
        setting="encoder.pooling", metavar="NAME", panel=MODEL
    )
    prompts: str | Mapping[str, str] | None = optional(
        setting="prompts", metavar="TEXT", panel=MODEL, repeat=True, read=column_prompts
    )
    lora: bool | None = optional(panel=MODEL)
    precision: str | None = optional(setting="run.precision", metavar="NAME", panel=RUN)
    guide: str | Path | None = _training(
        text="A model that filters likely false negatives in a batch (GISTEmbed): a folder, a Hub id,"
        " minilm, smollm2, or a file of vectors. `objective.guide_margin` is the threshold. Default: none.",
        setting="guide.model",
        metavar="MODEL",
    )
    teacher: str | Path | None = _training(
        text="A model to imitate, or a file of its vectors that `aoe encode` wrote. The loss parts"
        " `embed_distill`, `score_distill` and `margin_mse` use it. Default: none.",
        setting="teacher.model",
        metavar="MODEL",
    )
    teacher_scores: str | Path | None = _training(
        setting="teacher.scores", metavar="FILE"
    )
    seed: int | None = optional(options["seed"], setting="seed")
    revision: str | None = optional(metavar="COMMIT", panel=MODEL)
    trust_remote_code: bool = parameter(default=False, panel=MODEL)
    objective: LossFunction | Mapping[str, LossFunction] | None = optional(hidden=True)
    dev_metric: Callable[[Encoder], float] | None = optional(hidden=True)
    callbacks: Sequence[TrainerCallback] = parameter(default=(), hidden=True)
    config: str | Path | None = None
    settings: Mapping[str, Any] | Iterable[str] | None = None
    fresh: bool = False
    progress: bool | Listener = True


@dataclass(frozen=True, repr=False)
class Trained(CommandResult):
    """A finished run of `train`.

    Attributes:
        out: The model's folder.
        record: The contents of run.json: settings, hashes of the inputs, history, versions.
        is_main: Whether this process wrote the folder; under torchrun, only rank 0 does.
        steps: Optimiser steps.
        pairs: Number of training rows seen, including repeats.
        seconds: Duration of the training steps only.
        dev: The best dev score; None without dev data.
        dev_before: The dev score before training.
        dev_metric: The dev metric: `spearman`, `triplet_accuracy` or `mrr`; `mean` of several dev sets.
        dev_sets: For each of several dev sets: `metric`, score `before` training, and best score (`dev`).
        gain: The model's gain over its backbone on judged pairs; None without such pairs.
        kept: The saved weights: `model` or `backbone`; see `train(accept_on=…)`.
        history: Log entries in order of steps: `loss` and its parts, and `eval_dev` of each evaluation. With
            several datasets or dev sets, also each one's by name: `nli.loss`, `eval_dev.nli`.
    """

    out: Path
    record: Mapping[str, Any]
    is_main: bool
    steps: int
    pairs: int
    seconds: float
    dev: float | None
    dev_before: float | None
    dev_metric: str | None
    dev_sets: dict[str, dict[str, Any]]
    gain: Gain | None
    kept: str
    history: list[dict[str, Any]]
    _run: RunRecord

    @classmethod
    def of(cls, out: Path, record: Mapping[str, Any], is_main: bool) -> Trained:
        """The run of a record."""
        from aoe_train.training.train import RunRecord

        run = RunRecord.model_validate(record)
        result = run.result
        entries = [*run.history, *run.dev_history]
        return cls(
            out,
            record,
            is_main,
            steps=result.steps,
            pairs=result.pairs,
            seconds=result.seconds,
            dev=result.dev,
            dev_before=result.dev_before,
            dev_metric=result.dev_metric,
            dev_sets={name: dev.model_dump() for name, dev in result.dev_sets.items()},
            gain=result.gain,
            kept=result.kept,
            history=sorted(entries, key=itemgetter("step")),
            _run=run,
        )

    @cached_property
    def encoder(self) -> Encoder:
        """The trained model, loaded on first use."""
        from aoe_train.model.encoder import Encoder

        return Encoder.load(self.out)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of `aoe train --json`."""
        result = self.record["result"]
        always = ["out", "steps", "pairs", "seconds", "pairs_per_s", "peak_rss_mb"]
        always += ["dev", "dev_metric", "dev_before"]
        optional = [
            name for name in ("judged", "dev_gain", "dev_sets") if result.get(name)
        ]
        return {name: result[name] for name in always + optional}

    def tables(self) -> list[str]:
        """The model's folder."""
        return [str(self.out)]

    @spoken_notes
    def notes(self) -> Iterator[str]:
        """Rows, speed, and scores before and after training."""
        rate = self._run.result.pairs_per_s
        speed = f"{self.seconds:,.1f} s of training ({rate:,.1f} a second)"
        total = sum(dataset.rows for dataset in self._run.datasets.values())
        rows = f"{self.pairs:,}" + (f" of {total:,}" if self.pairs < total else "")
        yield f"{self.steps:,} steps over {rows} rows in {speed}"
        if self.dev is not None and self.dev_before is not None:
            yield from self._dev_notes(self.dev, self.dev_before)
        if self.gain is not None:
            yield f"judged pairs: {self.gain}"
            if self.kept == "backbone":
                yield _KEPT_BACKBONE
        elif self.dev is None:
            yield "not shown to be better than its backbone; give --accept-on PAIRS"

    def _dev_notes(self, dev: float, before: float) -> Iterator[str]:
        from aoe_train.evaluation.gain import TOO_FEW

        gain = self._run.result.dev_gain
        too_few = False
        measured_on = "" if self._run.has_own_metric else " on dev data"
        line = f"{self.dev_metric}{measured_on}: {dev:.4f}, before {before:.4f}"
        if gain is not None:
            low, high = gain["ci95"]
            too_few = gain["too_few"] and low <= 0 <= high
            line += f" ({gain['difference']:+.4f} [{low:.4f}, {high:.4f}], {gain['rows']:,} rows"
            line += f": {TOO_FEW})" if too_few else ")"
        yield line
        for name, each in self._run.result.dev_sets.items():
            now = "" if each.dev is None else f"{each.dev:.4f}, "
            yield f"  {name}: {each.metric} {now}before {each.before:.4f}"
        if dev <= before and not too_few:
            yield "no better than before training: try a lower --lr or another --preset"

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """Commands that evaluate the model, by judged pairs if it was trained on texts.

        Empty if the weights are the backbone's, the gain is known, or a file of
        rows without dev data was trained on.
        """
        run = self._run
        settings = run.origin["settings"]
        is_backbone = settings["optim"]["interpolate"] == 0
        if self.gain is not None or is_backbone:
            return []
        held_out = run.sources.dev_data
        name, data = next(iter(run.sources.data.items()))
        is_single = run.datasets[name].kind == "single"
        has_texts = settings["preset"] == "domain" or is_single
        model = str(self.out)
        backbone = run.sources.backbone
        if has_texts and not held_out:
            return review_steps(model, backbone, data, settings["purpose"])
        if not held_out and Path(data).is_file():
            return []  # there is no verdict on training rows
        rows = next(iter(held_out.values()), data)
        step = compare_command(model, backbone, rows)
        return [("evaluate it against the backbone", step)]

    def __repr__(self) -> str:
        parts = [f"{str(self.out)!r}", f"{self.steps:,} steps", f"{self.pairs:,} rows"]
        parts.append(f"{self.seconds:,.1f} s")
        if self.dev is not None:
            parts.append(
                f"{self.dev_metric} {self.dev:.4f} (before {self.dev_before:.4f})"
            )
        if self.gain is not None:
            parts.append(f"judged pairs: {self.gain}; kept: {self.kept}")
        return f"Trained({', '.join(parts)})"


@takes(TrainRequest)
def train(request: TrainRequest) -> Trained:
    """Train a text-embedding model on pairs, triplets or plain texts. Run it again to continue.

    The settings that you leave out depend on the rows and the backbone; --dry-run shows them, with an
    estimate of time and memory.

    Args:
        data: Training data: a folder, a file or a Hub id; repeatable, as NAME=DATA. Pairs, triplets or single
            texts; in Python also a DataFrame, a `Dataset`, a list of dicts or texts, or a `PairDataset`.
            Several datasets are a mapping such as `{"nli": "nli.tsv", "stsb": rows}`, or a list of paths or
            tables. A batch has rows of one dataset; the settings `datasets.NAME` and `mix` configure the
            mixture. Default: `datasets.NAME.data` in the settings.
        backbone: The model to start from: a folder, a Hub id, minilm or smollm2. minilm is all-MiniLM-L6-v2
            from the package index, smollm2 is SmolLM2-135M-Instruct.
        out: Folder for the trained model.
        dev_data: Held-out rows that choose the best weights; repeatable, as NAME=DATA. With several dev sets,
            the setting `mix.dev` names the deciding one; otherwise their mean decides. Default: the
            validation split.
        accept_on: Judged pairs on which the model must beat its backbone to be saved. They must not be in the
            training data; `label judge` makes such pairs. Unless the model is shown to be better, the
            backbone's weights are saved and the run reports it.
        prompts: Prompt before each text, or around {text}; for one column as anchor='query: ', repeatable. In
            Python one prompt or a mapping, such as `{"anchor": "query: ", "positive": "passage: "}`. The
            model stores them: one prompt for all texts becomes its default, those of columns are named
            `query`, `document` and so on. Default: the backbone's default prompt.
        lora: Train low-rank adapters (LoRA) instead of all weights. The settings `lora.*` configure them.
            Default: on for decoders.
        revision: Commit of the backbone on the Hub.
        trust_remote_code: Run the backbone's own Python code; requires --revision.
        objective: Your own loss instead of the preset's: `(vectors, labels) -> scalar`. It gets float32
            vectors (row, column, dim) of the whole batch, zeros for absent negatives, and labels (row,) or
            None. The weights of an `nn.Module` are trained, too. A `TextObjective` instead gets the model and
            the tokens. A mapping assigns objectives to datasets.
        dev_metric: A function of the encoder that replaces the dev data's metric; larger is better. It is
            called before training and at each evaluation.
        callbacks: transformers callbacks (`TrainerCallback`).
        fresh: Start from scratch and replace the output of another run.

    Returns:
        The run, with `.encoder`, `.dev`, `.history` and `.out`. `seconds` and `pairs_per_s` cover the
        training steps only, without loading, tokenising, evaluation and checkpoints.

    Raises:
        ConfigError: Settings, data and backbone don't fit together, memory ran out, another run uses the
            folder, or training diverged; then the message has the learning rate and the best weights' path.
        DataError: Unusable rows, or the first loss is not finite.
        RemoteError: The Hub could not be reached.

    Example:
        >>> import aoe_train
        >>> run = aoe_train.train("pairs.tsv", backbone="model", out="trained", lr=1e-3, progress=False)
        >>> run.encoder.encode(["A plane is taking off."]).shape == (1, run.encoder.dim)
        True

        Two datasets, the first seen twice as often:

        >>> run = aoe_train.train(
        ...     {"pairs": "pairs.tsv", "more": [{"anchor": "A plane.", "positive": "A jet."}] * 8},
        ...     backbone="model",
        ...     out="mixed",
        ...     settings={"datasets.pairs.weight": 2},
        ...     progress=False,
        ... )
        >>> {"pairs.loss", "more.loss"} <= run.history[-1].keys()
        True
    """
    sources, settings = _inputs(request)
    from aoe_train.training import train as _train
    from aoe_train.training.processes import is_main, leave_group

    record = _train.train(
        sources,
        settings,
        fresh=request.fresh,
        say=notes(request.progress),
        progress=request.progress,
        callbacks=request.callbacks,
    )
    run = Trained.of(sources.out, record, is_main())
    leave_group()
    return run


@takes(TrainRequest, same_texts=train)
def plan(request: TrainRequest) -> Plan:
    """Estimate the memory and time of `train` from a few steps; writes nothing."""
    sources, settings = _inputs(request)
    from aoe_train.training import train_plan as _plan

    return _plan.plan(sources, settings, progress=request.progress)


def _inputs(request: TrainRequest) -> tuple[Sources, TrainSettings]:
    """Inputs and settings; unusable names, folders and files are refused before torch is imported."""
    from aoe_train.data.run_data import checked_sources
    from aoe_train.model.backbones.load_backbone import check_name
    from aoe_train.model.run_folder import work_beside

    settings = _settings(request)
    sources = _sources(request, settings)
    check_name(sources.backbone)
    for teacher in (settings.guide.model, settings.teacher.model):
        if teacher is not None and not Path(teacher).is_file():  # not a file of vectors
            check_name(teacher)
    work_beside(sources.out)
    return checked_sources(sources, settings), settings


def _settings(request: TrainRequest) -> TrainSettings:
    from aoe_train.settings.run_settings import LoraSettings
    from aoe_train.settings.train_settings import TrainSettings
    from pairkit.base.settings import load_settings

    settings = load_settings(
        TrainSettings, request.flags(), config=request.config, settings=request.settings
    )
    if request.lora is None or (request.lora and settings.lora is not None):
        return settings
    return settings.model_copy(
        update={"lora": LoraSettings() if request.lora else None}
    )


def _sources(request: TrainRequest, settings: TrainSettings) -> Sources:
    """The inputs and output of a run, from the arguments or else the settings."""
    from aoe_train.data.run_data import Sources
    from pairkit.base.settings import argument

    sections = settings.datasets.items()
    data = _by_name({name: each.data for name, each in sections}, request.data)
    dev_data = _by_name(
        {name: each.dev_data for name, each in sections}, request.dev_data
    )
    if not data:
        raise ConfigError(
            "no training data; give --data, or datasets.NAME.data in the settings"
        )
    return Sources(
        dict(sorted(data.items())),
        str(argument("backbone", request.backbone, str | Path)),
        argument("out", request.out, Path),
        dev_data=dev_data,
        columns=request.columns,
        judged=request.accept_on,
        revision=request.revision,
        trust_remote_code=request.trust_remote_code,
        losses=_losses(request, data),
        dev_metric=request.dev_metric,
    )


def _by_name(
    of_settings: Mapping[str, Source | None], sources: Given | None
) -> dict[str, Source]:
    """Sources by name: those of the settings, unless an argument replaces them."""
    from pairkit.dataset.reading.named_sources import named_sources

    by_name = {
        name: source for name, source in of_settings.items() if source is not None
    }
    if sources is not None:
        by_name |= named_sources(sources)
    return named_sources(by_name) if by_name else {}


def _losses(request: TrainRequest, data: Collection[str]) -> Mapping[str, LossFunction]:
    """Your own losses, by dataset."""
    if request.objective is None:
        return {}
    if not isinstance(request.objective, Mapping):
        return dict.fromkeys(data, request.objective)
    if unknown := request.objective.keys() - data:
        raise ConfigError(
            f"objective: no dataset {min(unknown)!r}; expected {', '.join(sorted(data))}"
        )
    return request.objective
