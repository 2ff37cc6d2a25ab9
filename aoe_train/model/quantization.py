"""Smaller vectors: truncated (`dim`) and quantized (`quantize`).

The values equal those of sentence-transformers' `truncate_dim` and `quantize_embeddings`. The last byte is
padded with zero bits. `docs/howto/small-vectors.md` describes the number types.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy import ndarray

from aoe_train.model.similarity import scaled_to_one
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.settings import argument

if TYPE_CHECKING:
    from jaxtyping import Float, Int

Quantize = Literal["float32", "int8", "binary", "ubinary"]
_STEPS = 255
DTYPES: dict[Quantize, np.dtype[Any]] = {
    "float32": np.dtype("<f4"),
    "int8": np.dtype("i1"),
    "binary": np.dtype("i1"),
    "ubinary": np.dtype("u1"),
}


def named_quantize(name: str | None, calibration: object = None) -> Quantize:
    """Check a name, and that only int8 gets a calibration set; None means float32."""
    quantize: Quantize = argument("quantize", name or "float32", Quantize)
    if calibration is not None and quantize != "int8":
        raise ConfigError(
            f"--calibration is for --quantize int8, not {quantize}; leave it out"
        )
    return quantize


def checked_dim(dim: int | None, full_dim: int) -> int:
    """The dimensions of a truncated vector; None keeps all."""
    if dim is None:
        return full_dim
    dim = int(argument("dim", dim, int))
    if not 1 <= dim <= full_dim:
        raise ConfigError(
            f"dim {dim}: this model's vectors have {full_dim} dimensions; expected 1 to {full_dim}"
        )
    return dim


def width_of(dim: int, quantize: Quantize) -> int:
    """Length of a quantized vector; eight bits are one number."""
    return -(-dim // 8) if quantize.endswith("binary") else dim


def value_ranges(blocks: Iterable[ndarray]) -> ndarray:
    """float32 (2, dim): minimum and maximum of each dimension over blocks (text, dim)."""
    bounds: list[ndarray] = []
    count = 0
    for block in blocks:
        if len(block):
            bounds += [block.min(axis=0), block.max(axis=0)]
            count += len(block)
    if count < 2:
        vectors = "1 vector" if count else "0 vectors"
        raise ConfigError(
            f"int8 of {vectors}: they have no range of values; give a calibration set, such as the vectors"
            " that these are compared with"
        )
    lowest = np.min(bounds, axis=0)
    ranges = np.stack([lowest, np.max(bounds, axis=0)])
    if not np.isfinite(ranges).all():
        raise DataError("int8 of vectors with NaN or infinity; leave them out")
    return ranges.astype(np.float32)


def calibrated(calibration: ndarray, dim: int) -> ndarray:
    """The ranges of a calibration set (any, dim), which may be the two rows of `value_ranges`."""
    return checked_ranges(value_ranges([np.atleast_2d(calibration)]), dim)


def checked_ranges(ranges: ndarray, dim: int) -> ndarray:
    """The ranges of a calibration set, if its vectors have `dim` numbers."""
    if ranges.shape != (2, dim):
        raise ConfigError(
            f"--calibration: its vectors have {ranges.shape[-1]} dimensions, expected {dim}; encode it with"
            " the same --dim"
        )
    return ranges


def quantized(
    vectors: ndarray,
    quantize: Quantize,
    ranges: ndarray | None = None,
) -> ndarray:
    """Quantize vectors to (text, `width_of`) of a type in `DTYPES`."""
    if quantize == "float32":
        return vectors.astype(DTYPES["float32"], copy=False)
    if quantize == "int8":
        if not len(vectors):
            return vectors.astype(np.int8)
        if ranges is None:
            ranges = value_ranges([vectors])
        start, step = _steps(ranges)
        nonzero_step = np.where(step == 0, np.float32(1), step)
        steps: ndarray = np.floor((vectors - start) / nonzero_step)
        return np.asarray(steps.clip(0, _STEPS) - 128, np.int8)
    bits = np.packbits(vectors > 0, axis=-1)
    if quantize == "ubinary":
        return bits
    return (bits ^ np.uint8(0x80)).view(np.int8)  # less 128


def restored(
    codes: ndarray,
    quantize: Quantize,
    dim: int,
    ranges: ndarray | None = None,
) -> ndarray:
    """Dequantize to float32 (text, dim): int8 codes to the middle of their step, bits to 1 or -1."""
    if quantize == "float32":
        return codes
    if quantize == "int8":
        if ranges is None:
            raise ConfigError(
                "int8 vectors can't be restored without their ranges; give these"
            )
        start, step = _steps(ranges)
        middles = codes.astype(np.float32) + 128.5
        return np.asarray(start + middles * step, np.float32)
    packed = codes.view(np.uint8)
    if quantize == "binary":
        packed = packed ^ np.uint8(0x80)
    bits = np.unpackbits(packed, axis=-1, count=dim)
    return bits.astype(np.float32) * 2 - 1


def _steps(ranges: ndarray) -> tuple[ndarray, ndarray]:
    """Start and width of each dimension's steps; the width of a constant dimension is 0."""
    low, high = ranges.astype(np.float32, copy=False)
    return low, (high - low) / np.float32(_STEPS)


class Int8Vectors:
    """Vectors of length 1, decoded from int8 with the ranges of each dimension."""

    def __init__(self, codes: ndarray, ranges: ndarray) -> None:
        self._codes = codes
        self._ranges = ranges
        self.shape = codes.shape

    def __len__(self) -> int:
        """Number of vectors."""
        return len(self._codes)

    def __getitem__(
        self, places: slice | Int[ndarray, " row"]
    ) -> Float[ndarray, "row dim"]:
        """Some vectors in float32."""
        codes = np.asarray(self._codes[places])
        return scaled_to_one(restored(codes, "int8", self.shape[1], self._ranges))

    def __array__(
        self,
        dtype: Any = None,
        copy: bool | None = None,
    ) -> Float[ndarray, "row dim"]:
        """All vectors in float32, for `np.asarray`."""
        return np.array(self[:], dtype, copy=copy)


Vectors: TypeAlias = ndarray | Int8Vectors
"""Vectors of length 1, (text, dim): in memory, or read and decoded when they are used."""
