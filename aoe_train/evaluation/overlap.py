"""The exact overlap of a test set with a model's training texts.

A model folder contains a sorted 64-bit hash of each training text, which shows whether a given text was
trained on, but doesn't reveal texts. Letter case and white space are normalised.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from aoe_train.evaluation.tasks import SearchText
from aoe_train.model.folder_checks import mapped_array
from pairkit.base.errors import DataError
from pairkit.base.system.files import write_errors

if TYPE_CHECKING:
    from aoe_train.evaluation.tasks import EvaluationTask

DIGESTS_FILE = "training_texts.npy"


@dataclass(frozen=True, slots=True)
class Overlap:
    """The texts and examples of a task that a model was trained on."""

    texts: int
    of_texts: int
    rows: int
    of_rows: int

    def __str__(self) -> str:
        return (
            f"trained on {self.rows:,} of its {self.of_rows:,} examples (all their texts) and on"
            f" {self.texts:,} of its {self.of_texts:,} texts"
        )


def digests(texts: Iterable[str]) -> np.ndarray:
    """The distinct hashes of texts, sorted: uint64 (hash,)."""
    return np.unique(np.fromiter(map(_digest, texts), np.uint64))


def write_digests(folder: Path, texts: Iterable[str]) -> None:
    """Write the hashes of training texts into a model folder; equal texts give equal bytes."""
    with write_errors(path := folder / DIGESTS_FILE):
        np.save(path, digests(texts))


def read_digests(folder: Path) -> np.ndarray | None:
    """The hashes in a model folder, uint64 (hash,); None if it has none."""
    path = folder / DIGESTS_FILE
    if not path.is_file():
        return None
    hashes = mapped_array(path, "copy the model again, or delete this file")
    if hashes.dtype != np.uint64 or hashes.ndim != 1:
        raise DataError("expected hashes of texts; copy the model again, or delete this file", path=path)
    return np.asarray(hashes)


def trained_on(texts: Sequence[str], trained: Sequence[np.ndarray]) -> list[bool]:
    """Whether each text was trained on, by the hashes of one model or several."""
    hashes = np.concatenate([np.empty(0, np.uint64), *trained])
    flags: list[bool] = np.isin(np.fromiter(map(_digest, texts), np.uint64), hashes).tolist()
    return flags


def overlap(task: EvaluationTask, trained: np.ndarray) -> Overlap:
    """The overlap of a task with training texts."""
    rows: Sequence[Sequence[str]] | None = getattr(task, "rows", None)
    if rows is None:
        texts_of = (item.text if isinstance(item, SearchText) else item for item in task.texts)
        rows = [(item,) if isinstance(item, str) else item for item in texts_of]
    texts = list({text for row in rows for text in row})
    shared = {text for text, is_known in zip(texts, trained_on(texts, [trained]), strict=True) if is_known}
    return Overlap(len(shared), len(texts), sum(shared.issuperset(row) for row in rows), len(rows))


def _digest(text: str) -> int:
    folded = " ".join(text.casefold().split())
    return int.from_bytes(
        hashlib.blake2b(folded.encode(errors="surrogatepass"), digest_size=8).digest(), "little"
    )
