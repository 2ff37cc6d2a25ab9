"""Pairs with gold scores, and what a model makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from aoe_train._conflicts import Say, silent
from aoe_train._evaluate.correlation import correlation
from aoe_train._evaluate.pairs import read_one_split, shown_name
from aoe_train._evaluate.vectors import Encode, Vectors
from aoe_train._similarity import pair_similarities
from pairkit.errors import DataError
from pairkit.in_memory import Source, source_name
from pairkit.labels import AS_FOUND, LabelRules


@dataclass(frozen=True)
class Gold:
    """Pairs and what people say of them.

    Attributes:
        name: The source's last part.
        labels: float64 (pair,), larger = more alike, not constant.
    """

    name: str
    text1: list[str]
    text2: list[str]
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Scored:
    """A model's vectors of the pairs' texts.

    Attributes:
        vectors: float32 (text, dim), one row for each distinct text.
        pairs: int64 (pair, 2), rows of `vectors`.
        cosines: float64 (pair,)
    """

    gold: Gold
    vectors: np.ndarray
    pairs: np.ndarray
    cosines: np.ndarray


def read_gold(
    source: Source,
    split: str | None = None,
    rules: LabelRules = AS_FOUND,
    say: Say = silent,
    columns: Mapping[str, str] | None = None,
) -> Gold:
    """Labelled pairs; see `aoe_train._evaluate.pairs.read_one_split`.

    Raises:
        ConfigError, RemoteError: See there.
        DataError: See there; or labels that don't differ.
    """
    frame = read_one_split(source, split, rules, say, columns)
    labels = frame["label"].cast(pl.Float64).round(6).to_numpy()  # 32-bit scores: 4.8, not 4.80000019
    if len(np.unique(labels)) < 2:
        said = f"every label is {labels[0]:g}" if len(labels) else "there are no pairs"
        raise DataError(f"{said}; figures by gold score need labels that differ", path=source_name(source))
    return Gold(shown_name(source), frame["text1"].to_list(), frame["text2"].to_list(), labels)


def score(encode: Encode, gold: Gold) -> Scored:
    """Encode each distinct text once, and compare the texts of each pair.

    Raises:
        DataError: Vectors that are not numbers, or that all are alike.
    """

    def finite(texts: list[str]) -> np.ndarray:
        vectors = encode(texts)
        bad = int((~np.isfinite(vectors).all(axis=1)).sum())
        if bad:
            raise DataError(
                f"the model gives {bad:,} of {len(texts):,} texts vectors that are not numbers (NaN,"
                " infinity); its training has diverged: train it with a lower --lr",
                path=gold.name,
            )
        return vectors

    vectors = Vectors(finite, [gold.text1, gold.text2])
    pairs = np.stack([vectors.rows(gold.text1), vectors.rows(gold.text2)], axis=1)
    cosines = pair_similarities(vectors.matrix, pairs, "cosine")
    correlation(cosines, gold.labels, gold.name)  # says it, if there is nothing to correlate
    return Scored(gold, vectors.matrix, pairs, cosines)
