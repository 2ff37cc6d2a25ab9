"""What passes between the steps of training: examples on the host, packed batches on the device."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict, overload

import numpy as np

from pairkit.app.errors import DataError
from pairkit.dataset.labels import CONFLICT

if TYPE_CHECKING:
    import polars as pl
    from jaxtyping import Float, Int
    from torch import Tensor

    from pairkit.dataset.labels import LabelsRead


@dataclass(frozen=True)
class ColumnVectors:
    """An adviser's vectors of one column's texts."""

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
        import torch  # not at the top: settings and commands start without it

        found = [column.vectors[column.places[rows]] for column in self.columns]
        return torch.from_numpy(np.stack(found, axis=1))


@dataclass(frozen=True)
class AdviceStore:
    """The vectors and scores of a run's advisers."""

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
            import torch

            found["scores"] = torch.from_numpy(self.scores[rows])
        return found


NO_ADVICE = AdviceStore()


_MOST_CELLS, _WIDER = 1 << 27, 4  # 1 GiB of texts' numbers; so many times as many texts as rows have


def check_width(widths: np.ndarray, place: Callable[[int], str]) -> None:
    """Refuse a few rows of so many negatives that room for as many in all rows would be mostly empty."""
    most, mean = int(widths.max()), float(widths.mean())
    cells = len(widths) * most
    if cells > _MOST_CELLS and most > _WIDER * mean:
        raise DataError(
            f"{place(int(widths.argmax()))}: has {most - 2:,} negatives, where rows have {mean - 2:.1f} on"
            f" average; as much room in each of {len(widths):,} rows takes {8 * cells / 2**30:.1f} GiB: leave"
            " some out"
        )


Kind = Literal["binary", "graded", "positive", "triplet", "single"]
_BLOCK = 1 << 16  # rows of a round
ABSENT = -1  # in the place of a negative that a row lacks and others have


def kind_of(columns: Collection[str], *, binary: bool) -> Kind:
    """What rows mean: of text1, text2, label, of anchor, positive and perhaps negatives, or of text."""
    if "label" in columns:
        return "binary" if binary else "graded"
    if "text" in columns:
        return "single"
    return "triplet" if len(columns) > 2 else "positive"


def no_rows(labels: LabelsRead | None, where: str) -> DataError:
    """What is wrong with a source that has no rows, or none that its labels leave."""
    told = f" ({labels})" if labels and labels.skipped else ""
    return DataError(f"no rows; expected at least one{told}", path=where)


@dataclass(frozen=True)
class ReadingReport:
    """What was made of a source's rows.

    Attributes:
        labels: What labels count as, and how many rows were left out by theirs; None for rows without.
        conflicts: How many pairs of texts have different labels.
        conflicting_rows: How many rows were left out for that.
        written: How many rows hold a text that LLMs or rules wrote, as the rows themselves say.
        bad_rows: The rows that were left out for lack of a text or label.
    """

    labels: LabelsRead | None = None
    conflicts: int = 0
    conflicting_rows: int = 0
    written: int = 0
    bad_rows: pl.DataFrame | None = field(default=None, compare=False)

    def record(self) -> dict[str, Any]:
        """The same for a run's record: what labels count as, and counts by reason of what was left out."""
        from pairkit.dataset.bad_rows import by_reason

        skipped = {} if self.labels is None else dict(self.labels.skipped)
        dropped = {CONFLICT: self.conflicting_rows} if self.conflicting_rows else {}
        bad = (
            {} if self.bad_rows is None else {reason: count for reason, count, _ in by_reason(self.bad_rows)}
        )
        return {
            "labels": self.labels and self.labels.meaning,
            "conflicts": self.conflicts,
            "left_out": skipped | dropped | bad,
        }


EMPTY_REPORT = ReadingReport()


class TextSelection(Sequence[str]):
    """Some texts of others, by number; they may come more than once."""

    def __init__(self, values: Sequence[str], numbers: np.ndarray) -> None:
        """Pick the texts."""
        self.values, self.numbers = values, numbers

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self.values[number] for number in self.numbers[place].tolist()]
        return self.values[int(self.numbers[place])]

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _BLOCK):
            yield from self[start : start + _BLOCK]


@dataclass(frozen=True)
class Examples:
    """Distinct texts, and training rows that refer to them.

    Attributes:
        texts: Each text once, or once with each of its prompts.
        rows: int64 (row, column), indices into `texts`: two columns for pairs, three and more for (anchor,
            positive, negatives), one where a text is its own positive. `ABSENT` fills up the rows that have
            fewer negatives than others.
        labels: float32 (row,) for `binary` (0 or 1) and `graded` (larger = more alike) pairs, else None.
        kind: What a row means.
        reading: What was made of the source's rows.
        prompts: The prompt of all texts, or of each.
        said: int64 (text,), where a text may stand twice: equal numbers are equal texts, their prompts aside.
    """

    texts: Sequence[str]
    rows: np.ndarray
    labels: np.ndarray | None
    kind: Kind
    reading: ReadingReport = EMPTY_REPORT
    prompts: str | Sequence[str] = ""
    said: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def token_counts(self, lengths: np.ndarray, some: np.ndarray | slice) -> np.ndarray:
        """Tokens of some rows' texts, int64 (row, column): 0 for a negative that a row lacks."""
        rows = self.rows[some]
        counts: np.ndarray = lengths[rows] * (rows != ABSENT)
        return counts

    def row_lengths(self, lengths: np.ndarray) -> np.ndarray:
        """Tokens of each row, int64 (row,); `lengths` are those of each text."""
        found = np.empty(len(self), np.int64)
        for start in range(0, len(self), _BLOCK):
            block = slice(start, start + _BLOCK)
            found[block] = self.token_counts(lengths, block).sum(axis=1)
        return found


class TokenBatch(TypedDict):
    """Texts as one row of tokens without padding: all pieces of the first text, then the next text's.

    Attributes:
        input_ids: Special tokens and prompt included.
        lengths: Tokens of each piece; on the host, which plans by them and must not wait for a device.
        pieces: Pieces of each text, on the host; 1 but for long texts that are read window by window.
        prompt_lengths: The first tokens of each piece, which pooling leaves out; on the host. Absent where it
            takes all tokens in.
    """

    input_ids: Int[Tensor, " token"]
    lengths: Int[np.ndarray, " piece"]
    pieces: Int[np.ndarray, " text"]
    prompt_lengths: NotRequired[Int[np.ndarray, " piece"]]


class Batch(TokenBatch):
    """Rows to train on together, each distinct text once.

    Attributes:
        rows: Indices into the batch's texts, or `ABSENT`.
        texts: The texts' numbers in `Examples`: equal numbers are equal texts, on any rank.
        labels: Absent for kinds without labels.
        guide: A guide's vectors of the rows' texts; absent without one.
        teacher: A teacher's.
        scores: A teacher's score of each row's first text with each of its others, where rows bring them.
        dataset: Which of several the rows are of, on all ranks; absent where there is one.
    """

    rows: Int[Tensor, "row column"]
    texts: Int[Tensor, " text"]
    labels: NotRequired[Float[Tensor, " row"]]
    guide: NotRequired[Float[Tensor, "row column guide"]]
    teacher: NotRequired[Float[Tensor, "row column teacher"]]
    scores: NotRequired[Float[Tensor, "row other"]]
    dataset: NotRequired[int]
