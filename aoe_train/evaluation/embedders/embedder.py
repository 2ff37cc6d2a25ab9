"""The interface of every model that is judged, searched with or served, and what implements it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from aoe_train.model.quantization import Quantize, bytes_of, checked_dim, quantized, restored, value_ranges
from aoe_train.model.run_folder import versions
from aoe_train.model.similarity import scaled_to_one
from aoe_train.settings.prompts import NamedPrompts, written_out
from aoe_train.settings.training import Similarity
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.printable import one_line

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from aoe_train.model.encoder import Encoder

Function = Callable[[list[str]], Any]
"""From a list of texts to an array (text, dim)."""
_ROUNDING = 1e-2  # bf16 leaves a length of 1 so far off


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server with OpenAI's `/embeddings`."""

    url: str
    api_key_env: str | None = None
    plain_http: bool = False


class Embedder(Protocol):
    """Turns texts into vectors."""

    name: str  # as shown to people: a folder's name, a Hub id, a model's name at its endpoint
    identity: str  # a digest of all that the vectors depend on; equal identities give equal vectors
    separator: str  # put between two texts that shall be read as one input, such as " [SEP] "
    prompts: NamedPrompts  # those that the model knows
    similarity: Similarity  # what its vectors are compared by

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


def count_tokens(embedder: Embedder, texts: list[str], prompt: str | None = None) -> np.ndarray:
    """Tokens of each text with a prompt, as far as the model reads it; words, if it has no `token_counts`."""
    if hasattr(embedder, "token_counts"):
        return np.asarray(embedder.token_counts(texts, prompt))
    return np.array([max(1, len(text.split())) for text in texts], np.int64)


def in_batches(texts: Iterable[str], most_texts: int, most_characters: int) -> Iterator[list[str]]:
    """Batches within both limits; a text over `most_characters` is a batch of its own."""
    batch, characters = list[str](), 0
    for text in texts:
        if batch and (len(batch) == most_texts or characters + len(text) > most_characters):
            yield batch
            batch, characters = [], 0
        batch.append(text)
        characters += len(text)
    if batch:
        yield batch


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

    def token_counts(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
        """Tokens of each text; it may be called in another thread than `encode`."""
        return self._encoder.tokens(texts, self.prompts.chosen(prompt=prompt, name=None)).lengths


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


class FunctionEmbedder:
    """A function to be judged; see `Embedder`. Its vectors are not kept on disk, as nothing identifies it."""

    separator = "\n"
    prompts = NamedPrompts({})
    similarity: Similarity = "cosine"
    identity = ""

    def __init__(self, function: Function) -> None:
        self.name: str = getattr(function, "__name__", type(function).__name__)
        self._function = function

    def encode(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
        """Vectors, float32 (text, dim); a prompt is given as part of the texts."""
        given = [written_out(prompt, text) for text in texts] if prompt else list(texts)
        try:
            found = np.asarray(self._function(given), np.float32)
        except (TypeError, ValueError) as error:
            raise DataError(f"{self.name}: {one_line(str(error), 200)}") from error
        if found.ndim != 2 or len(found) != len(texts) or not np.isfinite(found).all():
            raise DataError(
                f"{self.name}: gave an array of shape {found.shape} for {len(texts)} texts; expected a row of"
                " finite numbers for each"
            )
        return found


@dataclass(frozen=True, slots=True)
class VectorSize:
    """Layers, size and precision of a model's vectors."""

    model: str
    dim: int
    quantize: Quantize
    layers: int | None = None

    @property
    def bytes(self) -> int:
        """Of a vector."""
        return bytes_of(self.dim, self.quantize)


class MemoizedEmbedder(EmbedderWrapper):
    """Another embedder that remembers its last texts; see `Embedder`."""

    def __init__(self, embedder: Embedder, name: str) -> None:
        super().__init__(embedder)
        self.name = name
        self._asked: tuple[list[str], str | None] | None = None
        self._vectors = np.empty((0, 0), np.float32)

    def encode(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
        """See `Embedder`; the array is the same in each call."""
        if self._asked != (texts, prompt):
            self._vectors = self._embedder.encode(texts, prompt)
            self._asked = texts, prompt
        return self._vectors


class QuantizedEmbedder(EmbedderWrapper):
    """Another embedder's vectors, cut and quantised, as what their codes stand for; see `Embedder`.

    They are made as `aoe encode --dim --quantize` makes them, with the ranges of all texts that are asked for
    at once. Vectors that have length 1 have it again once they are cut.
    """

    def __init__(
        self, embedder: Embedder, dim: int | None, quantize: Quantize, layers: int | None = None
    ) -> None:
        """Wrap it."""
        super().__init__(embedder)
        self._dim, self._quantize, self._layers = dim, quantize, layers

    def size(self) -> VectorSize:
        """Once something was encoded."""
        return VectorSize(self.name, self._dim or 0, self._quantize, self._layers)

    def encode(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
        """See `Embedder`."""
        whole = self._embedder.encode(texts, prompt)
        self._dim = checked_dim(self._dim, whole.shape[1])
        vectors = cut_to(whole, self._dim)
        ranges = value_ranges([vectors]) if self._quantize == "int8" else None
        return restored(quantized(vectors, self._quantize, ranges), self._quantize, self._dim, ranges)


def in_sizes(
    embedder: Embedder,
    name: str,
    dims: Sequence[int | None],
    quantize: Sequence[Quantize],
    layers: int | None = None,
) -> dict[str, QuantizedEmbedder]:
    """A model at all sizes and precisions, by a key for each; every text is encoded once."""
    depth = [] if layers is None else [f"{layers} layer{'' if layers == 1 else 's'}"]
    once = MemoizedEmbedder(embedder, name)
    return {
        ", ".join([name, *depth, *([str(dim)] if dim else []), how]): QuantizedEmbedder(
            once, dim, how, layers
        )
        for dim in dims
        for how in quantize
    }


def check_sizes(
    dims: Sequence[int | None], quantize: Sequence[Quantize], layers: Sequence[int | None] = ()
) -> None:
    """Refuse a size that is asked for twice."""
    for flag, given in (("--dim", dims), ("--quantize", quantize), ("--layers", layers)):
        if len(set(given)) < len(given):
            raise ConfigError(f"{flag}: one is given twice among {', '.join(map(str, given))}")


def cut_to(whole: np.ndarray, dim: int) -> np.ndarray:
    """The first numbers of vectors (text, dim), of length 1 where these had it."""
    if dim == whole.shape[1]:
        return whole
    vectors = np.ascontiguousarray(whole[:, :dim])
    if np.abs(np.linalg.norm(whole, axis=1) - 1).max(initial=0) > _ROUNDING:
        return vectors
    return scaled_to_one(vectors)
