"""All settings of a training run in one tree; each section belongs to what it is named after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from aoe_train.objectives.settings import PRESETS as OBJECTIVES
from aoe_train.objectives.settings import ObjectiveSettings
from aoe_train.settings.prompts import NamedPrompts
from pairkit.app.errors import ConfigError
from pairkit.app.settings import Settings, split_at_commas
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
LongText = Literal["truncate", "chunks"]
EncodingPrecision = Literal["auto", "fp32", "bf16", "fp16", "int8"]
PRECISIONS = get_args(EncodingPrecision)
Similarity = Literal["cosine", "dot", "euclidean", "manhattan"]
Tree = dict[str, Any]


def _for_training(value: object) -> object:
    if value == "int8":
        raise ValueError("int8 is for encoding, as nothing can learn in it; train in fp32 or bf16")
    return value


Precision = Annotated[Literal["auto", "fp32", "bf16", "fp16"], BeforeValidator(_for_training)]


def named_precision(given: str | None) -> EncodingPrecision:
    """A name of a precision to encode in, None for `auto`."""
    if given is not None and given not in PRECISIONS:
        raise ConfigError(f"--precision {given}: expected {', '.join(PRECISIONS[:-1])} or {PRECISIONS[-1]}")
    return cast("EncodingPrecision", given or "auto")


Names = Annotated[tuple[str, ...], BeforeValidator(split_at_commas)]
"""One name or several; on a command line with commas between them."""

_PAPERS_NAMES = {"last-avg": "avg", "last-max": "max", "cls-last-avg": "cls-avg"}


class DataSettings(Settings):
    """How to interpret labels and unusable rows, in training and held-out data."""

    # values of labels, numbers or "skip": {entailment = 1, neutral = "skip"}; unset: as recognised
    labels: LabelValues | None = None
    # the lowest and the highest score, which become 0 and 1; unset: 0 to 1 or 0 to 5, as recognised
    label_range: LabelRange | None = None
    # rows that lack a text or label: error, or skip to leave them out
    bad_rows: OnBadRows = "error"
    # for rows of one pair with different labels: keep, drop, first (keep rows that agree with the first one)
    # or error
    conflicts: Conflicts = "keep"
    # who wrote the rows: rules, or people who wrote each positive and negative by hand; unset: rules if the
    # dataset's run.json has it so, else unknown. The preset domain trains further on rows by people
    author: Author | None = None


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
    """A dense layer behind the pooling: its activation of W x + b.

    `encoder.dense` lists the layers in order, or their sizes alone: `[256]`. They begin at random, unless the
    backbone's folder has them.
    """

    size: int = Field(ge=1, le=1 << 20)  # output size
    activation: Activation = "identity"  # activation function of the output
    bias: bool = True  # add a bias b
    residual: bool = False  # add the input, through a learnt matrix if the sizes differ


def _layers(value: object) -> object:
    """Layers from sizes: one or several, separated by commas on a command line."""
    given = [value] if isinstance(value, int) else split_at_commas(value)
    if not isinstance(given, list | tuple):
        return given
    return [{"size": one} if isinstance(one, int | str) else one for one in given]


class MixSettings(Settings):
    """How the batches of several datasets follow each other; all rows of a batch are of one dataset.

    A dataset's weight is set in its own section, `datasets.NAME.weight`.
    """

    # proportional: in random order, each dataset in proportion to weight * rows^(1 / temperature);
    # round-robin: in turns, each dataset in proportion to its weight
    order: Literal["proportional", "round-robin"] = "proportional"
    # of proportional: at 1 all rows are seen equally often; higher values favour small datasets
    temperature: float = Field(default=1.0, gt=0)
    # once: each row once; shortest: until one dataset was seen once, the others continue in the next epoch;
    # longest: until each dataset was seen once, shorter ones repeat; unset: longest for proportional (with
    # equal weights at temperature 1 each row once), shortest for round-robin
    epoch: Literal["once", "shortest", "longest"] | None = None
    dev: str | None = None  # the dev set that chooses the best weights; unset: the mean over all

    @property
    def until(self) -> Literal["once", "shortest", "longest"]:
        """What ends an epoch."""
        return self.epoch or ("longest" if self.order == "proportional" else "shortest")

    @model_validator(mode="after")
    def _meant(self) -> MixSettings:
        if self.order == "round-robin" and self.temperature != 1:
            raise ValueError(
                f"mix.temperature = {self.temperature:g}: only the weights decide the turns in"
                " round-robin; leave it out, or order = proportional"
            )
        if self.until == "once" and self.temperature != 1:
            raise ValueError(
                f"mix.temperature = {self.temperature:g}: has no effect if each row is seen once an epoch;"
                " leave it out, or epoch = longest"
            )
        return self


class EncoderSettings(Settings):
    """How a text becomes a vector; stored in `aoe.json` of the model folder."""

    # auto: as the backbone's folder specifies, else cls for encoders and last for decoders
    pooling: Pooling = "auto"
    # maximum tokens of a text with its prompt; unset: the backbone's limit
    max_length: int | None = Field(default=None, ge=4)
    long_text: LongText = "truncate"  # what to use of a text longer than max_length
    overlap: int = Field(default=0, ge=0)  # tokens that neighbouring chunks share, half of one at most
    # words before a text, or around {text}, by name, such as {query = "query: ", document = "passage: "}
    prompts: dict[str, str] = Field(default_factory=dict)
    default_prompt_name: str | None = None  # name of the prompt that is used by default
    include_prompt: bool = True  # include the prompt's tokens in pooling
    dense: Annotated[tuple[DenseSettings, ...], BeforeValidator(_layers)] = ()
    layers: int | None = Field(default=None, ge=1)  # of the backbone, the first ones; unset: all
    # numbers of a vector that are kept, the first ones; unset: all. sentence-transformers' truncate_dim
    dim: int | None = Field(default=None, ge=1)
    similarity_fn_name: Similarity = "cosine"  # what the vectors are compared by
    normalize: bool = False  # make vectors of length 1
    bidirectional: bool = False  # let every token of a decoder see the whole text

    @field_validator("pooling", mode="before")
    @classmethod
    def _papers_names(cls, value: object) -> object:
        return _PAPERS_NAMES.get(value, value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _readable(self) -> EncoderSettings:
        try:
            NamedPrompts(self.prompts, self.default_prompt_name)
        except ConfigError as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def named_prompts(self) -> NamedPrompts:
        """The prompts, to choose among."""
        return NamedPrompts(self.prompts, self.default_prompt_name)


class LoraSettings(Settings):
    """Low-rank adaptation (LoRA): each adapted matrix W becomes W + (alpha / rank) B A; only A and B learn.

    The defaults are the paper's for LLaMA2-7B on NLI.

    Attributes:
        rank: Inner size of B A.
        alpha: What the product is scaled by, times 1 / rank.
        dropout: Share of the inputs of A that are zeroed in training.
        targets: Names of the linear layers to adapt, such as `q_proj`; "auto" adapts all of the backbone's.
        four_bit: Keep the frozen weights in 4 bits (QLoRA); needs CUDA and bitsandbytes.
    """

    rank: int = Field(32, ge=1)
    alpha: int = Field(32, ge=1)
    dropout: float = Field(0.1, ge=0, lt=1)
    targets: Literal["auto"] | tuple[str, ...] = "auto"
    four_bit: bool = False


def _lora(value: object) -> object:
    """True: adapters with default settings; false: none."""
    return {True: {}, False: None}[value] if isinstance(value, bool) else value


class BatchSettings(Settings):
    """Which rows train together; see `aoe_train.data.batches`."""

    # shuffle: in random order; length: rows of similar length; tokens: as many as fit max_tokens
    strategy: Literal["shuffle", "length", "tokens"] = "length"
    # tokens of a batch over all processes; for the strategy `tokens` only
    max_tokens: int | None = Field(default=None, ge=1)
    drop_last: bool = False  # leave a smaller last batch out
    dedup: bool = True  # encode a repeated text of a batch only once


class OptimSettings(Settings):
    """What the optimiser does; AdamW, as every published recipe.

    The defaults are those of presets that end in `-paper`. Without one, what is not given of `epochs`,
    `batch_size`, `lr`, `scheduler` and `average` is chosen by rows and backbone; see `_defaults`.
    """

    epochs: float = Field(default=1.0, gt=0)  # number of times that each row is seen
    # rows of each process; in-batch negatives come from all processes
    batch_size: int = Field(default=32, ge=2)
    accumulation: int = Field(default=1, ge=1)  # batches of a step; rows are compared within their batch only
    lr: float = Field(default=2e-5, gt=0)  # the highest learning rate
    scheduler: str = "linear"  # how the learning rate goes; a name of transformers' schedulers
    # share of the steps in which the learning rate rises, or a number of steps from 1 on
    warmup: float = Field(default=0.1, ge=0)
    # of AdamW; at 0, embeddings of words that never occur stay as they are
    weight_decay: float = Field(default=0.0, ge=0)
    max_grad_norm: float = Field(default=1.0, ge=0)  # clip gradients to this norm; 0: no clipping
    # keep the mean of the weights over this last share of the run; 0: the last weights
    average: float = Field(default=0.0, ge=0, le=1)
    # train only the last N layers; the others and the embeddings stay unchanged; unset: all
    top_layers: int | None = Field(default=None, ge=1)
    # weight of the trained model when averaged with its backbone (WiSE-FT); 0: the backbone
    weight_mix: float = Field(default=1.0, ge=0, le=1)
    # whose weights are saved if the model is not shown to be better on judged pairs (--accept-on)
    if_not_better: Literal["backbone", "model"] = "backbone"
    evaluations: int = Field(default=4, ge=1)  # evaluations on the dev data in each epoch
    patience: int | None = Field(default=None, ge=1)  # evaluations without improvement before stopping


class RunSettings(Settings):
    """How the training is computed: affects rounding and speed only."""

    precision: Precision = "auto"  # auto: bf16 on a GPU that has it, else fp32, on every processor
    packing: bool = True  # no padding where the backbone's attention allows it; false: padded batches
    compile: bool = False  # use torch.compile; pays on long runs on a GPU
    chunk: int | None = Field(default=None, ge=1)  # texts embedded at once, for batches larger than memory
    shard: bool = False  # let several processes share weights, gradients and optimiser state (FSDP)
    gradient_checkpointing: bool = False  # recompute each layer in the backward pass instead of keeping it
    deterministic: bool = False  # only deterministic kernels; slower on a GPU, and no different on a CPU
    trainer: Tree = Field(default_factory=dict)  # further TrainingArguments of transformers, such as optim


class LogSettings(Settings):
    """Logs and checkpoints of a run; no effect on the result."""

    steps: int = Field(default=10, ge=1)  # steps between entries of the log
    report_to: Names = ()  # also report to tensorboard, wandb, …
    checkpoint_minutes: float = Field(default=5.0, ge=0)  # minutes between checkpoints
    checkpoint_steps: int | None = Field(default=None, ge=1)  # steps between checkpoints, instead of minutes
    # store hashes of the training texts, so that `aoe evaluate` finds overlaps
    training_texts: bool = True


class AdviserSettings(Settings):
    """A model beside the one that is trained."""

    # a folder, a Hub id, minilm, smollm2, or a .parquet or .jsonl file with columns `text` and `vector`
    model: str | None = None
    revision: str | None = None  # its commit on the Hub
    # as `prompts`, of its own; unset: its prompts query and document for rows of anchors, else its default
    prompts: str | dict[str, str] | None = None


class GuideSettings(AdviserSettings):
    """A model whose cosines filter likely false negatives of a batch (GISTEmbed).

    Its vectors of the texts are made once, before training; `objective.guide_margin` is the
    threshold.
    """


class TeacherSettings(AdviserSettings):
    """A model to imitate, by the parts `embed_distill`, `score_distill` and `margin_mse`.

    Its vectors of the texts are made once, before training. Scores of pairs may come from elsewhere.
    """

    # a table of the rows with a column `teacher_scores`, or of pairs with scores; instead of the model's
    scores: str | None = None
    # the lowest and the highest of these scores, which become 0 and 1, such as -10,10; unset: as they are
    score_range: LabelRange | None = None


class CardSettings(Settings):
    """Entries of the model's card that a run cannot determine."""

    license: str = "unknown"  # as the Hub names it, such as apache-2.0
    language: Names = ()  # codes such as en
    base_model: str | None = None  # the backbone's Hub id, if it is a local folder


AUTO, PAPERS, DOMAIN = "auto", "-paper", "domain"
_PAPERS = {"optim": OptimSettings().model_dump(exclude={"if_not_better"})}
# A few large steps of the last layers over rows of a domain. The number of steps, the weight mix and the
# parts depend on the rows: `data/defaults.py` chooses them. `benchmarks/domain.py` measures alternatives.
_DOMAIN: Tree = {
    "objective": {"tau": {"contrastive": 0.05, "angle": 0.2}, "symmetric": True},
    "batches": {"strategy": "shuffle"},  # the negatives of a batch are then of all lengths
    "optim": {
        "lr": 1e-4,
        "batch_size": 32,
        "scheduler": "linear",
        "average": 0.0,
        "top_layers": 2,
    },
}
# What `--preset` stands for: differences from the defaults, beneath everything that is given. `auto` leaves
# the objective to `_defaults`, names leave all but the objective to it, those of the papers leave nothing.
PRESETS: Mapping[str, Tree] = {
    AUTO: {},
    **{name: {"objective": given.model_dump(exclude_unset=True)} for name, given in OBJECTIVES.items()},
    **{name + PAPERS: {"objective": given.model_dump(), **_PAPERS} for name, given in OBJECTIVES.items()},
    DOMAIN: _DOMAIN,
}


class DatasetSettings(Settings):
    """Settings of one dataset or dev set that differ from the run's."""

    data: str | None = None  # its rows to train on, as in `--data NAME=…`
    dev_data: str | None = None  # its held-out rows, as in `--dev-data NAME=…`
    # roles of columns, such as {anchor = "question", positive = "answer"}; unset: as `--columns`
    columns: dict[str, str] | None = None
    labels: LabelValues | None = None  # values of labels; unset: as data.labels
    label_range: LabelRange | None = None  # the lowest and the highest score; unset: as data.label_range
    conflicts: Conflicts | None = None  # rows with different labels; unset: as data.conflicts
    # relative frequency of its rows; see `mix`
    weight: float = Field(default=1.0, gt=0)
    batch_size: int | None = Field(default=None, ge=2)  # rows of each process; unset: optim.batch_size
    prompts: str | dict[str, str] | None = None  # as the run's `prompts`; of its dev set too
    preset: str | None = None  # its objective by name; unset: as the run's `preset`
    # its objective; missing keys are the run's
    objective: ObjectiveSettings = ObjectiveSettings()

    @field_validator("preset")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        return value if value is None else known_preset(value)


class TrainSettings(Settings):
    """A whole training run."""

    # words before texts, or around {text}: one prompt for all, or columns to prompts, such as
    # {anchor = "query: ", positive = "passage: "}; they become prompts of the model
    prompts: str | dict[str, str] | None = None
    # a mix of objectives by name: angle, aoe, cosent, sbert or simcse; with the suffix -paper also the
    # paper's other settings; auto: by the kind of rows
    preset: str = AUTO
    seed: int = Field(default=42, ge=0, lt=2**32)  # decides every random choice
    data: DataSettings = DataSettings()
    encoder: EncoderSettings = EncoderSettings()
    objective: ObjectiveSettings = ObjectiveSettings()
    batches: BatchSettings = BatchSettings()
    optim: OptimSettings = OptimSettings()
    # adapters in place of all weights; false: all weights; unset: adapters where the backbone is a decoder
    lora: Annotated[LoraSettings | None, BeforeValidator(_lora)] = None
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

    @field_validator("preset")
    @classmethod
    def _known(cls, value: str) -> str:
        return known_preset(value)

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
        """The settings of one dataset or dev set: the run's, with those of its own section."""
        if not self.datasets:
            return self
        own = self.section(dataset).model_dump(exclude_unset=True)
        given = self.model_dump(exclude_unset=True, exclude={"datasets"})
        if preset := own.get("preset"):  # in place of the run's, of which nothing shall show through
            given["preset"] = preset
            given.setdefault("objective", {}).pop("weights", None)
        if own.get("prompts") is not None:
            given["prompts"] = own["prompts"]
        if own.get("batch_size") is not None:
            given = merged(given, {"optim": {"batch_size": own["batch_size"]}})
        read = {name: own[name] for name in DataSettings.model_fields if own.get(name) is not None}
        return TrainSettings.model_validate(
            merged(given, {"data": given.get("data", {}) | read, "objective": own.get("objective", {})})
        )


def known_preset(name: str) -> str:
    """The name, where it is a preset's."""
    if name not in PRESETS:
        raise ValueError(f"expected one of {', '.join(PRESETS)}")
    return name


def merged(below: Tree, above: Tree) -> Tree:
    """`above` over `below`, section by section; a whole section that is no table replaces what is below."""
    result = {**below, **above}
    for key in below.keys() & above.keys():
        if isinstance(below[key], dict) and isinstance(above[key], dict):
            result[key] = merged(below[key], above[key])
    return result
