"""The settings of a pre-training run."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from pairkit.base.settings import Settings


class RanSizes(Settings):
    """The sizes of a RAN; the defaults are those of the base model with 87M parameters."""

    dim: int = Field(default=768, ge=2)  # dimension of token vectors
    layers: int = Field(default=4, ge=1)
    heads: int = Field(default=12, ge=1)
    head_dim: int = Field(default=256, ge=2, multiple_of=2)
    window: int = Field(default=256, ge=16)  # tokens that attend to each other
    dropout: float = Field(default=0.1, ge=0, lt=1)


class MaskSettings(Settings):
    """Whole-word masking."""

    share: float = Field(default=0.15, gt=0, lt=1)  # share of tokens to predict
    masked: float = Field(default=0.8, ge=0, le=1)  # share of these that becomes [MASK]
    random: float = Field(default=0.1, ge=0, le=1)  # share of these that becomes a random token

    @model_validator(mode="after")
    def _at_most_one(self) -> MaskSettings:
        if self.masked + self.random > 1:
            raise ValueError(f"masked + random is {self.masked + self.random:g}, expected at most 1")
        return self


class PretrainSettings(Settings):
    """Masked language modelling; the defaults are the published recipe of RAN.

    The vocabulary comes from `tokenizer`, else from `init_from`.
    """

    texts: tuple[Path, ...] = Field(min_length=1)  # one text per line (.txt, .gz), or tables
    out: Path  # model folder
    column: str = "text"  # text column of tables
    tokenizer: Path | None = None  # tokenizer folder or WordPiece vocab.txt
    lowercase: bool = True  # whether the words of vocab.txt are lower-case
    init_from: Path | None = None  # folder of an encoder whose token embeddings to start from
    sizes: RanSizes = RanSizes()
    mask: MaskSettings = MaskSettings()
    length: int = Field(default=512, ge=8)  # maximum tokens of a sequence
    text_length: int = Field(default=3000, ge=8)  # maximum tokens of a text
    epochs: float = Field(default=1.0, gt=0)
    steps: int | None = Field(default=None, ge=1)  # optimiser steps, instead of epochs
    batch_size: int = Field(default=32, ge=1)  # sequences per process
    accumulation: int = Field(default=1, ge=1)  # batches per step
    lr: float = Field(default=1e-3, gt=0)  # maximum learning rate
    weight_decay: float = Field(default=0.01, ge=0)
    warmup: float = Field(default=3000, ge=0)  # steps, or a share of all steps if below 1
    precision: Literal["auto", "fp32", "bf16", "fp16"] = (
        "auto"  # auto: bf16 if the GPU supports it, else fp32
    )
    gradient_checkpointing: bool = False  # recompute each window in the backward pass to save memory
    log_steps: int = Field(default=10, ge=1)
    checkpoint_steps: int = Field(default=500, ge=1)
    seed: int = Field(default=42, ge=0, lt=2**32)
    fresh: bool = False  # discard an earlier run and replace `out`

    @model_validator(mode="after")
    def _has_vocabulary(self) -> PretrainSettings:
        if self.tokenizer is None and self.init_from is None:
            raise ValueError(
                "expected `tokenizer` (a folder or a vocab.txt) or `init_from` (an encoder's folder)"
            )
        return self
