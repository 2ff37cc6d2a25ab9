"""Sections of a run's settings: layers, rows, batches, optimiser, teachers, logs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, model_validator

from pairkit.base.settings import PathText, Settings, setting, split_at_commas
from pairkit.dataset.labels import LabelRange, LabelValues, OnBadRows

Conflicts = Literal["keep", "drop", "first", "error"]
Author = Literal["rules", "people"]


Precision = Literal["auto", "fp32", "bf16", "fp16"]

Names = Annotated[tuple[str, ...], BeforeValidator(split_at_commas)]
"""One name or several; on a command line separated by commas."""


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
    residual: bool = setting(
        False, "Add the input to the output, by a learned matrix if sizes differ."
    )


def dense_layers(value: object) -> object:
    """Turn sizes into layers; on a command line they are separated by commas."""
    layers = [value] if isinstance(value, int) else split_at_commas(value)
    if not isinstance(layers, list | tuple):
        return layers
    return [
        {"size": layer} if isinstance(layer, int | str) else layer for layer in layers
    ]


class LoraSettings(Settings):
    """Low-rank adaptation (LoRA): each adapted matrix W becomes W + (alpha / rank) B A; only A and B train.

    The defaults are the paper's for LLaMA2-7B on NLI.
    """

    rank: int = setting(32, "Rank of the adapters: the inner dimension of B A.", ge=1)
    alpha: int = setting(
        32, "Scale of the adapters' product B A, divided by the rank.", ge=1
    )
    dropout: float = setting(
        0.1, "Dropout probability on the inputs of the adapters.", ge=0, lt=1
    )
    targets: Literal["auto"] | Names = setting(
        "auto",
        'Names of the linear layers to adapt, such as `q_proj`; "auto" adapts all of the backbone\'s.',
    )
    four_bit: bool = setting(
        False,
        "Store the frozen weights in 4 bits (QLoRA); needs CUDA and bitsandbytes.",
    )


def lora_or_none(value: object) -> object:
    """Turn true into default settings and false into None."""
    if isinstance(value, bool):
        return {} if value else None
    return value


class DataSettings(Settings):
    """How to read labels and handle unusable rows, in training and held-out data."""

    labels: LabelValues | None = setting(
        None,
        'Number for each label in the data, or "skip": {entailment = 1, neutral = "skip"}. Default: '
        "recognised by value.",
    )
    label_range: LabelRange | None = setting(
        None,
        "Lowest and highest score, which become 0 and 1. Default: 0 to 1 or 0 to 5, as recognised.",
    )
    bad_rows: OnBadRows = setting(
        "error", "What to do with rows that lack a text or label: error or skip."
    )
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
    dev: str | None = setting(
        None, "The dev set that chooses the best weights. Default: the mean of all."
    )

    @property
    def until(self) -> Literal["once", "shortest", "longest"]:
        """The condition that ends an epoch."""
        return self.epoch or ("longest" if self.order == "proportional" else "shortest")

    @model_validator(mode="after")
    def _check_temperature(self) -> MixSettings:
        is_used = self.order == "proportional" and self.until != "once"
        if self.temperature != 1 and not is_used:
            raise ValueError(
                f"mix.temperature = {self.temperature:g}: has no effect in round-robin, or if each row is"
                " seen once an epoch; leave it out, or set order = proportional and epoch = longest"
            )
        return self


class BatchSettings(Settings):
    """How rows are grouped into batches."""

    strategy: Literal["shuffle", "length", "tokens"] = setting(
        "length",
        "How rows are chosen for a batch: shuffle (random), length (similar lengths) or tokens (as many as "
        "fit into max_tokens).",
    )
    max_tokens: int | None = setting(
        None,
        "Maximum number of tokens in a batch of all processes; only for the strategy tokens.",
        ge=1,
    )

    @model_validator(mode="after")
    def _check_strategy(self) -> BatchSettings:
        if (self.strategy == "tokens") != (self.max_tokens is not None):
            raise ValueError(
                f"strategy {self.strategy} with max_tokens {self.max_tokens}: the strategy tokens needs"
                " max_tokens, and only it uses max_tokens"
            )
        return self


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
        1,
        "Number of batches per optimiser step; rows are only compared within their batch.",
        ge=1,
    )
    lr: float = setting(
        5e-5,
        "Peak learning rate. Default: by rows and backbone; {default} with presets that end in -paper.",
        gt=0,
    )
    scheduler: str = setting(
        "linear", "Learning rate schedule by its name in transformers, such as cosine."
    )
    warmup: float = setting(
        0.1,
        "Warm-up of the learning rate: share of the steps, or a number of steps if 1 or more.",
        ge=0,
    )
    weight_decay: float = setting(0.0, "Weight decay of AdamW.", ge=0)
    max_grad_norm: float = setting(
        1.0, "Clip gradients to this norm; 0: no clipping.", ge=0
    )
    average: float = setting(
        0.0,
        "Average the weights over this last share of the run; 0: take the last weights.",
        ge=0,
        le=1,
    )
    top_layers: int | None = setting(
        None,
        "Train the last N layers only and freeze the rest. Default: all layers.",
        ge=1,
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
        "Precision of training: fp32, bf16, fp16 or auto. auto is bf16 on a GPU that supports it, else fp32. "
        "A processor without bf16 computes in fp32 instead.",
    )
    packing: bool = setting(
        True,
        "Pack texts without padding if the backbone's attention allows it; false: pad.",
    )
    graphs: bool = setting(
        False,
        "On a GPU, run steps as CUDA graphs if the run allows it; needs more memory, and was not run on a "
        "GPU yet.",
    )
    compile: bool = setting(
        False, "Use torch.compile; worthwhile for long runs on a GPU."
    )
    chunk: int | None = setting(
        None,
        "Maximum number of texts to embed at once, for batches larger than memory.",
        ge=1,
    )
    shard: bool = setting(
        False, "Shard weights, gradients and optimiser state over the processes (FSDP)."
    )
    gradient_checkpointing: bool = setting(
        False, "Recompute layers in the backward pass to save memory."
    )
    deterministic: bool = setting(
        False, "Use only deterministic kernels; slower on a GPU, no effect on a CPU."
    )
    trainer: dict[str, Any] = setting(
        {}, "Additional TrainingArguments of transformers, such as optim."
    )


class LogSettings(Settings):
    """Logs and checkpoints of a run; no effect on the result."""

    steps: int = setting(10, "Number of steps between log entries.", ge=1)
    report_to: Names = setting(
        (), "Services that also receive the log, such as tensorboard or wandb."
    )
    checkpoint_minutes: float = setting(5.0, "Minutes between checkpoints.", ge=0)
    checkpoint_steps: int | None = setting(
        None, "Steps between checkpoints, instead of minutes.", ge=1
    )
    training_texts: bool = setting(
        True,
        "Store hashes of training texts and pairs, so that `aoe evaluate` can find overlaps.",
    )


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
    neighbours: int | None = setting(
        None,
        "Number of mutual nearest neighbours that are averaged. Default: by number of texts.",
        ge=1,
    )
    lexical_weight: float | None = setting(
        None,
        "Weight of lexical similarity (TF-IDF), 0 to 1. Default: by `purpose`.",
        ge=0,
        lt=1,
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
        (),
        "Languages of the texts, such as en. Default: detected in the training texts by py3langid.",
    )
    base_model: str | None = setting(
        None, "Hub id of the backbone, if it is a local folder."
    )
