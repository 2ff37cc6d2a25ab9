"""Comparing the vectors of two programs."""

from __future__ import annotations

import numpy as np
from numpy.linalg import norm

_SENTENCE = "The compiler panics when a file is opened from the menu, but not when it is saved. "


def probes(max_length: int) -> list[str]:
    """Texts to encode: short ones, several scripts, and one longer than `max_length` tokens."""
    return [
        "crash",
        "A man is playing a flute.",
        "naïve Straße 東京 🙂",
        _SENTENCE,
        _SENTENCE * max_length,
    ]


def difference(vectors: np.ndarray, expected: np.ndarray) -> float:
    """The largest distance between two vectors of a text, relative to the expected one's length."""
    assert vectors.shape == expected.shape
    distances = norm(vectors.astype(np.float64) - expected, axis=1)
    return float((distances / norm(expected.astype(np.float64), axis=1)).max())


def unit(vectors: np.ndarray) -> np.ndarray:
    """The vectors, scaled to length 1."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
