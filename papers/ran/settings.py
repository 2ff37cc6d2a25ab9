"""The settings of a pre-training run."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from pairkit.base.settings import Settings, setting


class RanSizes(Settings):
    """The sizes of a RAN; the defaults are those of the base model with 87M parameters."""

    dim: int = setting(768, "Dimension of token vectors.", ge=2)
    layers: int = Field(default=4, ge=1)
    heads: int = Field(default=12, ge=1)
    head_dim: int = Field(default=256, ge=2, multiple_of=2)
    window: int = setting(256, "Tokens that attend to each other.", ge=16)
    dropout: float = Field(default=0.1, ge=0, lt=1)


class MaskSettings(Settings):
    """Whole-word masking."""

    share: float = setting(0.15, "Share of tokens to predict.", gt=0, lt=1)
    masked: float = setting(0.8, "Share of these that becomes [MASK].", ge=0, le=1)
    random: float = setting(
        0.1, "Share of these that becomes a random token.", ge=0, le=1
    )

    @model_validator(mode="after")
    def _at_most_one(self) -> MaskSettings:
        if self.masked + self.random > 1:
            raise ValueError(
                f"masked + random is {self.masked + self.random:g}, expected at most 1"
            )
        return self


class PretrainSettings(Settings):
    """Masked language modelling; the defaults are the published recipe of RAN.

    The vocabulary comes from `tokenizer`, else from `init_from`.
    """

    texts: tuple[Path, ...] = setting(
        ..., "One text per line (.txt, .gz), or tables.", min_length=1
    )
    out: Path = setting(..., "Model folder.")
    column: str = setting("text", "Text column of tables.")
    tokenizer: Path | None = setting(None, "Tokenizer folder or WordPiece vocab.txt.")
    lowercase: bool = setting(True, "Whether the words of vocab.txt are lower-case.")
    init_from: Path | None = setting(
        None, "Folder of an encoder whose token embeddings to start from."
    )
    sizes: RanSizes = RanSizes()
    mask: MaskSettings = MaskSettings()
    length: int = setting(512, "Maximum tokens of a sequence.", ge=8)
    text_length: int = setting(3000, "Maximum tokens of a text.", ge=8)
    epochs: float = Field(default=1.0, gt=0)
    steps: int | None = setting(None, "Optimiser steps, instead of epochs.", ge=1)
    batch_size: int = setting(32, "Sequences per process.", ge=1)
    accumulation: int = setting(1, "Batches per step.", ge=1)
    lr: float = setting(1e-3, "Maximum learning rate.", gt=0)
    weight_decay: float = Field(default=0.01, ge=0)
    warmup: float = setting(3000, "steps, or a share of all steps if below 1.", ge=0)
    precision: Literal["auto", "fp32", "bf16", "fp16"] = setting(
        "auto", "auto: bf16 if the GPU supports it, else fp32."
    )
    gradient_checkpointing: bool = setting(
        False, "Recompute each window in the backward pass to save memory."
    )
    log_steps: int = Field(default=10, ge=1)
    checkpoint_steps: int = Field(default=500, ge=1)
    seed: int = Field(default=42, ge=0, lt=2**32)
    fresh: bool = setting(False, "Discard an earlier run and replace `out`.")

    @model_validator(mode="after")
    def _has_vocabulary(self) -> PretrainSettings:
        if self.tokenizer is None and self.init_from is None:
            raise ValueError(
                "expected `tokenizer` (a folder or a vocab.txt) or `init_from` (an encoder's folder)"
            )
        return self
