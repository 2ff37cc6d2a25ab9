"""The interface that every judged model has."""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def name(self) -> str:
        """As shown to people: a folder's name, a hub id, a model's name at its endpoint."""
        ...

    @property
    def identity(self) -> str:
        """A digest of all that the vectors depend on; equal identities give equal vectors."""
        ...

    @property
    def separator(self) -> str:
        """Put between two texts that shall be read as one input, such as " [SEP] "."""
        ...

    def encode(self, texts: list[str]) -> np.ndarray:
        """Vectors, float32 (text, dim).

        Raises:
            RemoteError: An endpoint could not be asked.
        """
        ...
