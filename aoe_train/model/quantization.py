"""Small vectors: the first numbers of each (`dim`), in fewer bits (`quantize`).

| quantize | a vector of d numbers becomes |
|---|---|
| float32 | itself: 4 d bytes |
| int8 | d bytes: each number's place, from -128 to 127, in 255 equal steps from the lowest to the highest value of its dimension in a calibration set |
| binary | d / 8 bytes: a bit a number, 1 where it is above 0, eight of them in an int8 that is 128 less |
| ubinary | the same bits in uint8 |

Values are those of sentence-transformers' `truncate_dim` and `quantize_embeddings`. Where d is no multiple of
eight, the last byte is filled up with zeros.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, get_args

import numpy as np

from pairkit.app.errors import ConfigError

Quantize = Literal["float32", "int8", "binary", "ubinary"]
QUANTIZE: tuple[Quantize, ...] = get_args(Quantize)
_STEPS = 255
_DTYPES: dict[Quantize, np.dtype[Any]] = {
    "float32": np.dtype("<f4"),
    "int8": np.dtype("i1"),
    "binary": np.dtype("i1"),
    "ubinary": np.dtype("u1"),
}


def named_quantize(name: str | None) -> Quantize:
    """One of `QUANTIZE`; float32 where none is named."""
    for known in QUANTIZE:
        if known == (name or "float32"):
            return known
    raise ConfigError(f"quantize {name!r}: expected {', '.join(QUANTIZE)}")


def checked_dim(dim: int | None, whole: int) -> int:
    """How many numbers of a vector are kept; all where none is asked for."""
    if dim is None:
        return whole
    if not 1 <= dim <= whole:
        raise ConfigError(f"dim {dim}: this model's vectors have {whole} numbers; expected 1 to {whole}")
    return dim


def dtype_of(quantize: Quantize) -> np.dtype[Any]:
    """What a quantised vector's numbers are."""
    return _DTYPES[quantize]


def width_of(dim: int, quantize: Quantize) -> int:
    """Numbers of a quantised vector; bits are eight a number."""
    return -(-dim // 8) if quantize.endswith("binary") else dim


def bytes_of(dim: int, quantize: Quantize) -> int:
    """Bytes of a quantised vector."""
    return width_of(dim, quantize) * dtype_of(quantize).itemsize


def value_ranges(blocks: Iterable[np.ndarray]) -> np.ndarray:
    """float32 (2, dim): the lowest and the highest value of each dimension, over blocks (text, dim)."""
    ranges, count = None, 0
    for block in blocks:
        if len(block):
            found = np.stack([block.min(axis=0), block.max(axis=0)])
            known = found if ranges is None else ranges
            ranges = np.stack([np.minimum(found[0], known[0]), np.maximum(found[1], known[1])])
            count += len(block)
    if ranges is None or count < 2:
        raise ConfigError(
            f"int8 of {count} vector{'' if count else 's'}: they span no range of values; give a calibration"
            " set, such as the vectors that these are compared with"
        )
    return ranges.astype(np.float32)


def calibrated(calibration: np.ndarray, dim: int) -> np.ndarray:
    """`value_ranges` of a calibration set (any, dim), or of these two rows alone."""
    vectors = np.atleast_2d(calibration)
    if vectors.shape[1:] != (dim,):
        raise ConfigError(f"calibration of {vectors.shape[-1]} numbers a vector: expected {dim}")
    return value_ranges([vectors])


def quantized(vectors: np.ndarray, quantize: Quantize, ranges: np.ndarray | None = None) -> np.ndarray:
    """Vectors in fewer bits, (text, `width_of`) of `dtype_of`."""
    if quantize == "float32":
        return vectors.astype(_DTYPES["float32"], copy=False)
    if not len(vectors):
        return np.empty((0, width_of(vectors.shape[1], quantize)), _DTYPES[quantize])
    if quantize == "int8":
        start, step = _steps(value_ranges([vectors]) if ranges is None else ranges)
        places: np.ndarray = np.floor((vectors - start) / np.where(step == 0, np.float32(1), step)).clip(
            0, _STEPS
        )
        return np.asarray(places - 128, np.int8)
    bits = np.packbits(vectors > 0, axis=-1)
    return bits if quantize == "ubinary" else (bits ^ np.uint8(0x80)).view(np.int8)  # 128 less


def restored(codes: np.ndarray, quantize: Quantize, dim: int, ranges: np.ndarray | None = None) -> np.ndarray:
    """What quantised vectors stand for, float32 (text, dim), to compare them.

    A number of int8 stands for the middle of its step, a bit for 1 or -1: the cosine of two such vectors is
    1 - 2 h / dim, where h is how many bits differ (Hamming).
    """
    if quantize == "float32":
        return codes
    if quantize == "int8":
        if ranges is None:
            raise ConfigError("int8 without its ranges stands for nothing; give them")
        start, step = _steps(ranges)
        return np.asarray(start + (codes.astype(np.float32) + 128.5) * step, np.float32)
    packed = codes.view(np.uint8) ^ np.uint8(0x80 if quantize == "binary" else 0)
    return np.unpackbits(packed, axis=-1, count=dim).astype(np.float32) * 2 - 1


def _steps(ranges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each dimension's first step begins, and how wide its steps are: 0 where all values are one."""
    low, high = ranges.astype(np.float32, copy=False)
    return low, (high - low) / np.float32(_STEPS)
