"""The interface that every judged model has, and where one is that is not here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server with OpenAI's `/embeddings`.

    Attributes:
        url: The address up to, but without, `/embeddings`.
        api_key_env: The environment variable with the key; None: OPENAI_API_KEY at OpenAI's own host, no key
            at any other.
        plain_http: Send the key in clear to another machine.
    """

    url: str
    api_key_env: str | None = None
    plain_http: bool = False


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def name(self) -> str:
        """As shown to people: a folder's name, a Hub id, a model's name at its endpoint."""
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
