"""How a large backbone is trained with few weights."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pairkit.config import Settings


class LoraSettings(Settings):
    """Low-rank adaptation (LoRA): each adapted matrix W becomes W + (alpha / rank) B A; only A and B learn.

    The defaults are the paper's for LLaMA2-7B on NLI.

    Attributes:
        rank: Inner size of B A.
        alpha: What the product is scaled by, times 1 / rank.
        dropout: Share of the inputs of A that is zeroed in training.
        targets: Names of the linear layers to adapt, such as `q_proj`; "auto" adapts all of the backbone's.
        four_bit: Keep the frozen weights in 4 bits (QLoRA); needs CUDA and bitsandbytes.
    """

    rank: int = Field(32, ge=1)
    alpha: int = Field(32, ge=1)
    dropout: float = Field(0.1, ge=0, lt=1)
    targets: Literal["auto"] | tuple[str, ...] = "auto"
    four_bit: bool = False
