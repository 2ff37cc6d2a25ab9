"""The settings of a pre-training run."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, model_validator

from aoe_train._settings import Precision
from pairkit.config import Settings


class RanSizes(Settings):
    """The sizes of a RAN; the defaults are those of the base model, 87M parameters."""

    dim: int = Field(default=768, ge=2)
    layers: int = Field(default=4, ge=1)
    heads: int = Field(default=12, ge=1)
    head_dim: int = Field(default=256, ge=2, multiple_of=2)
    window: int = Field(default=256, ge=16)  # tokens that attend to one another
    dropout: float = Field(default=0.1, ge=0, lt=1)


class MaskSettings(Settings):
    """Which tokens are predicted, in whole words, and what the model sees in their place."""

    share: float = Field(default=0.15, gt=0, lt=1)  # of a sequence's tokens
    masked: float = Field(default=0.8, ge=0, le=1)  # of those, shown as [MASK]
    random: float = Field(default=0.1, ge=0, le=1)  # shown as any token; the rest is shown as it is

    @model_validator(mode="after")
    def _no_more_than_all(self) -> MaskSettings:
        if self.masked + self.random > 1:
            raise ValueError(f"masked {self.masked} and random {self.random} are more than all")
        return self


class PretrainSettings(Settings):
    """A run of masked language modelling; the defaults are the published recipe of RAN.

    The vocabulary comes from `tokenizer`, else from `init_from`.
    """

    texts: tuple[Path, ...] = Field(min_length=1)  # one text a line (.txt, .gz), or tables with a text column
    out: Path
    column: str = "text"  # of tables
    tokenizer: Path | None = None  # a tokenizer's folder, or a WordPiece vocab.txt
    lowercase: bool = True  # of a vocab.txt
    init_from: Path | None = None  # an encoder's folder, whose token embeddings to begin with
    sizes: RanSizes = RanSizes()
    mask: MaskSettings = MaskSettings()
    length: int = Field(default=512, ge=8)  # tokens of a sequence
    text_length: int = Field(default=3000, ge=8)  # tokens read of a text
    epochs: float = Field(default=1.0, gt=0)
    steps: int | None = Field(default=None, ge=1)  # instead of epochs
    batch_size: int = Field(default=32, ge=1)  # sequences a process
    accumulation: int = Field(default=1, ge=1)
    lr: float = Field(default=1e-3, gt=0)
    weight_decay: float = Field(default=0.01, ge=0)
    warmup: float = Field(default=3000, ge=0)  # so many steps, or a share of them below 1
    precision: Precision = "auto"
    gradient_checkpointing: bool = False  # recompute each window in the backward pass instead of keeping it
    log_steps: int = Field(default=10, ge=1)
    checkpoint_steps: int = Field(default=500, ge=1)
    seed: int = Field(default=42, ge=0, lt=2**32)
    fresh: bool = False  # begin anew, and replace what stands at `out`

    @model_validator(mode="after")
    def _some_vocabulary(self) -> PretrainSettings:
        if self.tokenizer is None and self.init_from is None:
            raise ValueError(
                "expected `tokenizer` (a folder or a vocab.txt) or `init_from` (an encoder's folder)"
            )
        return self
