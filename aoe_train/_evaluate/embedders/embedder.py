"""The interface that every judged model has, and where one is that is not here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from aoe_train._prompts import NamedPrompts
from aoe_train._settings import Similarity
from pairkit.errors import ConfigError


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

    @property
    def prompts(self) -> NamedPrompts:
        """The prompts that the model knows."""
        ...

    @property
    def similarity(self) -> Similarity:
        """What its vectors are compared by."""
        ...

    def encode(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
        """Vectors, float32 (text, dim), of texts with the model's default prompt or this one.

        Raises:
            RemoteError: An endpoint could not be asked.
        """
        ...


class Around:
    """Another embedder, known as it is; the base of those that change what it reads or gives."""

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.identity, self.separator = embedder.name, embedder.identity, embedder.separator
        self.prompts, self.similarity = embedder.prompts, embedder.similarity
        self._embedder = embedder


class Prompted(Around):
    """Another embedder whose texts have a prompt of its model's, or other words; see `Embedder`."""

    def __init__(self, embedder: Embedder, *, prompt: str | None, prompt_name: str | None) -> None:
        """Wrap it.

        Args:
            embedder: Makes the vectors.
            prompt: The words.
            prompt_name: The name of the prompt, instead.

        Raises:
            ConfigError: Both, or no such prompt.
        """
        if prompt is not None and prompt_name is not None:
            raise ConfigError("--prompt and --prompt-name: give one of them")
        super().__init__(embedder)
        self._words = embedder.prompts.chosen(prompt=prompt, name=prompt_name)

    def encode(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
        """See `Embedder`."""
        return self._embedder.encode(texts, self._words if prompt is None else prompt)
