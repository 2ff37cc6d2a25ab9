"""What all methods share that the papers compare with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from aoe_train import TextObjective
from pairkit.app.errors import ConfigError

if TYPE_CHECKING:
    from aoe_train import Encoder, TextBatch

Encode = Callable[[list[str]], np.ndarray]


class Method(TextObjective):
    """A way to train, and perhaps to read vectors."""

    lr: ClassVar[float]
    """The paper's learning rate."""
    kinds: ClassVar[tuple[str, ...]] = ("single",)
    """Rows that it learns from."""
    encoder: ClassVar[dict[str, Any]] = {}
    """Settings of the encoder."""

    def begin(self, encoder: Encoder, kind: str) -> None:
        """See `TextObjective`."""
        del encoder
        if kind not in self.kinds:
            raise ConfigError(
                f"{type(self).__name__}: found {kind} rows, expected {' or '.join(self.kinds)} ones"
            )

    def reader(self, encoder: Encoder, folder: Path | None) -> Encode:
        """A function from texts to the method's vectors, by a model and what `save` wrote beside it."""
        del folder
        return encoder.encode


class OwnTokens:
    """Finds the tokens of a text itself, all but special ones; texts must have no prompt."""

    def __init__(self, encoder: Encoder) -> None:
        if encoder.settings.prompts:
            raise ConfigError("prompts: this method changes the tokens of texts; leave prompts out")
        self._special = torch.tensor(sorted(encoder.tokenizer.all_special_ids))

    def of(self, batch: TextBatch) -> torch.Tensor:
        """Whether each token is one, on the CPU."""
        return ~torch.isin(batch.input_ids.cpu(), self._special)
