"""The exact overlap of a test set with a model's training texts and labelled rows.

A model folder contains sorted 64-bit hashes of each training text and of each labelled pair. They show
whether a given text or pair was trained on, but don't reveal texts. In texts, letter case and white space are
normalised; pairs are equal if their texts are the same (`pairkit.similarity.terms`), in any order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path

import numpy as np
import polars as pl
from numpy import ndarray

from aoe_train.evaluation.tasks import EvaluationTask, Input, SearchText
from aoe_train.model.backbones.load_backbone import find_folder
from aoe_train.model.folder_checks import mapped_array
from aoe_train.objectives.training_rows import ABSENT, Examples
from pairkit.base.errors import DataError
from pairkit.base.system.files import write_errors
from pairkit.similarity.terms import same_text

DIGESTS_FILE = "training_texts.npy"
_MIXER = np.uint64(0x9E3779B97F4A7C15)  # odd, so that the order of hashes counts


@dataclass(frozen=True)
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


def digests(texts: Iterable[str]) -> ndarray:
    """The distinct hashes of texts, sorted: uint64 (hash,)."""
    return np.unique(_text_hashes(texts))


def training_digests(data: Iterable[Examples]) -> ndarray:
    """The hashes of all training texts, of labelled pairs, and of each text of these with itself."""
    hashes = [np.empty(0, np.uint64)]
    for examples in data:
        hashes.append(digests(examples.texts))
        if examples.kind != "single":
            keys = _same_text_hashes(examples.texts)
            others = examples.rows[:, 1:]
            pairs = _pair_digests(keys[examples.rows[:, :1]], keys[others])
            hashes += [_pair_digests(keys, keys), pairs[others != ABSENT]]
    return np.unique(np.concatenate(hashes))


def _same_text_hashes(texts: Iterable[str]) -> ndarray:
    """A hash of each text that is equal for texts that are the same: uint64 (text,)."""
    table = pl.DataFrame({"text": [*texts]}, schema={"text": pl.String})
    return _text_hashes(table.select(same_text("text"))["text"])


def _pair_digests(keys1: ndarray, keys2: ndarray) -> ndarray:
    """A hash of each pair, in any order."""
    low = np.minimum(keys1, keys2)
    high = np.maximum(keys1, keys2)
    pairs: ndarray = low * _MIXER + high
    return pairs


def write_digests(folder: Path, hashes: ndarray, source: Path | None = None) -> None:
    """Write hashes, and those of the model that this one was made of; equal texts give equal bytes."""
    hashes = np.union1d(hashes, read_digests(source))
    if len(hashes):
        path = folder / DIGESTS_FILE
        with write_errors(path):
            np.save(path, hashes)


def read_digests(folder: Path | None) -> ndarray:
    """The hashes in a model folder, if it has any: uint64 (hash,). Raises DataError for other arrays."""
    if folder is None or not (folder / DIGESTS_FILE).is_file():
        return np.empty(0, np.uint64)
    path = folder / DIGESTS_FILE
    hashes = mapped_array(path, "copy the model again, or delete this file")
    if hashes.dtype != np.uint64 or hashes.ndim != 1:
        raise DataError(
            "expected hashes of texts; copy the model again, or delete this file",
            path=path,
        )
    return np.asarray(hashes)


def training_hashes(model: object) -> ndarray:
    """The hashes in the folder of an `Encoder` or of a model's name, if there are any."""
    folder: Path | None = getattr(model, "folder", None)
    if isinstance(model, str | Path):
        folder = find_folder(model)
    return read_digests(folder)


def trained_on(texts: Sequence[str], trained: ndarray) -> list[bool]:
    """Whether each text was trained on, by the hashes of one model or several."""
    flags: list[bool] = np.isin(_text_hashes(texts), trained).tolist()
    return flags


def overlap(task: EvaluationTask, trained: ndarray) -> Overlap:
    """The overlap of a task with training texts."""
    rows: Sequence[Sequence[str]] | None = getattr(task, "rows", None)
    if rows is None:  # then each input is an example
        rows = [_texts_of(item) for item in task.texts]
    texts = list({text for row in rows for text in row})
    shared = set(compress(texts, trained_on(texts, trained)))
    shared_rows = sum(shared.issuperset(row) for row in rows)
    return Overlap(len(shared), len(texts), shared_rows, len(rows))


def _texts_of(item: Input) -> tuple[str, ...]:
    """The texts of one input."""
    if isinstance(item, SearchText):
        return (item.text,)
    return (item,) if isinstance(item, str) else item


def trained_examples(task: EvaluationTask, trained: ndarray) -> ndarray:
    """The numbers of the examples of labelled data, such as pairs or queries, that were trained on."""
    numbers: ndarray | None = getattr(task, "row_examples", None)
    if numbers is None or not len(trained):
        return np.empty(0, np.int64)
    rows = getattr(task, "rows", None) or [(text, text) for text in task.texts]
    first = _same_text_hashes(row[0] for row in rows)
    second = _same_text_hashes(row[1] for row in rows)
    pairs = _pair_digests(first, second)
    examples = np.unique(numbers[np.isin(pairs, trained)])
    return examples[examples >= 0]


def _text_hashes(texts: Iterable[str]) -> ndarray:
    """A hash of each text without differences of letter case and white space: uint64 (text,)."""
    hashes = []
    for text in texts:
        folded = " ".join(text.casefold().split())
        encoded = folded.encode(errors="surrogatepass")
        hashes.append(hashlib.blake2b(encoded, digest_size=8).digest())
    return np.frombuffer(b"".join(hashes), "<u8").astype(np.uint64)
