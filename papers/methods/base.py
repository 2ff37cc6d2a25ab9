"""The base class of the methods, and helpers that several of them use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from aoe_train import TextObjective
from pairkit.base.errors import ConfigError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

    from aoe_train import Encoder, TextBatch

Encode = Callable[[list[str]], np.ndarray]
IGNORED = -100  # label that `cross_entropy` skips


class Method(TextObjective):
    """A training objective on texts; `reader` may replace the encoder's vectors."""

    lr: ClassVar[float]
    """The paper's learning rate."""
    kinds: ClassVar[tuple[str, ...]] = ("single",)
    """The kinds of rows that it accepts."""
    encoder: ClassVar[dict[str, Any]] = {}
    """Encoder settings that it needs."""

    def begin(self, encoder: Encoder, kind: str) -> None:
        """See `TextObjective`."""
        del encoder
        if kind not in self.kinds:
            raise ConfigError(
                f"{type(self).__name__}: found {kind} rows, expected {' or '.join(self.kinds)} rows"
            )

    def reader(self, encoder: Encoder, folder: Path | None) -> Encode:
        """The function that encodes texts, with the weights that `save` wrote to `folder`."""
        del folder
        return encoder.encode


def in_batches(encoder: Encoder, vectors_of: Callable[[TextBatch], Tensor]) -> Encode:
    """A function that encodes texts with `vectors_of` their tokens, batch by batch."""

    @torch.inference_mode()
    def encode(texts: list[str]) -> np.ndarray:
        vectors = np.empty((len(texts), encoder.model.token_dim), np.float32)
        for rows, batch in encoder.token_batches(texts):
            vectors[rows] = vectors_of(batch).float().cpu().numpy()
        return vectors

    return encode


class OrdinaryTokens:
    """Masks the special tokens of texts that have no prompt."""

    def __init__(self, encoder: Encoder) -> None:
        if encoder.settings.prompts:
            raise ConfigError(
                "prompts: this method changes the tokens of texts; remove the prompts"
            )
        self._special = torch.tensor(sorted(encoder.tokenizer.all_special_ids))

    def mask(self, batch: TextBatch) -> Bool[Tensor, " token"]:
        """True for each ordinary token; on the CPU."""
        return ~torch.isin(batch.input_ids.cpu(), self._special)


def text_of_token(batch: TextBatch) -> Int[Tensor, " token"]:
    """The index of each token's text; on the CPU."""
    texts = np.arange(len(batch.lengths))
    return torch.from_numpy(np.repeat(texts, batch.lengths))


def info_nce(
    first: Float[Tensor, "text dim"], second: Float[Tensor, "text dim"], tau: float
) -> Float[Tensor, ""]:
    """InfoNCE of normalised vectors: each first vector has to find its own text among the second ones."""
    similarities = first @ second.T / tau
    own = torch.arange(len(first), device=first.device)
    return cross_entropy(similarities, own)
