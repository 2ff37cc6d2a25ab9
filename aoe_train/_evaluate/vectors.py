"""Vectors of texts, made once for each distinct text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from aoe_train._settings import Similarity
from pairkit.errors import DataError

Encode = Callable[[list[str]], np.ndarray]
"""Texts to float32 (text, dim); `Encoder.encode` is one."""

Input = str | tuple[str, str]
"""A text, or two that the model shall read as one input with its separator between them."""


class Vectors:
    """The vector of each distinct input of several collections, encoded in one go.

    Attributes:
        matrix: float32 (text, dim), one row for each distinct input.
        similarity: What they are compared by.
    """

    def __init__(
        self,
        encode: Encode,
        collections: Iterable[Sequence[Input]],
        *,
        separator: str = " ",
        similarity: Similarity = "cosine",
    ) -> None:
        """Encode.

        Args:
            encode: Makes the vectors.
            collections: What will be asked for.
            separator: Put between the two texts of one input, such as " [SEP] ".
            similarity: What the model's vectors are compared by.

        Raises:
            DataError: The vectors are not one finite row a text.
        """
        self.similarity = similarity
        inputs = list(dict.fromkeys(item for items in collections for item in items))
        self._row = {item: row for row, item in enumerate(inputs)}
        self.matrix = encode([item if isinstance(item, str) else separator.join(item) for item in inputs])
        shape = self.matrix.shape
        if len(shape) != 2 or shape[0] != len(inputs):
            raise DataError(f"{len(inputs)} texts got vectors of shape {shape}; expected one vector each")
        bad = np.flatnonzero(~np.isfinite(self.matrix).all(axis=1))
        if len(bad):
            raise DataError(
                f"the model gives {len(bad)} of {len(inputs)} texts vectors that are not numbers (NaN,"
                f" infinity), first {str(inputs[bad[0]])[:60]!r}; try --precision fp32"
            )

    def rows(self, inputs: Sequence[Input]) -> np.ndarray:
        """int64 (text,): where in `matrix` each input's vector stands."""
        return np.array([self._row[item] for item in inputs], np.int64)
