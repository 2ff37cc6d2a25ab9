"""Compares the real and imaginary halves of vectors, for ACL Fig. 3 and 10.

The first half of a vector has the real parts, the second the imaginary ones (ACL §3.1). The paper measures
distances in the t-SNE planes. These are not distances between vectors: t-SNE keeps neighbours, not distances,
and each half has its own plane. So distances are computed both in the planes and between vectors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairkit.base.errors import ConfigError, DataError
from papers.figures.numbers import Curve, Pairs, density

SAMPLES = 5  # pairs whose texts are joined by a line, as in the paper
RULES = ("gold", "cosine", "all")
_MIN_DISTANCE = 1e-6  # on a logarithmic axis, as a share of the longest distance


@dataclass(frozen=True)
class Zone:
    """The pairs to compare, and the parameters of t-SNE.

    `gold`: gold score / highest score > `above`, the same pairs for every model. This is our reading of the
    ACL paper (§5, Fig. 3), whose "weighted similarity score > 0.95" includes a pair with gold score 4.8 of 5.
    `cosine`: the model's |cosine| > `above`, where the gradient of the cosine vanishes. `all`: all pairs (ACL
    Fig. 10).
    """

    rule: str = "gold"
    above: float = 0.95
    most: int = 2_000
    perplexity: float = 30.0
    seed: int = 42

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise ConfigError(f"--zone {self.rule}: expected {', '.join(RULES)}")
        if not 0 <= self.above < 1:
            raise ConfigError(
                f"--above {self.above:g}: expected 0 or more and less than 1"
            )
        if not 2 <= self.perplexity < math.inf:
            raise ConfigError(
                f"--perplexity {self.perplexity:g}: expected 2 or more (5 to 50 is usual)"
            )

    def __str__(self) -> str:
        if self.rule == "all":
            return "all pairs"
        score = "|cosine|" if self.rule == "cosine" else "gold score / highest"
        return f"{score} > {self.above:g}"

    def members(self, pairs: Pairs) -> np.ndarray:
        """int64 (pair,): the indices of all pairs in the zone, ascending."""
        if self.rule == "all":
            return np.arange(len(pairs.labels))
        strength = np.abs(pairs.cosines)
        if self.rule == "gold":
            strength = pairs.labels / pairs.labels.max()
        return np.flatnonzero(strength > self.above)


@dataclass(frozen=True)
class HalfDistances:
    """Euclidean distances within pairs, for one half of the vectors."""

    values: np.ndarray
    mean: float
    density: Curve


@dataclass(frozen=True)
class Distances:
    """Distances within pairs for both halves, between vectors or in the planes."""

    real: HalfDistances
    imaginary: HalfDistances
    imaginary_larger: float
    logarithmic: bool


@dataclass(frozen=True)
class Sample:
    """A pair whose texts are joined by a line."""

    pair: int
    text1: str
    text2: str
    gold: float
    cosine: float


@dataclass(frozen=True)
class Halves:
    """The content of a model's figure."""

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


def halves(pairs: Pairs, zone: Zone, *, model: str) -> Halves:
    """Compare the halves of the vectors of the pairs in the saturation zone."""
    if pairs.vectors.shape[1] % 2:
        raise ConfigError(
            f"{model}: vectors of {pairs.vectors.shape[1]} dimensions, an odd dimension, have no real and"
            " imaginary halves: use --kind densities or another model"
        )
    members = zone.members(pairs)
    numbers = members
    if len(members) > zone.most:
        random = np.random.default_rng(zone.seed)
        numbers = np.sort(random.choice(members, zone.most, replace=False))
    used, rows = np.unique(pairs.rows[numbers], return_inverse=True)
    ends = rows.reshape(-1, 2)
    # t-SNE uses three neighbours per unit of perplexity.
    needed = int(3 * zone.perplexity) + 2
    if len(used) < needed or len(numbers) < SAMPLES:
        raise DataError(
            f"{len(numbers):,} pairs ({len(used):,} texts) with {zone}; t-SNE at perplexity"
            f" {zone.perplexity:g} needs {needed} texts or more: lower --above or --perplexity, or use"
            " --zone all",
            path=pairs.name,
        )
    real, imaginary = np.split(pairs.vectors[used].astype(np.float64), 2, axis=1)
    real_plane = _to_plane(real, zone)
    imaginary_plane = _to_plane(imaginary, zone)
    return Halves(
        zone=str(zone),
        in_zone=len(members),
        numbers=numbers,
        pairs=ends,
        real=real_plane,
        imaginary=imaginary_plane,
        length_real=float(np.linalg.norm(real, axis=1).mean()),
        length_imaginary=float(np.linalg.norm(imaginary, axis=1).mean()),
        original=distances(real, imaginary, ends),
        plane=distances(real_plane, imaginary_plane, ends, logarithmic=True),
        samples=_samples(pairs, numbers, zone.seed),
        perplexity=zone.perplexity,
        seed=zone.seed,
    )


def distances(
    real: np.ndarray,
    imaginary: np.ndarray,
    pairs: np.ndarray,
    *,
    logarithmic: bool = False,
) -> Distances:
    """Distances within pairs for each half."""
    first, second = pairs.T
    halves_of_texts = np.stack([real, imaginary])
    apart = np.linalg.norm(
        halves_of_texts[:, first] - halves_of_texts[:, second], axis=2
    )
    longest = float(apart.max()) or 1.0
    shown = apart
    axis = (0.0, 1.05 * longest)
    options: dict[str, Any] = {"bounds": (0.0, None)}
    if logarithmic:
        shown = np.log10(np.maximum(apart, _MIN_DISTANCE * longest))
        low = float(np.floor(shown.min()))
        high = float(np.ceil(shown.max()))
        axis = (low, max(high, low + 1))
        options = {}
    of_real, of_imaginary = (
        HalfDistances(values, float(values.mean()), density(drawn, axis, **options))
        for values, drawn in zip(apart, shown, strict=True)
    )
    is_larger = of_imaginary.values > of_real.values
    return Distances(of_real, of_imaginary, float(is_larger.mean()), logarithmic)


def _to_plane(half: np.ndarray, zone: Zone) -> np.ndarray:
    """t-SNE (van der Maaten and Hinton, 2008) of (text, half) to float64 (text, 2), centred."""
    from sklearn.manifold import TSNE

    tsne = TSNE(perplexity=zone.perplexity, random_state=zone.seed, init="pca")
    points: np.ndarray = tsne.fit_transform(half).astype(np.float64)
    points -= points.mean(axis=0)
    return points


def _samples(pairs: Pairs, numbers: np.ndarray, seed: int) -> list[Sample]:
    """Random pairs of different texts, or of any texts if these are too few."""
    first, second = pairs.rows[numbers].T
    candidates = np.flatnonzero(first != second)
    if len(candidates) < SAMPLES:
        candidates = np.arange(len(numbers))
    chosen = np.sort(
        np.random.default_rng(seed).choice(candidates, SAMPLES, replace=False)
    )
    return [
        Sample(
            pair=int(pair),
            text1=pairs.text1[row],
            text2=pairs.text2[row],
            gold=float(pairs.labels[row]),
            cosine=float(pairs.cosines[row]),
        )
        for pair, row in zip(chosen, numbers[chosen], strict=True)
    ]
