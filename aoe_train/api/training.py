"""Train models: the functions behind `aoe train`."""

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
    from aoe_train.objectives.objective import OwnObjective
    from aoe_train.settings.training import TrainSettings
    from pairkit.app.progress import Listener
    from pairkit.dataset.in_memory import Source
    from pairkit.dataset.labels import Meaning
    from pairkit.dataset.named_sources import Given

TRAINING = "Training"


def train(
    data: Annotated[Given | None, replace(Data, repeat=True, read=named_sources)] = None,
    *,
    backbone: Annotated[
        str | Path, Flag("--backbone -b", metavar="MODEL", panel=MODEL, main=True)
    ] = "minilm",
    out: Annotated[str | Path, Out] = "model",
    preset: Annotated[str | None, Flag(metavar="NAME", panel=TRAINING, setting="preset", main=True)] = None,
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
    objective: Annotated[OwnObjective | Mapping[str, OwnObjective] | None, PYTHON_ONLY] = None,
    dev_metric: Annotated[Callable[[Encoder], float] | None, PYTHON_ONLY] = None,
    callbacks: Annotated[Sequence[TrainerCallback], PYTHON_ONLY] = (),
    config: Config = None,
    settings: SettingsGiven = None,
    fresh: Fresh = False,
    progress: bool | Listener = True,
) -> Trained:
    """Train a text-embedding model on pairs. Run it again to continue.

    `seconds` and `pairs_per_s` in the JSON count the training steps only, without loading, tokenising,
    evaluation on dev data and checkpoints.

    Args:
        data: A dataset's folder, a file or a Hub id; repeatable, with names as nli=FILE. Pairs, triplets or
            single texts; in Python also a DataFrame, a `Dataset`, a list of dicts, a list of texts or a
            `PairDataset`. Several datasets are a mapping from names to these, such as `{"nli": "nli.tsv",
            "stsb": rows}`, or a list of paths or tables: each batch has rows of one, and the settings
            `datasets.NAME` and `mix` configure the rest. None takes the settings' `datasets.NAME.data`.
        backbone: A folder, a Hub id, minilm or smollm2. minilm is all-MiniLM-L6-v2 from the package index,
            smollm2 SmolLM2-135M-Instruct.
        out: The model's folder.
        preset: angle, aoe, cosent, sbert or simcse; angle-paper: with the paper's other settings, too;
            domain: for triplets of `label`. Also a baseline for texts without labels, such as ct. Default: by
            kind of rows.
        dims: Sizes that vectors may be cut to, such as 384,128,32. They include the full size; the
            model is trained at each (Matryoshka). Default: none.
        layers: Earlier layers to train as outputs, such as 2,4, or all. The model may then be cut to these
            depths (2D Matryoshka, Espresso). Default: none.
        top_layers: Train the last N layers only. The others and the embeddings stay as they are. Default:
            all.
        weight_mix: Weight of the trained model when averaged with its backbone (0 to 1). The smaller, the
            more is kept of what the backbone can do (WiSE-FT); 0 keeps the backbone.
        dev_data: Held-out rows that choose the weights; repeatable. Or several dev sets, given as `data`. The
            setting `mix.dev` says which of them chooses, by default their mean. Default: the validation
            split.
        accept_on: Pairs on which the model must beat its backbone, such as those of `label judge`. They must
            not be in the training data. If the model is not shown to be better, the backbone's weights are
            saved and the run reports it.
        if_not_better: backbone or model: whose weights are saved if the model is not shown to be better on
            --accept-on.
        columns: Roles of columns, such as text1=title,label=same or anchor=q,negative=n; 1,2,3 without a
            header line. In Python a mapping of roles to names, such as `{"text1": "title", "text2": "body",
            "label": "same"}`.
        labels: Values of labels, such as 0=1,1=skip,2=0. In Python also a mapping of labels to numbers or
            "skip", which leaves rows out, such as `{"entailment": 1, "contradiction": 0, "neutral": "skip"}`.
            Labels that are not named keep their usual meaning, such as 1 and 0 for yes and no.
        label_range: The lowest and highest score, such as 0,100. They become 0 and 1; needed if scores are
            neither from 0 to 1 nor from 0 to 5.
        bad_rows: error or skip: for rows that lack a text or label. skip leaves them out and counts them on
            stderr; OUT.bad-rows.jsonl lists them with their reasons. Default: error.
        conflicts: keep, drop, first or error: for rows of one pair with different labels. first keeps rows
            that agree with the first one. Such rows are always counted and reported.
        epochs: Number of times that each row is seen. Default: by number of rows.
        batch_size: Rows of each process. Default: 16.
        lr: Highest learning rate. Default: by rows and backbone.
        max_length: Maximum number of tokens of a text. Default: the backbone's, at most 512.
        pooling: cls, avg, max, last, cls-avg, first-last-avg, weighted-mean or mask. Default: the backbone's.
        prompts: Words before each text, or around {text}; of one column as anchor='query: ', repeatable. In
            Python one prompt, or a mapping of columns to prompts, such as `{"anchor": "query: ", "positive":
            "passage: "}`. The model stores them by name: a prompt for all texts is its default, those of
            columns are `query`, `document` and so on.
        lora: Train low-rank adapters only, or all weights. See the settings `lora.*`. Default: on for
            decoders.
        precision: fp32, bf16, fp16 or auto: bf16 on a GPU that has it.
        guide: A model that filters likely false negatives (GISTEmbed). See the settings `guide.*` and
            `objective.guide_margin`.
        teacher: A model yours should imitate, or a file of its vectors. A folder, a Hub id, minilm, smollm2,
            or a file of texts and vectors as `aoe encode` writes it. The loss parts that use it are
            `embed_distill`, `score_distill` and `margin_mse`.
        teacher_scores: A file of the rows with a teacher's scores. They are in a column `teacher_scores`, or
            the file has pairs with scores, from a cross-encoder for instance; `score_distill` and
            `margin_mse` learn them.
        seed: Decides every random choice.
        revision: The backbone's commit on the Hub.
        trust_remote_code: Run the backbone's code; needs --revision.
        objective: A loss of your own in place of the preset's: `(vectors, labels) -> scalar`, with float32
            vectors (row, column, dim) of the whole batch and labels (row,), or None if there are none.
            A missing negative is a vector of zeros. A module's own weights are trained, too. Or a
            `TextObjective`, which gets the model and the tokens. Or a mapping of datasets to objectives.
        dev_metric: A function of the encoder that chooses the best weights, in place of the dev data's
            metric. Larger is better. It is called before training and at each evaluation.
        callbacks: Callbacks of transformers (`TrainerCallback`), called at each event of the training.
        config: A TOML file of settings. Others have their defaults.
        settings: One setting, such as objective.tau.angle=0.05; repeatable. In Python also a mapping of
            dotted keys to values. They override `config`, and the arguments above override them.
        fresh: Start again; replace the output of another run.
        progress: Whether to show progress on stderr, or a function to be told of it.

    Returns:
        The run: `.encoder`, `.dev`, `.history`, `.out`.

    Raises:
        ConfigError: Settings, data and backbone don't go together, memory is short, another run is in the
            way, or training diverged: the message has the learning rate and the path of the best weights.
        DataError: Unusable rows, or a first loss that is not finite.
        RemoteError: The Hub could not be reached.

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
    given = locals()
    from aoe_train.api.trained import Trained

    merged = settings_of(train, given)
    sources = sources_of(given, merged)
    own = _own(objective, sources)
    _check_inputs(sources, merged, own)
    from aoe_train.training import train as _train
    from aoe_train.training.processes import is_main, leave_group

    record = _train.train(
        sources,
        merged,
        own=own,
        fresh=fresh,
        say=notes(progress),
        progress=progress,
        callbacks=callbacks,
        dev_metric=dev_metric,
    )
    run = Trained(sources.out, record, is_main())
    leave_group()
    return run


@same_arguments(train)
def plan(given: dict[str, Any]) -> Plan:
    """Estimate the memory and time of `train` from a few steps on a temporary model; nothing is written.

    It takes the arguments of `train`.

    Raises:
        ConfigError: See `train`.
        DataError: See `train`.
        RemoteError: See `train`.
    """
    from aoe_train.api.trained import Plan

    settings = settings_of(train, given)
    sources = sources_of(given, settings)
    own = _own(given["objective"], sources)
    _check_inputs(sources, settings, own)
    from aoe_train.training import plan as _plan

    return Plan(_plan.plan(sources, settings, own=own, progress=given["progress"]))


def sources_of(given: Mapping[str, Any], settings: TrainSettings) -> Sources:
    """Inputs and output of a run: the arguments, which override the settings."""
    from aoe_train.data.run_data import Sources
    from pairkit.app.errors import ConfigError
    from pairkit.app.settings import argument
    from pairkit.dataset.named_sources import named_sources

    def named(key: str) -> dict[str, Source]:
        sections = settings.datasets.items()
        below = {name: source for name, own in sections if (source := getattr(own, key)) is not None}
        return {**below, **({} if given[key] is None else named_sources(given[key]))}

    found = named("data")
    if not found:
        raise ConfigError("there is no data to train on; give --data, or datasets.NAME.data in a file")
    return Sources(
        found,
        str(argument("backbone", given["backbone"], str | Path)),
        argument("out", given["out"], Path),
        dev_data=named("dev_data") or None,
        columns=given["columns"],
        judged=given["accept_on"],
        revision=given["revision"],
        trust_remote_code=given["trust_remote_code"],
    )


def _check_inputs(sources: Sources, settings: TrainSettings, own: Mapping[str, OwnObjective]) -> None:
    """Refuse names, folders and files that can't be used, before torch is loaded."""
    from aoe_train.data.run_data import check_files
    from aoe_train.model.backbones.load import check_name
    from aoe_train.model.run_folder import work_beside

    check_name(sources.backbone)
    for adviser in (settings.guide.model, settings.teacher.model):
        if adviser is not None and not Path(adviser).is_file():  # a file of its vectors
            check_name(adviser)
    work_beside(sources.out)
    check_files(sources, settings, own=own.keys())


def _own(objective: Any, sources: Sources) -> dict[str, OwnObjective]:
    """The user's own loss of each dataset that has one."""
    from pairkit.app.errors import ConfigError

    if objective is None:
        return {}
    if not isinstance(objective, Mapping):
        return dict.fromkeys(sources.data, objective)
    if unknown := objective.keys() - sources.data.keys():
        raise ConfigError(f"objective: no dataset {min(unknown)!r}; there are {', '.join(sources.data)}")
    return dict(objective)


def settings_of(function: Callable[..., Any], given: Mapping[str, Any]) -> TrainSettings:
    """The settings that result from the arguments of a function."""
    from aoe_train.settings.training import LoraSettings, TrainSettings
    from pairkit.app.settings import merge

    keys = setting_keys(function)
    settings = merge(TrainSettings, keys, given, config=given["config"], settings=given["settings"])
    wanted = given["lora"]
    if wanted is None or (wanted and settings.lora is not None):
        return settings
    return settings.model_copy(update={"lora": LoraSettings.model_validate({}) if wanted else None})
