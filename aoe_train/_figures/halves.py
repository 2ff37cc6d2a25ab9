"""Real against imaginary halves of vectors: the numbers of ACL Fig. 3 and 10.

The first half of a vector holds the real parts, the second the imaginary ones (ACL §3.1). The paper reads
distances off t-SNE's plane as if they were the vectors'; here each distance says which of the two it is.
t-SNE keeps neighbours, not distances, and each half has a plane of its own, so lengths in the planes compare
nothing but drawings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aoe_train._figures.distances import Distances, distances
from aoe_train._figures.pairs import Scored
from aoe_train._figures.tsne import Tsne, to_plane
from aoe_train._figures.zone import Zone
from pairkit.errors import ConfigError, DataError

SAMPLES = 5  # pairs whose texts are joined by a line, as in the paper


@dataclass(frozen=True)
class Sample:
    """A pair whose texts are joined by a line.

    Attributes:
        pair: Its number in the zone's pairs as drawn.
        gold: Its gold score.
    """

    pair: int
    text1: str
    text2: str
    gold: float
    cosine: float


@dataclass(frozen=True)
class Halves:
    """What a model's figure shows.

    Attributes:
        zone: In words.
        in_zone: Pairs in the zone.
        numbers: (pair,), the drawn pairs' numbers in the data; fewer than `in_zone` if those are too many.
        pairs: (pair, 2), rows of the points.
        real: float64 (text, 2), in t-SNE's plane of the real halves.
        imaginary: float64 (text, 2), in that of the imaginary halves.
        length_real: Mean Euclidean length of the real halves.
        length_imaginary: Mean Euclidean length of the imaginary halves.
        original: Distances between the halves themselves.
        plane: Distances in t-SNE's planes.
    """

    zone: str
    in_zone: int
    numbers: np.ndarray
    pairs: np.ndarray
    real: np.ndarray
    imaginary: np.ndarray
    length_real: float
    length_imaginary: float
    original: Distances
    plane: Distances
    samples: list[Sample]
    perplexity: float
    seed: int


def halves(scored: Scored, zone: Zone, tsne: Tsne, *, model: str) -> Halves:
    """Compare the halves of the vectors of the pairs in the saturation zone.

    Args:
        scored: The model's vectors.
        zone: Which pairs.
        tsne: How to bring each half to a plane.
        model: Its name, for messages.

    Raises:
        ConfigError: Vectors of odd dimension, or scikit-learn is not installed.
        DataError: Fewer texts in the zone than t-SNE needs.
    """
    check_even(scored.vectors.shape[1], model)
    members = zone.members(scored)
    numbers = _thinned(members, zone.most, tsne.seed)
    used, rows = np.unique(scored.pairs[numbers], return_inverse=True)
    pairs = rows.reshape(-1, 2)
    _check_enough(len(numbers), len(used), zone, tsne, scored.gold.name)
    real, imaginary = np.split(scored.vectors[used].astype(np.float64), 2, axis=1)
    real_plane, imaginary_plane = to_plane(real, tsne), to_plane(imaginary, tsne)
    return Halves(
        zone=str(zone),
        in_zone=len(members),
        numbers=numbers,
        pairs=pairs,
        real=real_plane,
        imaginary=imaginary_plane,
        length_real=_mean_length(real),
        length_imaginary=_mean_length(imaginary),
        original=distances(real, imaginary, pairs),
        plane=distances(real_plane, imaginary_plane, pairs, logarithmic=True),
        samples=_samples(scored, numbers, tsne.seed),
        perplexity=tsne.perplexity,
        seed=tsne.seed,
    )


def check_even(dim: int, model: str) -> None:
    """Refuse vectors that can't be halved.

    Raises:
        ConfigError: `dim` is odd.
    """
    if dim % 2:
        raise ConfigError(
            f"{model}: its vectors have {dim} numbers, an odd dimension; real and imaginary halves need an"
            " even one: draw --kind densities, or choose another model"
        )


def _mean_length(vectors: np.ndarray) -> float:
    return float(np.linalg.norm(vectors, axis=1).mean())


def _thinned(members: np.ndarray, most: int, seed: int) -> np.ndarray:
    if len(members) <= most:
        return members
    return np.sort(np.random.default_rng(seed).choice(members, most, replace=False))


def _check_enough(pairs: int, texts: int, zone: Zone, tsne: Tsne, where: str) -> None:
    needed = tsne.texts_needed
    if texts < needed or pairs < SAMPLES:
        raise DataError(
            f"{pairs:,} pairs ({texts:,} texts) with {zone}; t-SNE at perplexity {tsne.perplexity:g} needs"
            f" {needed} texts or more: lower --above, lower --perplexity, or give --zone all",
            path=where,
        )


def _samples(scored: Scored, numbers: np.ndarray, seed: int) -> list[Sample]:
    """A seeded choice among the pairs of two different texts, or among all if those are too few."""
    drawn = scored.pairs[numbers]
    different = np.flatnonzero(drawn[:, 0] != drawn[:, 1])
    among = different if len(different) >= SAMPLES else np.arange(len(numbers))
    chosen = np.sort(np.random.default_rng(seed).choice(among, SAMPLES, replace=False))
    gold = scored.gold
    return [
        Sample(
            int(pair), gold.text1[row], gold.text2[row], float(gold.labels[row]), float(scored.cosines[row])
        )
        for pair, row in zip(chosen, numbers[chosen], strict=True)
    ]
