"""What a graph in int8 loses, measured on pairs of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from aoe_train._evaluate import correlation, spearman
from aoe_train._export.samples import SAMPLES
from aoe_train._similarity import unit
from pairkit.errors import DataError

if TYPE_CHECKING:
    from aoe_train._evaluate import PairTask

_LEAST_COSINE, _LEAST_AGREEMENT = 0.95, 0.9
_BATCH = 32


@dataclass(frozen=True)
class Loss:
    """What int8 changed.

    Attributes:
        pairs: Pairs of texts that it was measured on.
        source: Whose pairs.
        cosine_mean: Cosine of a text's vector in int8 and in float32, mean over the texts.
        cosine_least: The same, least.
        agreement: Spearman's rho of the pairs' cosines in int8 with those in float32.
        spearman: Spearman's rho of the cosines in float32 with the pairs' labels, where they have labels.
        spearman_int8: The same in int8.
    """

    pairs: int
    source: str
    cosine_mean: float
    cosine_least: float
    agreement: float
    spearman: float | None = None
    spearman_int8: float | None = None

    def __str__(self) -> str:
        """In one line; Spearman's rho with labels times 100, as tables show it."""
        against = (
            f"Spearman with the labels {100 * self.spearman:.2f} in fp32 and "
            f"{100 * self.spearman_int8:.2f} in int8, "
            if self.spearman is not None and self.spearman_int8 is not None
            else ""
        )
        return (
            f"int8 on {self.pairs:,} pairs of {self.source}: {against}Spearman of their cosines with fp32's "
            f"{self.agreement:.4f}; cosine of a vector with fp32's {self.cosine_mean:.4f} (mean), "
            f"{self.cosine_least:.4f} (least)"
        )


def measure(
    expected: Callable[[Sequence[str]], np.ndarray],
    found: Callable[[Sequence[str]], np.ndarray],
    task: PairTask | None,
    *,
    path: Path,
) -> Loss:
    """Encode pairs by the model and by its int8 graph, and compare.

    Args:
        expected: The model.
        found: The graph.
        task: Pairs with labels; by default all pairs of built-in sentences.
        path: The export, for the message.

    Raises:
        DataError: The vectors have too little to do with the model's, or labels are all alike.
    """
    rows = list(combinations(SAMPLES, 2)) if task is None else list(task.rows)
    texts = sorted({text for row in rows for text in row}, key=len)
    places = {text: place for place, text in enumerate(texts)}
    pairs = np.array([[places[text] for text in row] for row in rows])
    plain, int8 = (unit(_in_batches(encode, texts)) for encode in (expected, found))
    cosines = np.einsum("ij,ij->i", plain, int8)
    before, after = (
        np.einsum("ij,ij->i", vectors[pairs[:, 0]], vectors[pairs[:, 1]]) for vectors in (plain, int8)
    )
    source = "sample sentences" if task is None else task.name
    with np.errstate(invalid="ignore"):  # NaN where all cosines are alike or NaN, which is refused below
        labels = {} if task is None else _labels(task, before, after)
        agreement = spearman(before, after)
    loss = Loss(len(rows), source, float(cosines.mean()), float(cosines.min()), agreement, **labels)
    if not (loss.cosine_mean >= _LEAST_COSINE and loss.agreement >= _LEAST_AGREEMENT):
        raise DataError(
            f"{loss}; expected a mean cosine of at least {_LEAST_COSINE} and a Spearman of at least "
            f"{_LEAST_AGREEMENT}: int8 is too coarse for this model; nothing was written, export it in fp32",
            path=path,
        )
    return loss


def _labels(task: PairTask, before: np.ndarray, after: np.ndarray) -> dict[str, float]:
    correlation(before, task.labels, task.name)  # refuses labels that can't be ranked
    return {"spearman": spearman(before, task.labels), "spearman_int8": spearman(after, task.labels)}


def _in_batches(encode: Callable[[Sequence[str]], np.ndarray], texts: Sequence[str]) -> np.ndarray:
    return np.concatenate([encode(texts[at : at + _BATCH]) for at in range(0, len(texts), _BATCH)])
