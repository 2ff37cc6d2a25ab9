"""The overlap of a test set with the training texts of a model, by exact text.

A model folder holds a 64-bit digest of each training text, sorted: enough to ask whether a text that one has
was among them, and too little to read one from. Letter case and runs of white space make no difference.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from aoe_train.model.folder_checks import mapped_array
from pairkit.app.errors import DataError
from pairkit.system.files import write_errors

if TYPE_CHECKING:
    from aoe_train.evaluation.tasks import EvaluationTask

DIGESTS_FILE = "training_texts.npy"


@dataclass(frozen=True, slots=True)
class Overlap:
    """How much of a task a model was trained on."""

    texts: int
    of_texts: int
    rows: int
    of_rows: int

    def to_dict(self) -> dict[str, int]:
        """As in the JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"trained on {self.rows:,} of its {self.of_rows:,} examples (all their texts) and on"
            f" {self.texts:,} of its {self.of_texts:,} texts"
        )


def digests(texts: Iterable[str]) -> np.ndarray:
    """The digests of texts: uint64 (digest,), sorted, each once."""
    return np.unique(np.fromiter(map(_digest, texts), np.uint64))


def write_digests(folder: Path, texts: Iterable[str]) -> None:
    """Put the digests of training texts into a model folder; equal texts give equal bytes."""
    with write_errors(path := folder / DIGESTS_FILE):
        np.save(path, digests(texts))


def read_digests(folder: Path) -> np.ndarray | None:
    """The digests in a model folder, uint64 (digest,); None where it has none."""
    path = folder / DIGESTS_FILE
    if not path.is_file():
        return None
    found = mapped_array(path, "copy the model again, or delete this file")
    if found.dtype != np.uint64 or found.ndim != 1:
        raise DataError("no digests of texts; copy the model again, or delete this file", path=path)
    return np.asarray(found)


def trained_on(texts: Sequence[str], trained: Sequence[np.ndarray]) -> list[bool]:
    """Whether a model was trained on each text, by the digests of one model or several."""
    every = np.concatenate([np.empty(0, np.uint64), *trained])
    known: list[bool] = np.isin(np.fromiter(map(_digest, texts), np.uint64), every).tolist()
    return known


def overlap(task: EvaluationTask, trained: np.ndarray) -> Overlap:
    """What a task shares with training texts."""
    rows = _rows(task)
    texts = list({text for row in rows for text in row})
    seen = {text for text, was_seen in zip(texts, trained_on(texts, [trained]), strict=True) if was_seen}
    return Overlap(len(seen), len(texts), sum(seen.issuperset(row) for row in rows), len(rows))


def _rows(task: EvaluationTask) -> Sequence[Sequence[str]]:
    rows: Sequence[Sequence[str]] | None = getattr(task, "rows", None)
    return [(item,) if isinstance(item, str) else item for item in task.texts] if rows is None else rows


def _digest(text: str) -> int:
    folded = " ".join(text.casefold().split())
    return int.from_bytes(
        hashlib.blake2b(folded.encode(errors="surrogatepass"), digest_size=8).digest(), "little"
    )
