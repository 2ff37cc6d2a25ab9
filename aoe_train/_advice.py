"""What advisers say of all training rows, on the host: vectors by row and column, made before training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


@dataclass(frozen=True)
class ColumnVectors:
    """An adviser's vectors of one column's texts.

    Attributes:
        vectors: float32 (text, dim), mapped from a file; other columns may share it.
        places: int64 (row,); where each row's text is among them, any place for a negative that a row lacks.
    """

    vectors: np.ndarray
    places: np.ndarray


@dataclass(frozen=True)
class AdviserVectors:
    """An adviser's vectors of all columns."""

    columns: Sequence[ColumnVectors]

    @property
    def dim(self) -> int:
        """Numbers in a vector."""
        return int(self.columns[0].vectors.shape[1])

    def of_rows(self, rows: np.ndarray) -> Float[Tensor, "row column adviser"]:
        """The vectors of these rows."""
        found = [column.vectors[column.places[rows]] for column in self.columns]
        return torch.from_numpy(np.stack(found, axis=1))


@dataclass(frozen=True)
class AdviceStore:
    """The vectors and scores of a run's advisers.

    Attributes:
        vectors: By adviser: `guide`, `teacher`.
        scores: float32 (row, other column), a teacher's as the rows bring them.
    """

    vectors: dict[str, AdviserVectors] = field(default_factory=dict)
    scores: np.ndarray | None = None

    @property
    def teacher(self) -> AdviserVectors | None:
        """The teacher's vectors, if there are any."""
        return self.vectors.get("teacher")

    def batch(self, rows: np.ndarray) -> dict[str, Tensor]:
        """What the advisers say of these rows, by the names in `records.Batch`."""
        found = {role: told.of_rows(rows) for role, told in self.vectors.items()}
        if self.scores is not None:
            found["scores"] = torch.from_numpy(self.scores[rows])
        return found


NO_ADVICE = AdviceStore()
