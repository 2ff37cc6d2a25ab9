"""The settings of a training run, with their defaults and constraints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, field_validator, model_validator

from aoe_train.objectives.objective_settings import PRESETS as OBJECTIVES
from aoe_train.objectives.objective_settings import ObjectiveSettings
from aoe_train.settings.prompt_settings import NamedPrompts
from pairkit.base.errors import ConfigError
from pairkit.base.settings import Settings, setting, split_at_commas
from pairkit.dataset.labels import LabelRange, LabelValues, OnBadRows

Pooling = Literal[
    "auto",
    "cls",
    "avg",
    "max",
    "last",
    "cls-avg",
    "first-last-avg",
    "weighted-mean",
    "cells",
]
Conflicts = Literal["keep", "drop", "first", "error"]
Author = Literal["rules", "people"]
Purpose = Literal["group", "search", "match"]
LongText = Literal["truncate", "chunks"]
EncodingPrecision = Literal["auto", "fp32", "bf16", "fp16", "int8"]
PRECISIONS = get_args(EncodingPrecision)
Similarity = Literal["cosine", "dot", "euclidean", "manhattan"]
Tree = dict[str, Any]


def _for_training(value: object) -> object:
    if value == "int8":
        raise ValueError("int8 is for encoding only; train in fp32 or bf16")
    return value


Precision = Annotated[Literal["auto", "fp32", "bf16", "fp16"], BeforeValidator(_for_training)]


def named_precision(given: str | None) -> EncodingPrecision:
    """Check the name of a precision for encoding; None is `auto`."""
    if given is not None and given not in PRECISIONS:
        raise ConfigError(f"--precision {given}: expected {', '.join(PRECISIONS[:-1])} or {PRECISIONS[-1]}")
    return cast("EncodingPrecision", given or "auto")


Names = Annotated[tuple[str, ...], BeforeValidator(split_at_commas)]
"""One name or several; on a command line separated by commas."""

_PAPERS_NAMES = {"last-avg": "avg", "last-max": "max", "cls-last-avg": "cls-avg"}


class DataSettings(Settings):
    """How to read labels and handle unusable rows, in training and held-out data."""

    labels: LabelValues | None = setting(
        None,
        'Number for each label in the data, or "skip": {entailment = 1, neutral = "skip"}. Default: '
        "recognised by value.",
    )
    label_range: LabelRange | None = setting(
        None, "Lowest and highest score, which become 0 and 1. Default: 0 to 1 or 0 to 5, as recognised."
    )
    bad_rows: OnBadRows = setting("error", "What to do with rows that lack a text or label: error or skip.")
    conflicts: Conflicts = setting(
        "keep",
        "What to do with pairs that have different labels: keep, drop, first (keep the rows that agree "
        "with the first one) or error. Conflicts are always counted and reported.",
    )
    author: Author | None = setting(
        None,
        "Who wrote the rows: rules, or people if each positive and negative was written by hand; the preset "
        "domain trains longer on the latter. Default: from the dataset's run.json, else unknown.",
    )


Activation = Literal[
    "identity",
    "elu",
    "gelu",
    "leakyrelu",
    "mish",
    "relu",
    "relu6",
    "selu",
    "silu",
    "sigmoid",
    "softplus",
    "tanh",
]


class DenseSettings(Settings):
    """A dense layer after the pooling: activation(W x + b).

    `encoder.dense` lists the layers in order, or only their sizes: `[256]`. Their weights are initialised at
    random unless the backbone's folder has them.
    """

    size: int = setting(..., "Number of output dimensions.", ge=1, le=1 << 20)
    activation: Activation = setting("identity", "Activation function of the layer.")
    bias: bool = setting(True, "Add a learned bias to the output.")
    residual: bool = setting(False, "Add the input to the output, by a learned matrix if sizes differ.")


def _layers(value: object) -> object:
    """Turn sizes into layers; on a command line they are separated by commas."""
    layers = [value] if isinstance(value, int) else split_at_commas(value)
    if not isinstance(layers, list | tuple):
        return layers
    return [{"size": layer} if isinstance(layer, int | str) else layer for layer in layers]


class MixSettings(Settings):
    """How the batches of several datasets are mixed; each batch has rows of one dataset.

    A dataset's weight is set in its own section, `datasets.NAME.weight`.
    """

    order: Literal["proportional", "round-robin"] = setting(
        "proportional",
        "Order of the datasets' batches: proportional (random, each dataset in proportion to weight * "
        "rows^(1 / temperature)) or round-robin (in turns, each dataset in proportion to its weight).",
    )
    temperature: float = setting(
        1.0,
        "For proportional order: at 1 all rows are seen equally often, above it small datasets more often.",
        gt=0,
    )
    epoch: Literal["once", "shortest", "longest"] | None = setting(
        None,
        "When an epoch ends: once (each row was seen once), shortest (one dataset was seen once, and the "
        "next epoch continues the others) or longest (each dataset was seen at least once, shorter ones "
        "repeat). Default: longest for proportional, shortest for round-robin.",
    )
    dev: str | None = setting(None, "The dev set that chooses the best weights. Default: the mean of all.")

    @property
    def until(self) -> Literal["once", "shortest", "longest"]:
        """The condition that ends an epoch."""
        return self.epoch or ("longest" if self.order == "proportional" else "shortest")

    @model_validator(mode="after")
    def _check_temperature(self) -> MixSettings:
        if self.temperature == 1:
            return self
        if self.order == "round-robin":
            raise ValueError(
                f"mix.temperature = {self.temperature:g}: has no effect in round-robin; leave it out, or set"
                " order = proportional"
            )
        if self.until == "once":
            raise ValueError(
                f"mix.temperature = {self.temperature:g}: has no effect if each row is seen once an epoch;"
                " leave it out, or set epoch = longest"
            )
        return self


class EncoderSettings(Settings):
    """How a text becomes a vector; stored in `aoe.json` of the model folder."""

    pooling: Pooling = setting(
        "auto",
        "How token vectors become one vector: cls, avg, max, last, cls-avg, first-last-avg or "
        "weighted-mean. auto takes the backbone's pooling, else cls for encoders and last for decoders.",
    )
    max_length: int | None = setting(
        None,
        "Maximum number of tokens of a text with its prompt. Default: the backbone's limit, at most 512.",
        ge=4,
    )
    long_text: LongText = setting(
        "truncate", "What to do with a text longer than max_length: truncate, or split it into chunks."
    )
    overlap: int = setting(0, "Number of tokens that neighbouring chunks share, at most half a chunk.", ge=0)
    prompts: dict[str, str] = setting(
        {},
        'Prompts by name, before a text or around {text}, such as {query = "query: ", document = "passage: '
        '"}.',
    )
    default_prompt_name: str | None = setting(None, "Name of the prompt that is used by default.")
    include_prompt: bool = setting(True, "Include the prompt's tokens in pooling.")
    dense: Annotated[tuple[DenseSettings, ...], BeforeValidator(_layers)] = ()
    layers: int | None = setting(None, "Use the backbone's first N layers. Default: all.", ge=1)
    dim: int | None = setting(
        None,
        "Keep the first N dimensions of each vector (truncate_dim of sentence-transformers). Default: all.",
        ge=1,
    )
    similarity_fn_name: Similarity = setting("cosine", "Function that compares two vectors.")
    normalize: bool = setting(False, "Scale vectors to length 1.")
    bidirectional: bool = setting(False, "Let every token of a decoder attend to the whole text.")

    @field_validator("pooling", mode="before")
    @classmethod
    def _papers_names(cls, value: object) -> object:
        return _PAPERS_NAMES.get(value, value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_prompts(self) -> EncoderSettings:
        try:
            NamedPrompts(self.prompts, self.default_prompt_name)
        except ConfigError as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def named_prompts(self) -> NamedPrompts:
        """The prompts with the default's name."""
        return NamedPrompts(self.prompts, self.default_prompt_name)


class LoraSettings(Settings):
    """Low-rank adaptation (LoRA): each adapted matrix W becomes W + (alpha / rank) B A; only A and B train.

    The defaults are the paper's for LLaMA2-7B on NLI.
    """

    rank: int = setting(32, "Rank of the adapters: the inner dimension of B A.", ge=1)
    alpha: int = setting(32, "Scale of the adapters' product B A, divided by the rank.", ge=1)
    dropout: float = setting(0.1, "Dropout probability on the inputs of the adapters.", ge=0, lt=1)
    targets: Literal["auto"] | tuple[str, ...] = setting(
        "auto", 'Names of the linear layers to adapt, such as `q_proj`; "auto" adapts all of the backbone\'s.'
    )
    four_bit: bool = setting(
        False, "Store the frozen weights in 4 bits (QLoRA); needs CUDA and bitsandbytes."
    )


def _lora(value: object) -> object:
    """Turn true into default settings and false into None."""
    return {True: {}, False: None}[value] if isinstance(value, bool) else value


class BatchSettings(Settings):
    """How rows are grouped into batches."""

    strategy: Literal["shuffle", "length", "tokens"] = setting(
        "length",
        "How rows are chosen for a batch: shuffle (random), length (similar lengths) or tokens (as many as "
        "fit into max_tokens).",
    )
    max_tokens: int | None = setting(
        None, "Maximum number of tokens in a batch of all processes; only for the strategy tokens.", ge=1
    )
    drop_last: bool = setting(False, "Drop the last batch of an epoch if it is smaller.")
    dedup: bool = setting(True, "Encode a text that is repeated in a batch only once.")


class OptimSettings(Settings):
    """The optimiser, AdamW unless `run.trainer.optim` names another, and its schedule.

    The defaults are those of the presets that end in `-paper`. Other presets choose `epochs`, `batch_size`,
    `lr`, `scheduler` and `average` by rows and backbone unless they are set.
    """

    epochs: float = setting(
        1.0,
        "Number of passes over the training rows. Default: by number of rows; {default} with presets that "
        "end in -paper.",
        gt=0,
    )
    batch_size: int = setting(
        32,
        "Number of rows in a batch of each process; in-batch negatives come from all processes. Default: "
        "16; {default} with presets that end in -paper.",
        ge=2,
    )
    accumulation: int = setting(
        1, "Number of batches per optimiser step; rows are only compared within their batch.", ge=1
    )
    lr: float = setting(
        5e-5,
        "Peak learning rate. Default: by rows and backbone; {default} with presets that end in -paper.",
        gt=0,
    )
    scheduler: str = setting("linear", "Learning rate schedule by its name in transformers, such as cosine.")
    warmup: float = setting(
        0.1, "Warm-up of the learning rate: share of the steps, or a number of steps if 1 or more.", ge=0
    )
    weight_decay: float = setting(0.0, "Weight decay of AdamW.", ge=0)
    max_grad_norm: float = setting(1.0, "Clip gradients to this norm; 0: no clipping.", ge=0)
    average: float = setting(
        0.0, "Average the weights over this last share of the run; 0: take the last weights.", ge=0, le=1
    )
    top_layers: int | None = setting(
        None, "Train the last N layers only and freeze the rest. Default: all layers.", ge=1
    )
    interpolate: float = setting(
        1.0,
        "Weight of the trained model when averaged with its backbone, 0 to 1 (WiSE-FT). Smaller values "
        "keep more of the backbone's abilities; 0 keeps the backbone. Default: {default}, or by rows for the "
        "preset domain.",
        ge=0,
        le=1,
    )
    if_not_better: Literal["backbone", "model"] = setting(
        "backbone",
        "Weights to save if the judged pairs of --accept-on show no improvement: backbone or model.",
    )
    evaluations: int = setting(4, "Number of evaluations on dev data per epoch.", ge=1)
    patience: int | None = setting(
        None, "Stop after N evaluations without improvement. Default: never.", ge=1
    )


class RunSettings(Settings):
    """How training is computed; affects only rounding, speed and memory."""

    precision: Precision = setting(
        "auto",
        "Precision of training: fp32, bf16, fp16 or auto. auto is bf16 on a GPU that supports it, else fp32.",
    )
    packing: bool = setting(
        True, "Pack texts without padding if the backbone's attention allows it; false: pad."
    )
    graphs: bool = setting(
        False,
        "On a GPU, run steps as CUDA graphs if the run allows it; needs more memory, and was not run on a "
        "GPU yet.",
    )
    compile: bool = setting(False, "Use torch.compile; worthwhile for long runs on a GPU.")
    chunk: int | None = setting(
        None, "Maximum number of texts to embed at once, for batches larger than memory.", ge=1
    )
    shard: bool = setting(False, "Shard weights, gradients and optimiser state over the processes (FSDP).")
    gradient_checkpointing: bool = setting(False, "Recompute layers in the backward pass to save memory.")
    deterministic: bool = setting(
        False, "Use only deterministic kernels; slower on a GPU, no effect on a CPU."
    )
    trainer: Tree = setting({}, "Additional TrainingArguments of transformers, such as optim.")


class LogSettings(Settings):
    """Logs and checkpoints of a run; no effect on the result."""

    steps: int = setting(10, "Number of steps between log entries.", ge=1)
    report_to: Names = setting((), "Services that also receive the log, such as tensorboard or wandb.")
    checkpoint_minutes: float = setting(5.0, "Minutes between checkpoints.", ge=0)
    checkpoint_steps: int | None = setting(None, "Steps between checkpoints, instead of minutes.", ge=1)
    training_texts: bool = setting(
        True, "Store hashes of the training texts, so that `aoe evaluate` can report overlaps."
    )


PathText = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, Path) else value)]


class TeacherModelSettings(Settings):
    """A guide or teacher: a model beside the trained one."""

    model: PathText | None = setting(
        None,
        "The model: a folder, a Hub id, minilm, smollm2, or a file of vectors that `aoe encode` wrote "
        "(.parquet or .jsonl with the columns `text` and `vector`). Default: none.",
    )
    revision: str | None = setting(None, "Commit of this model on the Hub.")
    prompts: str | dict[str, str] | None = setting(
        None,
        "Prompt of this model before each text, or a table of prompts by column. Default: query and "
        "document for rows with anchors, else its default prompt.",
    )


class GuideSettings(TeacherModelSettings):
    """A model whose cosines filter likely false negatives in a batch (GISTEmbed).

    Its vectors are computed once, before training. `objective.guide_margin` is the threshold.
    """


class TeacherSettings(TeacherModelSettings):
    """A model to imitate, by the parts `embed_distill`, `score_distill` and `margin_mse`.

    Its vectors are computed once, before training. Scores of pairs may be given instead.
    """

    smoothing: float | None = setting(
        None,
        "Share of a text's vector that is averaged with its neighbours, 0 to 1, in the preset domain on "
        "single texts. Default: by `purpose`.",
        ge=0,
        le=1,
    )
    neighbours: int = setting(8, "Number of mutual nearest neighbours that are averaged.", ge=1)
    lexical_weight: float | None = setting(
        None, "Weight of lexical similarity (TF-IDF), 0 to 1. Default: by `purpose`.", ge=0, lt=1
    )
    scores: PathText | None = setting(
        None,
        "File of a teacher's scores, such as a cross-encoder's: the rows with a column `teacher_scores`, "
        "or pairs with a score. `score_distill` and `margin_mse` learn them. Default: none.",
    )
    score_range: LabelRange | None = setting(
        None,
        "Lowest and highest teacher score, which become 0 and 1, such as -10,10. Default: not rescaled.",
    )


class CardSettings(Settings):
    """Entries of the model card."""

    license: str = setting("unknown", "Licence id of the Hub, such as apache-2.0.")
    language: Names = setting(
        (), "Languages of the texts, such as en. Default: detected in the training texts by py3langid."
    )
    base_model: str | None = setting(None, "Hub id of the backbone, if it is a local folder.")


def merged(below: Tree, above: Tree) -> Tree:
    """Merge two trees: `above` overrides `below` key by key; values that aren't tables replace each other."""
    result = {**below, **above}
    for key in below.keys() & above.keys():
        if isinstance(below[key], dict) and isinstance(above[key], dict):
            result[key] = merged(below[key], above[key])
    return result


AUTO, PAPERS, DOMAIN = "auto", "-paper", "domain"
_PAPERS: Tree = {
    "optim": OptimSettings().model_dump(exclude={"if_not_better"}),
    "batches": {"strategy": "shuffle"},
}
_PAPERS_OBJECTIVES: Mapping[str, Tree] = {
    "angle": {"duplicates": "positive"},
    "aoe": {"tau": {"angle": 0.05}},
}
# A few large steps of the last layers on rows of one domain. Steps, sizes of batches, learning rate, weight
# mix and parts depend on the rows; see `data/defaults.py`. `benchmarks/domain.py` measures alternatives.
_DOMAIN: Tree = {
    "objective": {"tau": {"contrastive": 0.05, "angle": 0.2}, "symmetric": True},
    "batches": {"strategy": "shuffle"},  # in-batch negatives of all lengths
    "optim": {"scheduler": "linear", "average": 0.0, "top_layers": 2},
}
# Settings of each preset, which any given setting overrides. `auto` leaves everything to `data/defaults.py`,
# the objectives' names leave all but the objective to it, and the papers' presets leave nothing to it.
PRESETS: Mapping[str, Tree] = {
    AUTO: {},
    **{name: {"objective": given.model_dump(exclude_unset=True)} for name, given in OBJECTIVES.items()},
    **{
        name + PAPERS: {"objective": merged(given.model_dump(), _PAPERS_OBJECTIVES.get(name, {})), **_PAPERS}
        for name, given in OBJECTIVES.items()
    },
    DOMAIN: _DOMAIN,
}


def _known_preset(name: str) -> str:
    """Refuse a name that is not a preset's."""
    if name not in PRESETS:
        raise ValueError(f"expected one of {', '.join(PRESETS)}")
    return name


PresetName = Annotated[str, AfterValidator(_known_preset)]


class DatasetSettings(Settings):
    """Settings of one dataset or dev set that differ from the run's."""

    data: str | None = setting(None, "Training rows of this dataset, as `--data NAME=DATA`.")
    dev_data: str | None = setting(None, "Held-out rows of this dataset, as `--dev-data NAME=DATA`.")
    columns: dict[str, str] | None = setting(
        None,
        'Roles of the columns, such as {anchor = "question", positive = "answer"}. Default: `--columns`.',
    )
    labels: LabelValues | None = setting(None, "Number for each label of the dataset. Default: data.labels.")
    label_range: LabelRange | None = setting(
        None, "Lowest and highest score of this dataset, which become 0 and 1. Default: data.label_range."
    )
    conflicts: Conflicts | None = setting(
        None, "What to do with pairs that have different labels. Default: data.conflicts."
    )
    weight: float = setting(1.0, "Relative frequency of this dataset in the mixture.", gt=0)
    batch_size: int | None = setting(
        None, "Number of this dataset's rows in a batch of each process. Default: optim.batch_size.", ge=2
    )
    prompts: str | dict[str, str] | None = setting(
        None, "Prompts of this dataset and its dev set, one or by column. Default: the run's `prompts`."
    )
    preset: PresetName | None = setting(None, "Objective of this dataset. Default: the run's `preset`.")
    objective: ObjectiveSettings = setting(
        ObjectiveSettings(), "Loss parts of this dataset and their options; unset keys are the run's."
    )


class TrainSettings(Settings):
    """A whole training run."""

    prompts: str | dict[str, str] | None = setting(
        None,
        'Prompt before each text, or around {text}; or by column, such as {anchor = "query: ", positive '
        '= "passage: "}. The model stores them: one prompt for all texts becomes its default, those of '
        "columns are named `query`, `document` and so on. Default: the backbone's default prompt.",
    )
    preset: PresetName = setting(
        AUTO,
        "Training objective: angle, aoe, cosent, sbert, simcse or domain. With the suffix -paper, such "
        "as angle-paper, the paper's other settings are used, too. domain adapts a model to texts of one "
        "domain: plain texts, or triplets of `label`. auto chooses by the kind of rows.",
    )
    purpose: Purpose | None = setting(
        None,
        "What the preset domain trains the model for, on plain texts: group (topics, intents, routing, "
        "FAQ), search, or match (duplicates, near-paraphrases). Default: search.",
    )
    seed: int = setting(42, "Seed of every random choice.", ge=0, lt=2**32)
    data: DataSettings = DataSettings()
    encoder: EncoderSettings = EncoderSettings()
    objective: ObjectiveSettings = ObjectiveSettings()
    batches: BatchSettings = BatchSettings()
    optim: OptimSettings = OptimSettings()
    lora: Annotated[LoraSettings | None, BeforeValidator(_lora)] = setting(
        None,
        "Train adapters instead of all weights; false: all weights. Default: adapters if the backbone is a "
        "decoder.",
    )
    guide: GuideSettings = GuideSettings()
    teacher: TeacherSettings = TeacherSettings()
    run: RunSettings = RunSettings()
    log: LogSettings = LogSettings()
    card: CardSettings = CardSettings()
    mix: MixSettings = MixSettings()
    datasets: dict[str, DatasetSettings] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _put_preset_beneath(cls, tree: object) -> object:
        if not isinstance(tree, dict):
            return tree
        preset = PRESETS.get(str(tree.get("preset", cls.model_fields["preset"].default)))
        return tree if preset is None else merged(preset, tree)

    @model_validator(mode="after")
    def _each_dataset(self) -> TrainSettings:
        for name in self.datasets:
            try:
                self.of(name)
            except ValidationError as error:
                message = error.errors()[0]["msg"].removeprefix("Value error, ")
                raise ValueError(f"datasets.{name}: {message}") from error
        return self

    def section(self, dataset: str) -> DatasetSettings:
        """A dataset's own section, which may be empty."""
        return self.datasets.get(dataset, DatasetSettings())

    def of(self, dataset: str) -> TrainSettings:
        """The settings of one dataset or dev set: the run's, overridden by its own section."""
        if not self.datasets:
            return self
        section = self.section(dataset).model_dump(exclude_unset=True)
        run = self.model_dump(exclude_unset=True, exclude={"datasets"})
        if preset := section.get("preset"):  # replaces the run's preset, including its weights
            run["preset"] = preset
            run.setdefault("objective", {}).pop("weights", None)
        if section.get("prompts") is not None:
            run["prompts"] = section["prompts"]
        if section.get("batch_size") is not None:
            run = merged(run, {"optim": {"batch_size": section["batch_size"]}})
        data = {name: section[name] for name in DataSettings.model_fields if section.get(name) is not None}
        return TrainSettings.model_validate(
            merged(run, {"data": run.get("data", {}) | data, "objective": section.get("objective", {})})
        )
