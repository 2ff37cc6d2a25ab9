"""Measures the loss of an int8 graph on pairs of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from aoe_train.evaluation.pair_metrics import correlation, spearman
from aoe_train.model.similarity import unit
from pairkit.base.errors import DataError

if TYPE_CHECKING:
    from aoe_train.evaluation.pair_task import PairTask


SAMPLES = (
    "A man is playing a flute.",
    "Someone plays a wind instrument.",
    "A woman is slicing an onion.",
    "A cook cuts vegetables in a kitchen.",
    "Two dogs are running through the snow.",
    "The dogs chase each other on a winter field.",
    "A child is riding a bicycle down a hill.",
    "A boy cycles downhill.",
    "The train to the coast leaves at seven in the morning.",
    "There is an early train to the seaside.",
    "It will rain in the north tomorrow.",
    "Tomorrow the sun will shine in the north.",
    "The central bank raised its interest rate by a quarter of a point.",
    "Borrowing becomes dearer after the bank's decision on rates.",
    "Shares of the airline fell after it cancelled hundreds of flights.",
    "The company that makes the engines reported a loss for the third year.",
    "How do I install the package without root rights?",
    "Installing into my home folder because I have no administrator account",
    "The editor crashes when I open a file of more than two gigabytes.",
    "Opening huge files ends the program with a segmentation fault",
    "Dark theme: the cursor can't be seen in the search field",
    "The colour of the caret is that of the background in dark mode.",
    "Please add an option to sort the list by date.",
    "The build fails on Windows since the last release, because a path has a space in it.",
    "Unable to log in after the password was changed; the server answers 401",
    "def area(radius): return 3.14159 * radius ** 2",
    "SELECT name, count(*) FROM visits GROUP BY name ORDER BY 2 DESC",
    "Which vitamins does an orange contain?",
    "Oranges are rich in vitamin C.",
    "The patient was given antibiotics for an infection of the lung.",
    "Pneumonia caused by bacteria is treated with antibiotics.",
    "Regular exercise lowers the risk of disease of the heart, as a study over ten years with several "
    "thousand people of all ages found.",
    "The old bridge over the river was built of stone and has carried carts and cars for four centuries.",
    "Water boils at a lower temperature on a mountain.",
    "Light takes about eight minutes from the sun to the earth.",
    "The parliament voted for the new law on schools by a narrow majority.",
    "The law about education passed with few votes to spare.",
    "Ein Hund schläft vor dem Haus.",
    "Le chien dort devant la maison.",
    "Thanks!",
)


_MIN_COSINE, _MIN_AGREEMENT = 0.95, 0.9
_BATCH = 32


@dataclass(frozen=True)
class Loss:
    """Agreement of int8 vectors with fp32 ones."""

    pairs: int
    source: str
    cosine_mean: float
    cosine_least: float
    agreement: float
    spearman: float | None = None
    spearman_int8: float | None = None

    def __str__(self) -> str:
        """One line; Spearman's rho with labels is multiplied by 100, as in tables."""
        with_labels = (
            f"Spearman with the labels {100 * self.spearman:.2f} in fp32 and "
            f"{100 * self.spearman_int8:.2f} in int8, "
            if self.spearman is not None and self.spearman_int8 is not None
            else ""
        )
        return (
            f"int8 on {self.pairs:,} pairs of {self.source}: {with_labels}Spearman of their cosines with"
            f" fp32's {self.agreement:.4f}; cosine of a vector with fp32's {self.cosine_mean:.4f} (mean),"
            f" {self.cosine_least:.4f} (minimum)"
        )


def measure(
    expected: Callable[[Sequence[str]], np.ndarray],
    quantized: Callable[[Sequence[str]], np.ndarray],
    task: PairTask | None,
    *,
    path: Path,
) -> Loss:
    """Encode pairs with the model and with its int8 graph, and compare."""
    rows = list(combinations(SAMPLES, 2)) if task is None else list(task.rows)
    texts = sorted({text for row in rows for text in row}, key=lambda text: (len(text), text))
    index = {text: number for number, text in enumerate(texts)}
    pairs = np.array([[index[text] for text in row] for row in rows])
    blocks = [texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH)]
    plain, int8 = (
        unit(np.concatenate([encode(block) for block in blocks])) for encode in (expected, quantized)
    )
    cosines = np.einsum("ij,ij->i", plain, int8)
    before, after = (
        np.einsum("ij,ij->i", vectors[pairs[:, 0]], vectors[pairs[:, 1]]) for vectors in (plain, int8)
    )
    source = "sample sentences" if task is None else task.name
    labels: dict[str, float] = {}
    with np.errstate(invalid="ignore"):  # the result is NaN for constant cosines, which is refused below
        if task is not None:
            correlation(before, task.labels, task.name)  # refuses constant labels
            labels = {
                "spearman": spearman(before, task.labels),
                "spearman_int8": spearman(after, task.labels),
            }
        agreement = spearman(before, after)
    loss = Loss(len(rows), source, float(cosines.mean()), float(cosines.min()), agreement, **labels)
    if not (loss.cosine_mean >= _MIN_COSINE and loss.agreement >= _MIN_AGREEMENT):
        raise DataError(
            f"{loss}; expected a mean cosine of at least {_MIN_COSINE} and a Spearman of at least "
            f"{_MIN_AGREEMENT}: int8 is too imprecise for this model; nothing was written, export it in fp32",
            path=path,
        )
    return loss
