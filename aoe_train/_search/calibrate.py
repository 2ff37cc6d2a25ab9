"""From scores to probabilities: how often a text that was found says the same as the one it was found for.

Texts of labelled pairs that are in the index are searched for, each with what it finds a row: the cosine,
the share that the words' score is of the most that a text could have, and whether people call the two the
same. Logistic regression over these (Platt, 1999, with two scores instead of one) gives the probability;
texts that have no partner are searched for as well, as they are asked for in use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from aoe_train._model_folder.files import Foreign, decode, read_object
from pairkit import logistic
from pairkit.errors import DataError

if TYPE_CHECKING:
    from jaxtyping import Float

CALIBRATION_FILE, FIGURE = "calibration.json", "reliability"
FEWEST = 50  # texts with a partner


class Bin(Foreign):
    """Hits of like probability.

    Attributes:
        low: The lowest probability; the bins are a tenth wide.
        hits: How many.
        told: Their mean probability.
        seen: The share that says the same.
    """

    low: float
    hits: int
    told: float
    seen: float


class Calibration(Foreign):
    """What turns a hit's scores into a probability, and how well it does.

    Attributes:
        weights: Of 1, the cosine and the share of words.
        texts: How many were searched for.
        with_partner: How many of them have a partner in the index.
        hits: Rows that the weights were fitted to.
        split: Of the pairs that they were fitted to.
        judged: Of the pairs by which the rest is told; the same where there is one split only.
        brier: The mean square of the difference between probability and truth.
        reliability: Told and seen, by tenths.
    """

    format: Literal[1] = 1
    weights: Annotated[list[float], Field(min_length=3, max_length=3)]
    texts: int
    with_partner: int
    hits: int
    split: str
    judged: str
    brier: float
    reliability: list[Bin]

    def probability(self, scores: Float[np.ndarray, "hit 2"]) -> Float[np.ndarray, " hit"]:
        """Of hits, from their cosines and shares of words."""
        return logistic.probability(scores, np.array(self.weights))

    def lowest_cosine(self, probability: float) -> float:
        """The cosine below which no words make a hit so probable; from -1 to 1."""
        start, by_cosine, by_words = self.weights
        if by_cosine <= 0:
            return -1.0
        needed = log(probability / (1 - probability)) - start - max(by_words, 0.0)  # all words are shared
        return min(max(needed / by_cosine, -1.0), 1.0)


def partners(pairs: Sequence[tuple[str, str, int]]) -> dict[str, set[str]]:
    """Texts and those that labels call the same, both ways; empty for texts without any."""
    found: dict[str, set[str]] = {}
    for one, other, label in pairs:
        for text, partner in ((one, other), (other, one)):
            known = found.setdefault(text, set())
            if label == 1:
                known.add(partner)
    return found


def fit(scores: Float[np.ndarray, "hit 2"], same: Float[np.ndarray, " hit"]) -> Float[np.ndarray, " 3"]:
    """Weights of 1, cosine and words.

    Raises:
        DataError: All hits are of one kind.
    """
    if same.all() or not same.any():
        raise DataError("calibration: all that is found is of one kind; give pairs with labels 0 and 1")
    return logistic.fit(scores, same)


def reliability(told: Float[np.ndarray, " hit"], same: Float[np.ndarray, " hit"]) -> tuple[float, list[Bin]]:
    """Brier's score, and told and seen by tenths that have hits."""
    brier, tenths = logistic.reliability(told, same)
    return brier, [Bin(low=one.low, hits=one.cases, told=one.told, seen=one.seen) for one in tenths]


def draw(found: Calibration, folder: Path) -> None:
    """Write the reliability as a figure, `reliability.png` and `.svg`, into a folder.

    Raises:
        ConfigError: matplotlib is not installed, or the folder can't be written.
    """
    from aoe_train._figures.draw_reliability import draw_reliability
    from aoe_train._figures.style import paper_style, write_figure

    told, seen, hits = zip(*((one.told, one.seen, one.hits) for one in found.reliability), strict=True)
    title = f"Hits of texts of {found.judged}; Brier's score {found.brier:.3f}"
    width = 1 / logistic.TENTHS
    with paper_style():
        write_figure(draw_reliability(told, seen, hits, title=title, width=width), folder, FIGURE)


def read_calibration(folder: Path) -> Calibration | None:
    """What an index knows of probabilities; None where it knows nothing.

    Raises:
        DataError: The file is damaged.
    """
    path = folder / CALIBRATION_FILE
    return decode(Calibration, read_object(path), path, "delete the file") if path.is_file() else None


def queries(known: Mapping[str, set[str]], place_of: Mapping[str, int]) -> Iterator[tuple[int, set[int]]]:
    """Places of texts that are in the index, each with the places of its partners there."""
    for text, same in known.items():
        if text in place_of:
            yield place_of[text], {place_of[other] for other in same - {text} if other in place_of}
