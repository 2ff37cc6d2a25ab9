"""Training from Python, as `aoe train` does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

if TYPE_CHECKING:
    from aoe_train.data.run_data import Sources
    from aoe_train.evaluation.gain import Gain
    from aoe_train.model.encoder import Encoder
    from aoe_train.objectives.own import OwnObjective
    from aoe_train.settings.training import TrainSettings
    from pairkit.app.progress import Listener
    from pairkit.app.result_table import ResultTable
    from pairkit.dataset.in_memory import Source
    from pairkit.dataset.labels import Meaning
    from pairkit.dataset.named_sources import Given


class TrainOptions(TypedDict, total=False):
    """Keyword arguments that `train` and `plan` share; each is named after its flag."""

    preset: str | None
    dims: Sequence[int] | str | None
    layers: Sequence[int] | str | None
    top_layers: int | None
    soup: float | None
    dev_data: Given | None
    judged: Source | None
    keep: str | None
    columns: Mapping[str, str] | None
    labels: Mapping[str, Meaning] | str | None
    label_range: tuple[float, float] | str | None
    conflicts: str | None
    streaming: str | None
    epochs: float | None
    batch_size: int | None
    lr: float | None
    max_length: int | None
    pooling: str | None
    prompts: str | Mapping[str, str] | None
    lora: bool | None
    precision: str | None
    guide: str | Path | None
    teacher: str | Path | None
    teacher_scores: str | Path | None
    seed: int | None
    revision: str | None
    trust_remote_code: bool
    objective: OwnObjective | Mapping[str, OwnObjective] | None
    config: str | Path | None
    settings: Mapping[str, Any] | Sequence[str] | None


@dataclass(frozen=True, repr=False)
class Trained:
    """A finished run of `train`.

    Attributes:
        out: The model's folder.
        record: What run.json holds: settings, hashes of what went in, history, versions.
        is_main: Whether this process is the one that wrote the folder; under torchrun the others did not.
    """

    out: Path
    record: Mapping[str, Any]
    is_main: bool = True

    @property
    def steps(self) -> int:
        """Optimiser steps."""
        return int(self.record["result"]["steps"])

    @property
    def pairs(self) -> int:
        """Rows that were trained on, repeats counted."""
        return int(self.record["result"]["pairs"])

    @property
    def seconds(self) -> float:
        """Time of the training steps alone."""
        return float(self.record["result"]["seconds"])

    @property
    def dev(self) -> float | None:
        """The best figure on held-out rows; None where there were none."""
        found: float | None = self.record["result"]["dev"]
        return found

    @property
    def dev_before(self) -> float | None:
        """The same figure before training."""
        found: float | None = self.record["result"]["dev_before"]
        return found

    @property
    def dev_metric(self) -> str | None:
        """What that figure is: `spearman`, `triplet_accuracy` or `mrr`; of several dev sets, their `mean`."""
        found: str | None = self.record["result"]["dev_metric"]
        return found

    @property
    def dev_sets(self) -> dict[str, dict[str, Any]]:
        """Each of several dev sets: its `metric`, and the figure `before` training and now (`dev`)."""
        return dict(self.record["result"].get("dev_sets", {}))

    @property
    def gain(self) -> Gain | None:
        """How far the trained weights are ahead of the backbone's on judged pairs; None without such."""
        from aoe_train.evaluation.gain import Gain

        told = self.record["result"].get("judged")
        return None if told is None else Gain.of(told)

    @property
    def kept(self) -> str:
        """Whose weights were saved: those of the `model`, or of the `backbone`, see `train(judged=…)`."""
        return str(self.record["result"].get("judged", {}).get("kept", "model"))

    @property
    def history(self) -> list[dict[str, Any]]:
        """Log entries by step: `loss` and its parts, and `eval_dev` of each evaluation.

        With several datasets and dev sets also those of each by name: `nli.loss`, `eval_dev.nli`.
        """
        entries = [*self.record["history"], *self.record["dev_history"]]
        return sorted(entries, key=lambda entry: entry["step"])

    @cached_property
    def encoder(self) -> Encoder:
        """The trained model, loaded when it is first asked for."""
        from aoe_train.model.encoder import Encoder

        return Encoder.load(self.out)

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe train --json`."""
        names = ("out", "steps", "pairs", "seconds", "pairs_per_s", "peak_rss_mb")
        found = {name: self.record["result"][name] for name in (*names, "dev", "dev_metric", "dev_before")}
        judged = self.record["result"].get("judged")
        found |= {} if judged is None else {"judged": judged}
        return found | ({"dev_sets": self.dev_sets} if self.dev_sets else {})

    def __repr__(self) -> str:
        told = [
            f"{str(self.out)!r}",
            f"{self.steps:,} steps",
            f"{self.pairs:,} rows",
            f"{self.seconds:,.1f} s",
        ]
        if self.dev is not None:
            told.append(f"{self.dev_metric} {self.dev:.4f} (before {self.dev_before:.4f})")
        if self.gain is not None:
            told.append(f"judged pairs: {self.gain}; kept: {self.kept}")
        return f"Trained({', '.join(told)})"


@dataclass(frozen=True, repr=False)
class Plan:
    """What a run of `train` would take: counts, batches, memory and time.

    Attributes:
        record: What the JSON of `aoe train --dry-run --json` holds.
    """

    record: Mapping[str, Any]

    @property
    def seconds(self) -> float:
        """How long the training steps would take, by a short probe."""
        return float(self.record["seconds"])

    @property
    def memory_mb(self) -> float:
        """MiB of weights, gradients, optimiser and activations."""
        return float(sum(self.record["memory_mb"].values()))

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON of `aoe train --dry-run --json`."""
        return dict(self.record)

    def table(self) -> ResultTable:
        """The same for people."""
        from aoe_train.training.plan import plan_table

        return plan_table(self.record)

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def train(
    data: Given | None = None,
    *,
    backbone: str | Path = "minilm",
    out: str | Path,
    preset: str | None = None,
    dims: Sequence[int] | str | None = None,
    layers: Sequence[int] | str | None = None,
    top_layers: int | None = None,
    soup: float | None = None,
    dev_data: Given | None = None,
    judged: Source | None = None,
    keep: str | None = None,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    conflicts: str | None = None,
    streaming: str | None = None,
    epochs: float | None = None,
    batch_size: int | None = None,
    lr: float | None = None,
    max_length: int | None = None,
    pooling: str | None = None,
    prompts: str | Mapping[str, str] | None = None,
    lora: bool | None = None,
    precision: str | None = None,
    guide: str | Path | None = None,
    teacher: str | Path | None = None,
    teacher_scores: str | Path | None = None,
    seed: int | None = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
    objective: OwnObjective | Mapping[str, OwnObjective] | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | Sequence[str] | None = None,
    fresh: bool = False,
    progress: bool | Listener = True,
) -> Trained:
    """Train a text-embedding model on pairs; the same call continues a run that was stopped.

    Args:
        data: Pairs, triplets or single texts: the folder of a dataset, a file, a Hub id, a DataFrame, a
            `Dataset`, a list of dicts, a list of texts or a `PairDataset`. Several datasets are a mapping
            from names to these, such as `{"nli": "nli.tsv", "stsb": rows}`, or a list of paths or tables:
            each batch has rows of one, and the settings `datasets.NAME` and `mix` say the rest. None takes
            the settings' `datasets.NAME.data`.
        backbone: A model's folder, a Hub id, `minilm` (all-MiniLM-L6-v2 from the package index), `smollm2`
            (SmolLM2-135M-Instruct).
        out: The model's folder.
        preset: The objective: angle, aoe, cosent, sbert or simcse, by default by the kind of the rows; with
            `-paper` behind the name, all that the papers say of training with it. domain: for triplets that
            `label` wrote of a domain without labels.
        dims: Sizes that vectors may be cut to, such as `[384, 128, 32]`, the whole one among them: the
            objective is learnt at each of them (Matryoshka).
        layers: Numbers of earlier layers that learn the objective too, such as `[2, 4]`, or `all`: the model
            may then be cut to so many (2D Matryoshka).
        top_layers: Train the last so many layers, and leave the others and the embeddings as they are; by
            default all of them learn.
        soup: Share of the trained weights, above 0 and at most 1, in those that are kept; the rest is the
            backbone's, so that the model keeps more of what it knew (WiSE-FT). 1 by default.
        dev_data: Held-out rows to choose the best weights by, or several dev sets, given as `data`; by
            default the validation splits. The setting `mix.dev` says which dev set chooses; by default the
            mean.
        judged: Pairs with labels of judges or of people, none of them to train on. The model is kept if it
            is shown to be better on them than its backbone, else the backbone's weights are saved and the run
            says so.
        keep: What `judged` decides: `better` (the default), as said, or `always`: the model is kept, and the
            gain is told.
        columns: Roles to names of columns, such as `{"text1": "title", "text2": "body", "label": "same"}`.
        labels: What labels count as where that is not certain: a number, or "skip" to leave their rows out,
            such as `{"entailment": 1, "contradiction": 0, "neutral": "skip"}` or "0=1,1=skip,2=0".
        label_range: The lowest and the highest score, such as `(0, 100)`, where scores are neither from 0 to
            1 nor from 0 to 5; they become 0 to 1.
        conflicts: What to do with rows that say different things of one pair of texts, which are counted and
            told in any case: keep them (the default), drop them, keep those that agree with the first, or
            error.
        streaming: Whether texts and rows stay on disk, with the same result: on, off, or auto (the default):
            from 256 MiB of files on.
        epochs: Times that each row is seen; by default by their number.
        batch_size: Rows a process; by default 16.
        lr: Highest learning rate; by default by rows and backbone.
        max_length: Tokens of a text; by default the backbone's, at most 512.
        pooling: cls, avg, max, last, cls-avg, first-last-avg or weighted-mean.
        prompts: Words before each text, or around `{text}`: one prompt for all, or columns to prompts, such
            as `{"anchor": "query: ", "positive": "passage: "}`. The model then knows them by name: the one
            for all is its default, those of columns are `query`, `document` and so on.
        lora: Train low-rank adapters only; see the settings `lora.*`. False trains all weights. By default
            adapters are trained where the backbone is a decoder and no encoder yet.
        precision: fp32, bf16, fp16 or auto.
        guide: A model that tells which in-batch negatives may be none, which are left out (GISTEmbed); see
            the settings `guide.*` and `objective.guide_margin`.
        teacher: A model to come near to (distillation): a folder, a Hub id, `minilm`, `smollm2`, or a file of
            texts and vectors as `aoe encode` writes it. What is learnt of it are the parts `embed_distill`,
            `score_distill` and `margin_mse`.
        teacher_scores: A file of the rows with a column `teacher_scores`, or of pairs with scores, from a
            cross-encoder for instance, that `score_distill` and `margin_mse` learn.
        seed: Decides every random choice.
        revision: A commit of the backbone on the Hub.
        trust_remote_code: Run the backbone's own code; needs a pinned `revision`.
        objective: A loss of your own in place of the preset's: `(vectors, labels) -> scalar`, with float32
            vectors (row, column, dim) of the whole batch and labels (row,), or None for rows without. A
            negative that a row lacks is a vector of zeros. A module learns too. Or a `TextObjective`, which
            is given the model and the tokens. Or one for some of several datasets, by name.
        config: A TOML file with settings that differ from the defaults.
        settings: Dotted keys to values, such as `{"objective.tau.angle": 0.05}`; over the file, under what
            is given by name.
        fresh: Begin anew, and replace what another run left.
        progress: Shown on stderr, or not, or told to a function.

    Returns:
        The run: `.encoder`, `.dev`, `.history`, `.out`.

    Raises:
        ConfigError: Settings, data and backbone don't go together, memory is short, another run is in the
            way, or training diverged: the line names the learning rate, and where the best weights are.
        DataError: Rows that can't be used, or a first loss that is not finite.
        RemoteError: The Hub could not be asked.

    Example:
        >>> import aoe_train
        >>> run = aoe_train.train("pairs.tsv", backbone="model", out="trained", lr=1e-3, progress=False)
        >>> run.encoder.encode(["A plane is taking off."]).shape == (1, run.encoder.dim)
        True

        Two datasets, of which one is seen twice as often:

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
    options = TrainOptions(
        preset=preset,
        dims=dims,
        layers=layers,
        top_layers=top_layers,
        soup=soup,
        dev_data=dev_data,
        judged=judged,
        keep=keep,
        columns=columns,
        labels=labels,
        label_range=label_range,
        conflicts=conflicts,
        streaming=streaming,
        epochs=epochs,
        batch_size=batch_size,
        lr=lr,
        max_length=max_length,
        pooling=pooling,
        prompts=prompts,
        lora=lora,
        precision=precision,
        guide=guide,
        teacher=teacher,
        teacher_scores=teacher_scores,
        seed=seed,
        revision=revision,
        trust_remote_code=trust_remote_code,
        config=config,
        settings=settings,
    )
    merged = settings_of(options)
    sources = sources_of(data, backbone, out, options, merged)
    from aoe_train.api.notes import notes
    from aoe_train.training import train as _train
    from aoe_train.training.trainer.gather import is_main, leave_group

    record = _train.train(
        sources,
        merged,
        own=_own(objective, sources),
        fresh=fresh,
        say=notes(progress),
        progress=progress,
    )
    run = Trained(sources.out, record, is_main())
    leave_group()
    return run


def plan(
    data: Given | None = None,
    *,
    backbone: str | Path = "minilm",
    out: str | Path = "model",
    progress: bool | Listener = True,
    **options: Unpack[TrainOptions],
) -> Plan:
    """Say what `train` would take, by a few steps on a model that is thrown away; nothing is written.

    Args:
        data: See `train`.
        backbone: See `train`.
        out: Nothing is written there; it is taken so that the arguments of `train` will do.
        progress: See `train`.
        **options: See `train`.

    Raises:
        ConfigError, DataError, RemoteError: See `train`.
    """
    if unknown := options.keys() - TrainOptions.__annotations__.keys() - {"fresh"}:
        raise TypeError(f"plan() got an unexpected keyword argument {min(unknown)!r}")
    settings = settings_of(options)
    sources = sources_of(data, backbone, out, options, settings)
    from aoe_train.training import plan as _plan

    own = _own(options.get("objective"), sources)
    return Plan(_plan.plan(sources, settings, own=own, progress=progress))


def sources_of(
    data: Given | None,
    backbone: str | Path,
    out: str | Path,
    options: TrainOptions,
    settings: TrainSettings,
) -> Sources:
    """What a run is made from, and where its model goes: what was given, over what the settings name."""
    from aoe_train.data.run_data import Sources
    from pairkit.app.errors import ConfigError
    from pairkit.app.settings import argument
    from pairkit.dataset.named_sources import named_sources

    def named(given: Given | None, key: str) -> dict[str, Source]:
        sections = settings.datasets.items()
        below = {name: source for name, own in sections if (source := getattr(own, key)) is not None}
        return {**below, **({} if given is None else named_sources(given))}

    found = named(data, "data")
    if not found:
        raise ConfigError("there is no data to train on; give --data, or datasets.NAME.data in a file")
    return Sources(
        found,
        str(argument("backbone", backbone, str | Path)),
        argument("out", out, Path),
        dev_data=named(options.get("dev_data"), "dev_data") or None,
        columns=options.get("columns"),
        judged=options.get("judged"),
        revision=options.get("revision"),
        trust_remote_code=options.get("trust_remote_code", False),
    )


def _own(objective: Any, sources: Sources) -> dict[str, OwnObjective]:
    """The loss of one's own of each dataset that has one."""
    from pairkit.app.errors import ConfigError

    if objective is None:
        return {}
    if not isinstance(objective, Mapping):
        return dict.fromkeys(sources.data, objective)
    if unknown := objective.keys() - sources.data.keys():
        raise ConfigError(f"objective: no dataset {min(unknown)!r}; there are {', '.join(sources.data)}")
    return dict(objective)


def settings_of(options: TrainOptions) -> TrainSettings:
    """The settings that the options make."""
    from aoe_train.settings.flags import TRAIN
    from aoe_train.settings.training import LoraSettings, TrainSettings
    from pairkit.app.settings import merge

    settings = merge(
        TrainSettings, TRAIN, options, config=options.get("config"), settings=options.get("settings")
    )
    wanted = options.get("lora")
    if wanted is None or (wanted and settings.lora is not None):
        return settings
    return settings.model_copy(update={"lora": LoraSettings.model_validate({}) if wanted else None})
