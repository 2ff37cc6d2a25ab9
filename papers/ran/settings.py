"""The settings of a pre-training run."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from pairkit.app.settings import Settings


class RanSizes(Settings):
    """The sizes of a RAN; the defaults are those of the base model, 87M parameters."""

    dim: int = Field(default=768, ge=2)  # numbers of a token's vector
    layers: int = Field(default=4, ge=1)  # RAN layers
    heads: int = Field(default=12, ge=1)  # attention heads
    head_dim: int = Field(default=256, ge=2, multiple_of=2)  # numbers of a head
    window: int = Field(default=256, ge=16)  # tokens that attend to one another
    dropout: float = Field(default=0.1, ge=0, lt=1)  # share of activations that is zeroed


class MaskSettings(Settings):
    """Which tokens are predicted, in whole words, and what the model sees in their place."""

    share: float = Field(default=0.15, gt=0, lt=1)  # share of a sequence's tokens that is predicted
    masked: float = Field(default=0.8, ge=0, le=1)  # share of those that is shown as [MASK]
    # share of those that is shown as any token; the rest is shown as it is
    random: float = Field(default=0.1, ge=0, le=1)

    @model_validator(mode="after")
    def _no_more_than_all(self) -> MaskSettings:
        if self.masked + self.random > 1:
            raise ValueError(f"masked {self.masked} and random {self.random} are more than all")
        return self


class PretrainSettings(Settings):
    """A run of masked language modelling; the defaults are the published recipe of RAN.

    The vocabulary comes from `tokenizer`, else from `init_from`.
    """

    texts: tuple[Path, ...] = Field(
        min_length=1
    )  # one text per line (.txt, .gz), or tables with a text column
    out: Path  # the model's folder
    column: str = "text"  # the column of tables that holds the text
    tokenizer: Path | None = None  # a tokenizer's folder, or a WordPiece vocab.txt
    lowercase: bool = True  # whether a vocab.txt is of lower-cased words
    init_from: Path | None = None  # an encoder's folder, to begin with its token embeddings
    sizes: RanSizes = RanSizes()
    mask: MaskSettings = MaskSettings()
    length: int = Field(default=512, ge=8)  # tokens of a sequence
    text_length: int = Field(default=3000, ge=8)  # tokens read of a text
    epochs: float = Field(default=1.0, gt=0)  # times that each text is seen
    steps: int | None = Field(default=None, ge=1)  # optimiser steps, instead of epochs
    batch_size: int = Field(default=32, ge=1)  # sequences of each process
    accumulation: int = Field(default=1, ge=1)  # batches of a step
    lr: float = Field(default=1e-3, gt=0)  # the highest learning rate
    weight_decay: float = Field(default=0.01, ge=0)  # of AdamW
    # steps in which the learning rate rises, or a share of the steps below 1
    warmup: float = Field(default=3000, ge=0)
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"  # auto: bf16 on a GPU that has it, else fp32
    gradient_checkpointing: bool = False  # recompute each window in the backward pass instead of keeping it
    log_steps: int = Field(default=10, ge=1)  # steps between entries
    checkpoint_steps: int = Field(default=500, ge=1)  # steps between checkpoints
    seed: int = Field(default=42, ge=0, lt=2**32)  # decides every random choice
    fresh: bool = False  # begin anew, and replace what stands at `out`

    @model_validator(mode="after")
    def _some_vocabulary(self) -> PretrainSettings:
        if self.tokenizer is None and self.init_from is None:
            raise ValueError(
                "expected `tokenizer` (a folder or a vocab.txt) or `init_from` (an encoder's folder)"
            )
        return self
