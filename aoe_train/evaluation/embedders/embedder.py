"""The interface of every model that is judged, searched with or served, and an `Encoder` behind it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from aoe_train.model.run_folder import versions
from aoe_train.settings.prompts import NamedPrompts
from aoe_train.settings.training import Similarity
from pairkit.app.errors import ConfigError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from aoe_train.model.encoder import Encoder


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server with OpenAI's `/embeddings`."""

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
        """Vectors, float32 (text, dim), of texts with the model's default prompt or this one."""
        ...


class EmbedderWrapper:
    """Another embedder, known as it is; the base of those that change what it reads or gives."""

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.identity, self.separator = embedder.name, embedder.identity, embedder.separator
        self.prompts, self.similarity = embedder.prompts, embedder.similarity
        self._embedder = embedder


class PromptedEmbedder(EmbedderWrapper):
    """Another embedder whose texts have a prompt of its model's, or other words; see `Embedder`."""

    def __init__(self, embedder: Embedder, *, prompt: str | None, prompt_name: str | None) -> None:
        """Wrap it."""
        if prompt is not None and prompt_name is not None:
            raise ConfigError("--prompt and --prompt-name: give one of them")
        super().__init__(embedder)
        self._words = embedder.prompts.chosen(prompt=prompt, name=prompt_name)

    def encode(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
        """See `Embedder`."""
        return self._embedder.encode(texts, self._words if prompt is None else prompt)


class TokenCounts(NamedTuple):
    """Tokens of each text, at least 1, and how many texts were cut to the model's greatest length."""

    lengths: np.ndarray
    cut: int


@runtime_checkable
class TokenCounter(Protocol):
    """An embedder that knows its tokens."""

    def read(self, texts: list[str], prompt: str | None = None) -> TokenCounts:
        """How it reads texts with its default prompt, or with this one."""
        ...


def count_tokens(embedder: Embedder, texts: list[str], prompt: str | None = None) -> TokenCounts:
    """How a model reads texts; words count as tokens where it has none."""
    if isinstance(embedder, TokenCounter):
        return embedder.read(texts, prompt)
    return _by_words(texts)


def count_tokens_with(tokenizer: Any, longest: int | None, texts: list[str]) -> TokenCounts:
    """How sentence-transformers reads texts."""
    if hasattr(tokenizer, "encode_batch_fast"):
        found = [len(one.ids) for one in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
    elif callable(tokenizer):
        found = [len(ids) for ids in tokenizer(texts, truncation=False, verbose=False)["input_ids"]]
    else:
        return _by_words(texts)
    lengths = np.maximum(found, 1)
    if longest is None:
        return TokenCounts(lengths, 0)
    return TokenCounts(np.minimum(lengths, longest), int((lengths > longest).sum()))


def _by_words(texts: list[str]) -> TokenCounts:
    return TokenCounts(np.array([max(1, len(text.split())) for text in texts], np.int64), 0)


class LocalEmbedder:
    """An `Encoder` to be judged; see `Embedder`."""

    def __init__(self, encoder: Encoder, source: str) -> None:
        """Wrap it."""
        self._encoder = encoder
        self.name = shown_name(source)
        self.separator = find_separator(encoder.tokenizer)
        self.identity = _identity(encoder)
        self.device = encoder.device
        self.prompts = encoder.settings.named_prompts
        self.similarity = encoder.settings.similarity_fn_name

    def encode(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
        """Vectors, float32 (text, dim)."""
        return self._encoder.encode(texts, prompt=prompt)

    def read(self, texts: list[str], prompt: str | None = None) -> TokenCounts:
        """See `TokenCounter`; it may be asked in another thread than `encode`."""
        store = self._encoder.tokens(texts, self.prompts.chosen(prompt=prompt, name=None))
        return TokenCounts(store.lengths, store.truncated)


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
