"""The interface of every model that is evaluated, searched with or served, and its implementations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy import ndarray

from aoe_train.model.quantization import (
    DTYPES,
    Quantize,
    checked_dim,
    quantized,
    restored,
    value_ranges,
    width_of,
)
from aoe_train.model.run_folder import digest_of, versions
from aoe_train.model.similarity import scaled_to_one
from aoe_train.settings.train_settings import (
    NamedPrompts,
    Similarity,
    named_precision,
    written_out,
)
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line
from pairkit.base.system.folders import base_name

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder

Function = Callable[[list[str]], Any]
"""Maps a list of texts to an array (text, dim)."""
_ROUNDING = 1e-2  # rounding error of a length of 1 in bf16


@dataclass(frozen=True)
class Endpoint:
    """A server with OpenAI's `/embeddings`."""

    url: str
    api_key_env: str | None = None
    plain_http: bool = False


class Embedder(Protocol):
    """Turns texts into vectors."""

    # For people: a folder's name, a Hub id, or a model's name at its endpoint.
    name: str
    # A hash of everything that the vectors depend on; empty if unknown.
    identity: str
    # Between two texts of one input, such as " [SEP] ".
    separator: str
    prompts: NamedPrompts
    # The measure by which its vectors are compared.
    similarity: Similarity

    def encode(self, texts: list[str], prompt: str | None = None) -> ndarray:
        """Vectors, float32 (text, dim), of texts with this prompt, or the model's default prompt."""
        ...


class EmbedderWrapper:
    """Base of embedders that change another embedder's input or output."""

    def __init__(self, embedder: Embedder) -> None:
        self.name = embedder.name
        self.identity = embedder.identity
        self.separator = embedder.separator
        self.prompts = embedder.prompts
        self.similarity = embedder.similarity
        self._embedder = embedder


class PromptedEmbedder(EmbedderWrapper):
    """Sets the default prompt of another embedder; see `Embedder`."""

    def __init__(
        self, embedder: Embedder, *, prompt: str | None, prompt_name: str | None
    ) -> None:
        super().__init__(embedder)
        self._default_prompt = embedder.prompts.chosen(prompt=prompt, name=prompt_name)
        # Queries and documents get the chosen prompt, too.
        self.prompts = NamedPrompts({})

    def encode(self, texts: list[str], prompt: str | None = None) -> ndarray:
        """See `Embedder`."""
        if prompt is None:
            prompt = self._default_prompt
        return self._embedder.encode(texts, prompt)


def count_tokens(
    embedder: Embedder, texts: list[str], prompt: str | None = None
) -> ndarray:
    """Tokens of each text that a local model reads, in any thread; of other models the number of words."""
    encoder = local_encoder(embedder)
    if encoder is not None:
        words = encoder.settings.named_prompts.chosen(prompt=prompt)
        return encoder.tokens(texts, words).lengths
    from pairkit.similarity.terms import terms  # imports polars

    counts = [len(terms(text)) for text in texts]
    return np.maximum(np.array(counts, np.int64), 1)


def in_batches(
    texts: Iterable[str], most_texts: int, most_characters: int
) -> Iterator[list[str]]:
    """Batches within both limits; a text longer than `most_characters` is its own batch."""
    batch = list[str]()
    characters = 0
    for text in texts:
        if batch and (
            len(batch) == most_texts or characters + len(text) > most_characters
        ):
            yield batch
            batch = []
            characters = 0
        batch.append(text)
        characters += len(text)
    if batch:
        yield batch


class LocalEmbedder:
    """An `Encoder`; see `Embedder`."""

    def __init__(self, encoder: Encoder, source: str) -> None:
        self._encoder = encoder
        self.name = base_name(source)
        token = encoder.tokenizer.sep_token or encoder.tokenizer.eos_token
        self.separator = f" {token} " if token else "\n"
        self.identity = digest_of({**encoder.identity(), "versions": versions()})
        self.prompts = encoder.settings.named_prompts
        self.similarity = encoder.settings.similarity_fn_name

    def encode(self, texts: list[str], prompt: str | None = None) -> ndarray:
        """Vectors, float32 (text, dim)."""
        return self._encoder.encode(texts, prompt=prompt)


def load_encoder(
    model: str | Path,
    precision: str | None,
    say: Callable[[str], None],
    *,
    device: str | None = None,
    layers: int | None = None,
) -> Encoder:
    """An encoder for inference; if another precision is faster, that is reported."""
    from aoe_train.model.encoder import Encoder
    from aoe_train.model.precision import slow_precision

    checked = named_precision(precision)
    encoder = Encoder.load(
        model, device=device, precision=checked, inference_only=True, layers=layers
    )
    slow = slow_precision(checked, encoder.device)
    if slow:
        say(slow)
    return encoder


def refuse_options(subject: str, **options: object) -> None:
    """Refuse options that have no effect on a `subject`, such as a model that is loaded already."""
    for name, value in options.items():
        if value not in (None, "auto"):
            flag = name.replace("_", "-")
            raise ConfigError(
                f"--{flag} {value}: can't be set for {subject}; leave it out"
            )


def local_encoder(embedder: Embedder) -> Encoder | None:
    """The encoder of a local model; None for functions and servers."""
    while isinstance(embedder, EmbedderWrapper):
        embedder = embedder._embedder
    return embedder._encoder if isinstance(embedder, LocalEmbedder) else None


class FunctionEmbedder:
    """A function; see `Embedder`. Its vectors are not cached on disk, because nothing identifies it."""

    separator = "\n"
    prompts = NamedPrompts({})
    similarity: Similarity = "cosine"
    identity = ""

    def __init__(self, function: Function) -> None:
        self.name: str = getattr(function, "__name__", type(function).__name__)
        self._function = function

    def encode(self, texts: list[str], prompt: str | None = None) -> ndarray:
        """Vectors, float32 (text, dim); the prompt is part of the texts that the function receives."""
        prompted = list(texts)
        if prompt:
            prompted = [written_out(prompt, text) for text in texts]
        try:
            vectors = np.asarray(self._function(prompted), np.float32)
        except (TypeError, ValueError) as error:
            raise DataError(f"{self.name}: {one_line(str(error), 200)}") from error
        has_rows = vectors.ndim == 2 and len(vectors) == len(texts)
        if not has_rows or not np.isfinite(vectors).all():
            raise DataError(
                f"{self.name}: returned an array of shape {vectors.shape} for {len(texts)} texts; expected a"
                " row of finite numbers for each"
            )
        return vectors


@dataclass(frozen=True)
class VectorSize:
    """Layers, dimensions and number type of a model's vectors."""

    model: str
    dim: int  # 0 for all, until the model has encoded
    quantize: Quantize
    layers: int | None = None

    @property
    def bytes(self) -> int:
        """Bytes of a vector."""
        return width_of(self.dim, self.quantize) * DTYPES[self.quantize].itemsize


class QuantizedEmbedder(EmbedderWrapper):
    """Truncates, quantizes and restores vectors like `aoe encode --dim --quantize`, with a call's ranges."""

    def __init__(
        self,
        embedder: Embedder,
        size: VectorSize,
        whole: dict[str | None, tuple[list[str], ndarray]],
    ) -> None:
        """`whole` has the texts and vectors of the embedder's last call by prompt, for all sizes."""
        super().__init__(embedder)
        self.name = size.model
        self.size = size
        self._whole = whole

    def encode(self, texts: list[str], prompt: str | None = None) -> ndarray:
        """See `Embedder`."""
        encoded, whole = self._whole.get(prompt, (None, np.empty(0)))
        if encoded != texts:
            whole = self._embedder.encode(texts, prompt)
            self._whole[prompt] = texts, whole
        dim = checked_dim(self.size.dim or None, whole.shape[1])
        self.size = replace(self.size, dim=dim)
        quantize = self.size.quantize
        vectors = cut_to(whole, dim)
        ranges = value_ranges([vectors]) if quantize == "int8" else None
        codes = quantized(vectors, quantize, ranges)
        return restored(codes, quantize, dim, ranges)


def in_sizes(
    embedder: Embedder,
    name: str,
    dims: Sequence[int | None],
    quantize: Sequence[Quantize],
    layers: int | None,
) -> dict[str, QuantizedEmbedder]:
    """A model in all sizes and number types, by name; every text is encoded once."""
    whole: dict[str | None, tuple[list[str], ndarray]] = {}
    depth = ""
    if layers is not None:
        depth = f", {layers} layer" if layers == 1 else f", {layers} layers"
    sizes = {}
    for dim in dims:
        size = f", {dim}" if dim else ""
        for number_type in quantize:
            key = f"{name}{depth}{size}, {number_type}"
            vector_size = VectorSize(name, dim or 0, number_type, layers)
            sizes[key] = QuantizedEmbedder(embedder, vector_size, whole)
    return sizes


def cut_to(whole: ndarray, dim: int) -> ndarray:
    """Truncate vectors (text, dim), and scale them to length 1 if the whole ones had it."""
    if dim == whole.shape[1]:
        return whole
    vectors = np.ascontiguousarray(whole[:, :dim])
    lengths = np.linalg.norm(whole, axis=1)
    if np.abs(lengths - 1).max(initial=0) > _ROUNDING:
        return vectors
    return scaled_to_one(vectors)
