"""The functions behind `aoe train`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aoe_train.api.parameters import MODEL, column_prompts, named_sources, notes, options
from pairkit.base.cli.options import INPUT, RUN, Option, same_arguments, setting_keys

if TYPE_CHECKING:
    from transformers import TrainerCallback

    from aoe_train.api.trained import Trained
    from aoe_train.data.run_data import Sources
    from aoe_train.model.encoder import Encoder
    from aoe_train.objectives.objective import LossFunction
    from aoe_train.settings.train_settings import TrainSettings
    from aoe_train.training.train_plan import Plan
    from pairkit.base.cli.progress import Listener
    from pairkit.dataset.labels import Meaning
    from pairkit.dataset.reading.in_memory import Source
    from pairkit.dataset.reading.named_sources import Given

_TRAINING = "Training"


@options(
    "aoe_train.settings.train_settings:TrainSettings",
    data=replace(options["data"], repeat=True, read=named_sources),
    backbone=Option(short="-b", metavar="MODEL", panel=MODEL, main=True),
    preset=Option(setting="preset", metavar="NAME", panel=_TRAINING, main=True),
    purpose=Option(setting="purpose", metavar="NAME", panel=_TRAINING, main=True),
    dims=Option(setting="objective.dims", metavar="N,…", panel=_TRAINING, main=True),
    layers=Option(setting="objective.layers", metavar="N,…", panel=_TRAINING),
    top_layers=Option(setting="optim.top_layers", panel=_TRAINING),
    interpolate=Option(setting="optim.interpolate", panel=_TRAINING),
    dev_data=Option(metavar="DATA", panel=INPUT, main=True, repeat=True, read=named_sources),
    accept_on=Option(metavar="DATA", panel=INPUT, main=True),
    if_not_better=Option(setting="optim.if_not_better", metavar="NAME", panel=_TRAINING),
    labels=replace(options["labels"], setting="data.labels"),
    label_range=replace(options["label_range"], setting="data.label_range"),
    bad_rows=replace(options["bad_rows"], setting="data.bad_rows"),
    conflicts=Option(setting="data.conflicts", metavar="NAME", panel=INPUT),
    epochs=Option(setting="optim.epochs", metavar="N", panel=_TRAINING, main=True),
    batch_size=Option(setting="optim.batch_size", panel=_TRAINING),
    lr=Option(setting="optim.lr", panel=_TRAINING),
    max_length=Option(setting="encoder.max_length", panel=MODEL),
    pooling=Option(setting="encoder.pooling", metavar="NAME", panel=MODEL),
    prompts=Option(
        setting="prompts", metavar="TEXT", panel=MODEL, repeat=True, read=column_prompts
    ),
    lora=Option(panel=MODEL),
    precision=Option(setting="run.precision", metavar="NAME", panel=RUN),
    guide=Option(
        "A model that filters likely false negatives in a batch (GISTEmbed): a folder, a Hub id, minilm,"
        " smollm2, or a file of vectors. `objective.guide_margin` is the threshold. Default: none.",
        setting="guide.model",
        metavar="MODEL",
        panel=_TRAINING,
    ),
    teacher=Option(
        "A model to imitate, or a file of its vectors that `aoe encode` wrote. The loss parts"
        " `embed_distill`, `score_distill` and `margin_mse` use it. Default: none.",
        setting="teacher.model",
        metavar="MODEL",
        panel=_TRAINING,
    ),
    teacher_scores=Option(setting="teacher.scores", metavar="FILE", panel=_TRAINING),
    seed=replace(options["seed"], setting="seed"),
    revision=Option(metavar="COMMIT", panel=MODEL),
    trust_remote_code=Option(panel=MODEL),
    objective=Option(hidden=True),
    dev_metric=Option(hidden=True),
    callbacks=Option(hidden=True),
)
def train(
    data: Given | None = None,
    *,
    backbone: str | Path = "minilm",
    out: str | Path = "model",
    preset: str | None = None,
    purpose: str | None = None,
    dims: Sequence[int] | str | None = None,
    layers: Sequence[int] | str | None = None,
    top_layers: int | None = None,
    interpolate: float | None = None,
    dev_data: Given | None = None,
    accept_on: Source | None = None,
    if_not_better: str | None = None,
    columns: Mapping[str, str] | None = None,
    labels: Mapping[str, Meaning] | str | None = None,
    label_range: tuple[float, float] | str | None = None,
    bad_rows: str | None = None,
    conflicts: str | None = None,
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
    objective: LossFunction | Mapping[str, LossFunction] | None = None,
    dev_metric: Callable[[Encoder], float] | None = None,
    callbacks: Sequence[TrainerCallback] = (),
    config: str | Path | None = None,
    settings: Mapping[str, Any] | Iterable[str] | None = None,
    fresh: bool = False,
    progress: bool | Listener = True,
) -> Trained:
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
    from aoe_train.api.trained import Trained

    given: dict[str, Any] = {"preset": preset, "purpose": purpose, "prompts": prompts, "seed": seed}
    given |= {"precision": precision, "dims": dims, "layers": layers, "top_layers": top_layers}
    given |= {"interpolate": interpolate, "lora": lora, "config": config, "settings": settings}
    given |= {"if_not_better": if_not_better, "epochs": epochs, "batch_size": batch_size, "lr": lr}
    given |= {
        "labels": labels,
        "label_range": label_range,
        "bad_rows": bad_rows,
        "conflicts": conflicts,
    }
    given |= {"max_length": max_length, "pooling": pooling, "guide": guide, "teacher": teacher}
    given |= {
        "data": data,
        "dev_data": dev_data,
        "accept_on": accept_on,
        "columns": columns,
        "out": out,
    }
    given |= {"backbone": backbone, "revision": revision, "trust_remote_code": trust_remote_code}
    given |= {"objective": objective, "dev_metric": dev_metric, "teacher_scores": teacher_scores}
    sources, resolved = _inputs(given)
    from aoe_train.training import train as _train
    from aoe_train.training.processes import is_main, leave_group

    record = _train.train(
        sources, resolved, fresh=fresh, say=notes(progress), progress=progress, callbacks=callbacks
    )
    run = Trained(sources.out, record, is_main())
    leave_group()
    return run


@same_arguments(train)
def plan(given: dict[str, Any]) -> Plan:
    """Estimate the memory and time of `train` from a few steps; writes nothing."""
    sources, resolved = _inputs(given)
    from aoe_train.training import train_plan as _plan

    return _plan.plan(sources, resolved, progress=given["progress"])


def _inputs(given: Mapping[str, Any]) -> tuple[Sources, TrainSettings]:
    """Inputs and settings; unusable names, folders and files are refused before torch is imported."""
    from aoe_train.data.run_data import check_files
    from aoe_train.model.backbones.load_backbone import check_name
    from aoe_train.model.model_folder import work_beside

    settings = _settings(given)
    sources = _sources(given, settings)
    check_name(sources.backbone)
    for teacher in (settings.guide.model, settings.teacher.model):
        if teacher is not None and not Path(teacher).is_file():  # not a file of vectors
            check_name(teacher)
    work_beside(sources.out)
    return check_files(sources, settings), settings


def _settings(given: Mapping[str, Any]) -> TrainSettings:
    from aoe_train.settings.train_settings import LoraSettings, TrainSettings
    from pairkit.base.settings import merge

    keys = setting_keys(train)
    settings = merge(TrainSettings, keys, given, config=given["config"], settings=given["settings"])
    lora = given["lora"]
    if lora is None or (lora and settings.lora is not None):
        return settings
    return settings.model_copy(update={"lora": LoraSettings() if lora else None})


def _sources(given: Mapping[str, Any], settings: TrainSettings) -> Sources:
    """The inputs and output of a run, from the arguments or else the settings."""
    from aoe_train.data.run_data import Sources
    from pairkit.base.errors import ConfigError
    from pairkit.base.settings import argument
    from pairkit.dataset.reading.named_sources import named_sources

    def by_name(key: str) -> dict[str, Source]:
        sections = settings.datasets.items()
        from_settings = {
            name: source for name, own in sections if (source := getattr(own, key)) is not None
        }
        sources = {**from_settings, **({} if given[key] is None else named_sources(given[key]))}
        return named_sources(sources) if sources else {}

    data = by_name("data")
    losses = given["objective"]
    if not data:
        raise ConfigError("no training data; give --data, or datasets.NAME.data in the settings")
    if not isinstance(losses, Mapping):
        losses = {} if losses is None else dict.fromkeys(data, losses)
    if unknown := losses.keys() - data.keys():
        raise ConfigError(
            f"objective: no dataset {min(unknown)!r}; expected {', '.join(sorted(data))}"
        )
    return Sources(
        dict(sorted(data.items())),
        str(argument("backbone", given["backbone"], str | Path)),
        argument("out", given["out"], Path),
        dev_data=by_name("dev_data") or None,
        columns=given["columns"],
        judged=given["accept_on"],
        revision=given["revision"],
        trust_remote_code=given["trust_remote_code"],
        losses=losses,
        dev_metric=given["dev_metric"],
    )
