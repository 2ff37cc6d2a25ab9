"""A model that this package runs itself."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from aoe_train._evaluate.embedders.reading import Read
from aoe_train._origin import versions

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from aoe_train._encoder import Encoder


class LocalEmbedder:
    """An `Encoder` to be judged; see `Embedder`."""

    def __init__(self, encoder: Encoder, source: str) -> None:
        """Wrap it.

        Args:
            encoder: The model.
            source: Where it was loaded from.
        """
        self._encoder = encoder
        self.name = shown_name(source)
        self.separator = find_separator(encoder.tokenizer)
        self.identity = _identity(encoder)
        self.device = encoder.device
        self.prompts = encoder.settings.named_prompts
        self.similarity = encoder.settings.similarity_fn_name

    def encode(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
        """Vectors, float32 (text, dim).

        Raises:
            DataError: See `Encoder.encode`.
        """
        return self._encoder.encode(texts, prompt=prompt)

    def read(self, texts: list[str], prompt: str | None = None) -> Read:
        """See `Reading`; it may be asked in another thread than `encode`.

        Raises:
            DataError, ConfigError: See `Encoder.tokens`.
        """
        store = self._encoder.tokens(texts, self.prompts.chosen(prompt=prompt, name=None))
        return Read(store.lengths, store.truncated)


def shown_name(source: str) -> str:
    """A folder's own name, else the source as it is: where folders lie is this machine's business."""
    return Path(source).resolve().name if Path(source).is_dir() else source


def find_separator(tokenizer: PreTrainedTokenizerBase) -> str:
    """What the tokenizer puts between two texts, else what ends a text, else a line's end."""
    mark = tokenizer.sep_token or tokenizer.eos_token
    return f" {mark} " if mark else "\n"


def _identity(encoder: Encoder) -> str:
    parts = {**encoder.identity(), "versions": versions()}
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
