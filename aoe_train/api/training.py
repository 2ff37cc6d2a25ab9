"""The functions behind `aoe train`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from aoe_train.api.parameters import MODEL, Data, column_prompts, named_sources, notes
from pairkit.app.flag import INPUT, PYTHON_ONLY, RUN, Flag, same_arguments, setting_keys
from pairkit.dataset.flags import BAD_ROWS, Columns, Config, Fresh, Out, Seed, SettingsGiven

if TYPE_CHECKING:
    from transformers import TrainerCallback

    from aoe_train.api.trained import Plan, Trained
    from aoe_train.data.run_data import Sources
    from aoe_train.model.encoder import Encoder
    from aoe_train.objectives.objective import LossFunction
    from aoe_train.settings.training import TrainSettings
    from pairkit.app.progress import Listener
    from pairkit.dataset.in_memory import Source
    from pairkit.dataset.labels import Meaning
    from pairkit.dataset.named_sources import Given

TRAINING = "Training"


def train(
    data: Annotated[Given | None, replace(Data, repeat=True, read=named_sources)] = None,
    *,
    backbone: Annotated[str | Path, Flag("-b", metavar="MODEL", panel=MODEL, main=True)] = "minilm",
    out: Annotated[str | Path, Out] = "model",
    preset: Annotated[str | None, Flag(metavar="NAME", panel=TRAINING, setting="preset", main=True)] = None,
    purpose: Annotated[str | None, Flag(metavar="NAME", panel=TRAINING, setting="purpose", main=True)] = None,
    dims: Annotated[
        Sequence[int] | str | None, Flag(metavar="N,…", panel=TRAINING, setting="objective.dims", main=True)
    ] = None,
    layers: Annotated[
        Sequence[int] | str | None, Flag(metavar="N,…", panel=TRAINING, setting="objective.layers")
    ] = None,
    top_layers: Annotated[int | None, Flag(metavar="N", panel=TRAINING, setting="optim.top_layers")] = None,
    weight_mix: Annotated[float | None, Flag(metavar="X", panel=TRAINING, setting="optim.weight_mix")] = None,
    dev_data: Annotated[
        Given | None, Flag(metavar="DATA", panel=INPUT, main=True, repeat=True, read=named_sources)
    ] = None,
    accept_on: Annotated[Source | None, Flag(metavar="DATA", panel=INPUT, main=True)] = None,
    if_not_better: Annotated[
        str | None, Flag(metavar="NAME", panel=TRAINING, setting="optim.if_not_better")
    ] = None,
    columns: Columns = None,
    labels: Annotated[
        Mapping[str, Meaning] | str | None, Flag(metavar="LABEL=N,…", panel=INPUT, setting="data.labels")
    ] = None,
    label_range: Annotated[
        tuple[float, float] | str | None, Flag(metavar="LOW,HIGH", panel=INPUT, setting="data.label_range")
    ] = None,
    bad_rows: Annotated[str | None, replace(BAD_ROWS, setting="data.bad_rows")] = None,
    conflicts: Annotated[str | None, Flag(metavar="NAME", panel=INPUT, setting="data.conflicts")] = None,
    epochs: Annotated[
        float | None, Flag(metavar="N", panel=TRAINING, setting="optim.epochs", main=True)
    ] = None,
    batch_size: Annotated[int | None, Flag(metavar="N", panel=TRAINING, setting="optim.batch_size")] = None,
    lr: Annotated[float | None, Flag(metavar="X", panel=TRAINING, setting="optim.lr")] = None,
    max_length: Annotated[int | None, Flag(metavar="N", panel=MODEL, setting="encoder.max_length")] = None,
    pooling: Annotated[str | None, Flag(metavar="NAME", panel=MODEL, setting="encoder.pooling")] = None,
    prompts: Annotated[
        str | Mapping[str, str] | None,
        Flag(metavar="TEXT", panel=MODEL, setting="prompts", repeat=True, read=column_prompts),
    ] = None,
    lora: Annotated[bool | None, Flag(panel=MODEL)] = None,
    precision: Annotated[str | None, Flag(metavar="NAME", panel=RUN, setting="run.precision")] = None,
    guide: Annotated[str | Path | None, Flag(metavar="MODEL", panel=TRAINING, setting="guide.model")] = None,
    teacher: Annotated[
        str | Path | None, Flag(metavar="MODEL", panel=TRAINING, setting="teacher.model")
    ] = None,
    teacher_scores: Annotated[
        str | Path | None, Flag(metavar="FILE", panel=TRAINING, setting="teacher.scores")
    ] = None,
    seed: Annotated[int | None, replace(Seed, setting="seed")] = None,
    revision: Annotated[str | None, Flag(metavar="COMMIT", panel=MODEL)] = None,
    trust_remote_code: Annotated[bool, Flag(panel=MODEL)] = False,
    objective: Annotated[LossFunction | Mapping[str, LossFunction] | None, PYTHON_ONLY] = None,
    dev_metric: Annotated[Callable[[Encoder], float] | None, PYTHON_ONLY] = None,
    callbacks: Annotated[Sequence[TrainerCallback], PYTHON_ONLY] = (),
    config: Config = None,
    settings: SettingsGiven = None,
    fresh: Fresh = False,
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
        preset: Training objective: angle, aoe, cosent, sbert, simcse or domain. With the suffix -paper, such
            as angle-paper, also the paper's other settings. domain adapts a model to texts of one domain:
            plain texts, or triplets of `label`. Default: by kind of rows.
        purpose: What the preset domain trains the model for, on plain texts: group (topics, intents, routing,
            FAQ), search, or match (duplicates, near-paraphrases). Default: search.
        dims: Train for truncation to these vector sizes, such as 384,128,32 (Matryoshka). They must include
            the full size. Default: full size only.
        layers: Also train earlier layers as outputs, such as 2,4, or all. The model can then be cut to these
            depths (2D Matryoshka, Espresso). Default: last layer only.
        top_layers: Train the last N layers only and freeze the rest. Default: all layers.
        weight_mix: Weight of the trained model when averaged with its backbone, 0 to 1 (WiSE-FT). Smaller
            values keep more of the backbone's abilities; 0 keeps the backbone. Default: 1, or by rows for
            domain.
        dev_data: Held-out rows that choose the best weights; repeatable, as NAME=DATA. With several dev sets,
            the setting `mix.dev` names the deciding one; otherwise their mean decides. Default: the
            validation split.
        accept_on: Judged pairs on which the model must beat its backbone to be saved. They must not be in the
            training data; `label judge` makes such pairs. Unless the model is shown to be better, the
            backbone's weights are saved and the run reports it.
        if_not_better: Weights to save if --accept-on shows no improvement: backbone or model. Default:
            backbone.
        columns: Roles of the columns, such as text1=title,label=same or anchor=q,negative=n. Without a header
            line, columns are 1,2,3. In Python a mapping, such as `{"text1": "title", "text2": "body",
            "label": "same"}`. Default: recognised by name.
        labels: Values of the labels, such as 0=1,1=skip,2=0. "skip" leaves rows out. In Python also a
            mapping, such as `{"entailment": 1, "contradiction": 0, "neutral": "skip"}`. Labels that are not
            named keep their usual meaning. Default: recognised by value.
        label_range: Lowest and highest score, such as 0,100, which become 0 and 1. Default: 0 to 1 or 0 to 5,
            as recognised.
        bad_rows: Rows without a text or label: error or skip. Skipped rows are counted on stderr and listed
            with their reasons in OUT.bad-rows.jsonl. Default: error.
        conflicts: Pairs with different labels: keep, drop, first or error. first keeps the rows that agree
            with the first one. Conflicts are always counted and reported. Default: keep.
        epochs: Number of passes over the training rows. Default: by number of rows.
        batch_size: Rows in a batch of each process. Default: 16.
        lr: Peak learning rate. Default: by rows and backbone.
        max_length: Maximum number of tokens of a text. Default: the backbone's limit, at most 512.
        pooling: cls, avg, max, last, cls-avg, first-last-avg or weighted-mean. Default: the backbone's.
        prompts: Prompt before each text, or around {text}; for one column as anchor='query: ', repeatable. In
            Python one prompt or a mapping, such as `{"anchor": "query: ", "positive": "passage: "}`. The
            model stores them: one prompt for all texts becomes its default, those of columns are named
            `query`, `document` and so on. Default: the backbone's default prompt.
        lora: Train low-rank adapters (LoRA) instead of all weights. See the settings `lora.*`. Default: on
            for decoders.
        precision: Precision of training: fp32, bf16, fp16 or auto. Default: auto, which is bf16 on a GPU that
            supports it and fp32 elsewhere.
        guide: A model that filters likely false negatives (GISTEmbed). See the settings `guide.*` and
            `objective.guide_margin`. Default: none.
        teacher: A model yours should imitate, or a file of its vectors. A folder, a Hub id, minilm, smollm2,
            or a file that `aoe encode` wrote. The loss parts that use it are `embed_distill`, `score_distill`
            and `margin_mse`. Default: none.
        teacher_scores: A file with a teacher's scores of the training rows, for instance a cross-encoder's.
            Either the rows with a column `teacher_scores`, or pairs with a score. `score_distill` and
            `margin_mse` learn them. Default: none.
        seed: Random seed. Default: 42.
        revision: Commit of the backbone on the Hub.
        trust_remote_code: Run the backbone's own Python code; requires --revision.
        objective: Your own loss instead of the preset's: `(vectors, labels) -> scalar`. It gets float32
            vectors (row, column, dim) of the whole batch, zeros for absent negatives, and labels (row,) or
            None. The weights of an `nn.Module` are trained, too. A `TextObjective` instead gets the model and
            the tokens. A mapping assigns objectives to datasets.
        dev_metric: A function of the encoder that replaces the dev data's metric; larger is better. It is
            called before training and at each evaluation.
        callbacks: transformers callbacks (`TrainerCallback`).
        config: A TOML file of settings. Default: built-in settings.
        settings: One setting, such as objective.tau.angle=0.05; repeatable. In Python also a mapping of
            dotted keys to values. Settings override `config`; the arguments above override both.
        fresh: Start from scratch and replace the output of another run.
        progress: Whether to show progress on stderr, or a function that receives it.

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
    given = locals()
    from aoe_train.api.trained import Trained

    resolved = settings_of(train, given)
    sources = sources_of(given, resolved, objective=objective, dev_metric=dev_metric)
    _check_inputs(sources, resolved)
    from aoe_train.training import train as _train
    from aoe_train.training.processes import is_main, leave_group

    record = _train.train(
        sources,
        resolved,
        fresh=fresh,
        say=notes(progress),
        progress=progress,
        callbacks=callbacks,
    )
    run = Trained(sources.out, record, is_main())
    leave_group()
    return run


@same_arguments(train)
def plan(given: dict[str, Any]) -> Plan:
    """Estimate the memory and time of `train`, whose arguments it takes, from a few steps; writes nothing.

    Raises:
        ConfigError: See `train`.
        DataError: See `train`.
        RemoteError: See `train`.
    """
    from aoe_train.api.trained import Plan

    settings = settings_of(train, given)
    sources = sources_of(given, settings, objective=given["objective"], dev_metric=given["dev_metric"])
    _check_inputs(sources, settings)
    from aoe_train.training import plan as _plan

    return Plan(_plan.plan(sources, settings, progress=given["progress"]))


def sources_of(
    given: Mapping[str, Any],
    settings: TrainSettings,
    *,
    objective: LossFunction | Mapping[str, LossFunction] | None,
    dev_metric: Callable[[Encoder], float] | None,
) -> Sources:
    """The inputs and output of a run, from the arguments or else the settings."""
    from aoe_train.data.run_data import Sources
    from pairkit.app.errors import ConfigError
    from pairkit.app.settings import argument
    from pairkit.dataset.named_sources import named_sources

    def by_name(key: str) -> dict[str, Source]:
        sections = settings.datasets.items()
        from_settings = {name: source for name, own in sections if (source := getattr(own, key)) is not None}
        return {**from_settings, **({} if given[key] is None else named_sources(given[key]))}

    data = by_name("data")
    if not data:
        raise ConfigError("no training data; give --data, or datasets.NAME.data in the settings")
    return Sources(
        data,
        str(argument("backbone", given["backbone"], str | Path)),
        argument("out", given["out"], Path),
        dev_data=by_name("dev_data") or None,
        columns=given["columns"],
        judged=given["accept_on"],
        revision=given["revision"],
        trust_remote_code=given["trust_remote_code"],
        losses=_custom_losses(objective, data),
        dev_metric=dev_metric,
    )


def _check_inputs(sources: Sources, settings: TrainSettings) -> None:
    """Refuse unusable names, folders and files before torch is imported, which takes seconds."""
    from aoe_train.data.run_data import check_files
    from aoe_train.model.backbones.load import check_name
    from aoe_train.model.run_folder import work_beside

    check_name(sources.backbone)
    for teacher in (settings.guide.model, settings.teacher.model):
        if teacher is not None and not Path(teacher).is_file():  # not a file of vectors
            check_name(teacher)
    work_beside(sources.out)
    check_files(sources, settings)


def _custom_losses(objective: Any, data: Mapping[str, Source]) -> dict[str, LossFunction]:
    """The user's own loss of each dataset that has one."""
    from pairkit.app.errors import ConfigError

    if objective is None:
        return {}
    if not isinstance(objective, Mapping):
        return dict.fromkeys(data, objective)
    if unknown := objective.keys() - data.keys():
        raise ConfigError(f"objective: no dataset {min(unknown)!r}; expected {', '.join(sorted(data))}")
    return dict(objective)


def settings_of(function: Callable[..., Any], given: Mapping[str, Any]) -> TrainSettings:
    """The settings that a function's arguments result in."""
    from aoe_train.settings.training import LoraSettings, TrainSettings
    from pairkit.app.settings import merge

    keys = setting_keys(function)
    settings = merge(TrainSettings, keys, given, config=given["config"], settings=given["settings"])
    lora = given["lora"]
    if lora is None or (lora and settings.lora is not None):
        return settings
    return settings.model_copy(update={"lora": LoraSettings() if lora else None})
