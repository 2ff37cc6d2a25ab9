"""Data passed between the stages of training: examples in host memory, packed batches on the device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict, overload

import numpy as np

from pairkit.dataset.labels import CONFLICT, LabelsRead

if TYPE_CHECKING:
    import polars as pl
    from jaxtyping import Float, Int
    from torch import Tensor


Kind = Literal["binary", "graded", "positive", "triplet", "single"]
ABSENT = -1  # pads rows with fewer negatives than others
_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class ColumnVectors:
    """A guide's or teacher's vectors of one column: row r has `vectors[indices[r]]`."""

    vectors: np.ndarray
    indices: np.ndarray


@dataclass(frozen=True)
class TeacherVectors:
    """A guide's or teacher's vectors of all columns."""

    columns: Sequence[ColumnVectors]

    @property
    def dim(self) -> int:
        """Size of a vector."""
        return int(self.columns[0].vectors.shape[1])

    def of_rows(self, rows: np.ndarray) -> Float[Tensor, "row column teacher"]:
        """The vectors of these rows."""
        import torch  # not at the top: settings and commands start without it

        of_columns = [column.vectors[column.indices[rows]] for column in self.columns]
        return torch.from_numpy(np.stack(of_columns, axis=1))


@dataclass(frozen=True)
class TeacherOutputs:
    """Vectors and scores of a run's guide and teacher."""

    vectors: dict[str, TeacherVectors] = field(default_factory=dict)
    scores: np.ndarray | None = None

    def batch(self, rows: np.ndarray) -> dict[str, Tensor]:
        """The vectors and scores of these rows, by the names of `PairModel.forward`."""
        batch = {role: vectors.of_rows(rows) for role, vectors in self.vectors.items()}
        if self.scores is not None:
            import torch

            batch["scores"] = torch.from_numpy(self.scores[rows])
        return batch


NO_OUTPUTS = TeacherOutputs()


def distinct_texts(columns: np.ndarray) -> np.ndarray:
    """The distinct texts of rows of `Examples`."""
    return np.unique(columns[columns != ABSENT])


@dataclass(frozen=True)
class ReadingReport:
    """How the rows of a source were read."""

    # The meaning of labels, and counts of rows that were skipped by their label.
    labels: LabelsRead | None = None
    conflicts: int = 0  # pairs with different labels
    conflicting_rows: int = 0  # left out because of such conflicts
    written: int = 0  # rows marked as having a text written by an LLM or by rules
    # Texts that are not trained on, by reason.
    left_out: Mapping[str, int] = field(default_factory=dict)
    # Rows that lack a text or label.
    bad_rows: pl.DataFrame | None = field(default=None, compare=False)

    def record(self) -> dict[str, object]:
        """The meaning of labels and the counts of rows left out by reason, for run.json."""
        from pairkit.dataset.records import by_reason

        meaning = None
        left_out: dict[str, int] = {}
        if self.labels is not None:
            meaning = self.labels.meaning
            left_out |= self.labels.skipped
        if self.conflicting_rows:
            left_out[CONFLICT] = self.conflicting_rows
        if self.bad_rows is not None:
            left_out |= {reason: count for reason, count, _ in by_reason(self.bad_rows)}
        left_out |= self.left_out
        return {"labels": meaning, "conflicts": self.conflicts, "left_out": left_out}


EMPTY_REPORT = ReadingReport()


class TextSelection(Sequence[str]):
    """A view of `values` at these indices, which may repeat."""

    def __init__(self, values: Sequence[str], indices: np.ndarray) -> None:
        """Select texts without copying them."""
        self.values = values
        self.indices = indices

    def __len__(self) -> int:
        return len(self.indices)

    @overload
    def __getitem__(self, key: int) -> str: ...
    @overload
    def __getitem__(self, key: slice) -> list[str]: ...
    def __getitem__(self, key: int | slice) -> str | list[str]:
        if isinstance(key, slice):
            return [self.values[index] for index in self.indices[key].tolist()]
        return self.values[int(self.indices[key])]

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _ROWS_AT_ONCE):
            yield from self[start : start + _ROWS_AT_ONCE]


@dataclass(frozen=True)
class Examples:
    """Distinct texts, and training rows that refer to them.

    `rows` is int64 (row, column), indices into `texts`: two columns for pairs, three or more for (anchor,
    positive, negatives), one for single texts. `ABSENT` pads rows with fewer negatives.
    """

    texts: Sequence[str]  # each once, or once for each of its prompts
    rows: np.ndarray
    # float32 (row,) of pairs: 0 or 1 if `binary`; if `graded`, larger is closer.
    labels: np.ndarray | None
    kind: Kind
    reading: ReadingReport = EMPTY_REPORT
    prompts: str | Sequence[str] = ""  # for all texts, or one for each
    # int64 (text,); equal texts with other prompts have equal ids.
    content_ids: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def token_counts(
        self, lengths: np.ndarray, chosen: Sequence[int] | slice
    ) -> np.ndarray:
        """Token counts of the chosen rows' texts, int64 (row, column); 0 for an absent negative."""
        rows = self.rows[chosen]
        return np.where(rows == ABSENT, 0, lengths[rows])


class TokenBatch(TypedDict):
    """Texts packed into one row of tokens; counts are on the host, as plans can't wait for the device."""

    input_ids: Int[Tensor, " token"]  # with special tokens and prompts
    lengths: Int[np.ndarray, " text"]
    # The number of leading tokens that pooling ignores.
    prompt_lengths: NotRequired[Int[np.ndarray, " text"]]


def evenly_spread(total: int, count: int) -> np.ndarray:
    """At most `count` numbers from 0 to `total` - 1, ascending int64."""
    numbers = np.linspace(0, total - 1, min(count, total))
    return np.unique(numbers.astype(np.int64))
