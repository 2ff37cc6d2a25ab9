"""No export is called done before it has encoded the same texts to the same vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pairkit.errors import DataError

if TYPE_CHECKING:
    from jaxtyping import Float

_SENTENCE = "The compiler panics when a file is opened from the menu, but not when it is saved. "


def probes(max_length: int) -> list[str]:
    """Texts to compare on: short, of several scripts, and longer than `max_length` tokens."""
    return ["crash", "A man is playing a flute.", "naïve Straße 東京 🙂", _SENTENCE, _SENTENCE * max_length]


def difference(found: Float[np.ndarray, "text dim"], expected: Float[np.ndarray, "text dim"]) -> float:
    """The largest difference of two vectors of a text, relative to the expected one's length."""
    if found.shape != expected.shape:
        return float("inf")
    apart = np.linalg.norm(found.astype(np.float64) - expected, axis=1)
    relative = apart / np.maximum(np.linalg.norm(expected.astype(np.float64), axis=1), 1e-12)
    return float("inf") if np.isnan(relative).any() else float(relative.max())


def verify(
    encode: Callable[[Sequence[str]], np.ndarray],
    texts: Sequence[str],
    expected: Float[np.ndarray, "text dim"],
    *,
    path: Path,
    within: float,
) -> float:
    """Encode `texts` by the export and compare.

    Returns:
        The largest relative difference.

    Raises:
        DataError: it is more than `within`.
    """
    found = difference(encode(texts), expected)
    if found > within:
        raise DataError(
            f"the export's vectors differ from the model's by {found:.1e} of their length; expected at most "
            f"{within:.0e}; nothing was written",
            path=path,
        )
    return found
