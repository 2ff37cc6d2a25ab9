"""A sentence-transformers module for models that its own modules can't run, such as RAN.

A folder's `modules.json` refers to it, so `SentenceTransformer(folder, trust_remote_code=True)` imports it if
aoe-toolkit is installed. sentence-transformers requires that flag for modules of other packages.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sentence_transformers.sentence_transformer.modules import InputModule

from aoe_train.model.encoder import Encoder

if TYPE_CHECKING:
    from torch import Tensor


class ToolkitEncoder(InputModule):
    """Tokenizer, backbone and pooling of a model folder as one sentence-transformers module."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._encoder = encoder
        self.model = encoder.model
        self.tokenizer = encoder.tokenizer

    @classmethod
    def load(  # type: ignore[override]  # sentence-transformers passes its arguments by name
        cls, model_name_or_path: str, *, revision: str | None = None, **_: object
    ) -> ToolkitEncoder:
        """Load a model folder or a Hub id; sentence-transformers moves it to a device."""
        encoder = Encoder.load(
            model_name_or_path,
            revision=revision,
            device="cpu",
            precision="fp32",
        )
        return cls(encoder)

    def preprocess(
        self,
        inputs: Sequence[object],
        prompt: str | None = None,
        **_: object,
    ) -> dict[str, object]:
        """Tokenise `inputs` with a prompt; see `training_rows.TokenBatch`."""
        texts = [str(text) for text in inputs]
        store = self._encoder.tokens(texts, prompt or "")
        return dict(store.batch(np.arange(len(store))))

    def forward(self, features: dict[str, object], **_: object) -> dict[str, Tensor]:
        """Add `sentence_embedding` to the packed tokens."""
        vectors = self.model(
            features["input_ids"],
            features["lengths"],
            features.get("prompt_lengths"),
        )
        return {**features, "sentence_embedding": vectors}

    @property
    def max_seq_length(self) -> int | None:
        """Maximum tokens of a text."""
        return self._encoder.settings.max_length

    def get_embedding_dimension(self) -> int:
        """Dimensions of a vector."""
        return self.model.dim

    def save(self, output_path: str, *_: object, **__: object) -> None:
        """Write the model folder; sentence-transformers adds its own files afterwards."""
        self._encoder.save(Path(output_path))
