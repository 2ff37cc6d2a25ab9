"""A model's vectors as they are when they are made smaller, each text encoded once for all sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from aoe_train.evaluation.embedders.embedder import Embedder, EmbedderWrapper
from aoe_train.model.quantization import Quantize, bytes_of, checked_dim, quantized, restored, value_ranges
from aoe_train.model.similarity import scaled_to_one
from pairkit.app.errors import ConfigError

_ROUNDING = 1e-2  # bf16 leaves a length of 1 so far off


@dataclass(frozen=True, slots=True)
class VectorSize:
    """What a model's vectors were made."""

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
