"""The dev metric: one number for held-out examples of any kind, or for several dev sets."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsFloat

import numpy as np

from aoe_train.evaluation.gain import EVEN, too_few
from aoe_train.evaluation.pair_metrics import Correlation, correlation
from aoe_train.evaluation.resample import MeanMetrics, Metrics, compare
from aoe_train.evaluation.tasks import Encode
from aoe_train.model.similarity import ROUNDING, all_similarities, comparable, pair_similarities
from aoe_train.records import ABSENT
from pairkit.app.errors import ConfigError, DataError

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder
    from aoe_train.records import Examples
    from aoe_train.settings.training import Similarity

_BLOCK = 128
_RESAMPLES = 1000
MOST_RESAMPLED = 1000  # dev rows; with more the interval is small anyway, and scoring again takes time


class DevMetric(NamedTuple):
    """A number by which the best checkpoint is chosen: larger is better, at most 1.

    `spearman` for labelled pairs, `triplet_accuracy` (see `is_nearer`) for triplets, `mrr` (mean reciprocal
    rank) for pairs of positives.
    """

    name: str
    value: float


MEAN = "mean"


@dataclass(frozen=True)
class DevScores:
    """A model's metric on each dev set, and the scores of its rows."""

    by_set: Mapping[str, DevMetric]
    chosen: str | None = None
    rows: Mapping[str, Metrics] = field(default_factory=dict)

    def ahead_of(self, before: DevScores | None, *, seed: int) -> dict[str, Any] | None:
        """The gain in the deciding metric with its interval; None for a mean of sets or for many rows."""
        name = self.chosen or (next(iter(self.rows)) if len(self.rows) == 1 else None)
        if name is None or before is None or self.rows[name].n > MOST_RESAMPLED:
            return None
        ours, metric = self.rows[name], self.by_set[name].name
        comparison = compare(ours, before.rows[name], resamples=_RESAMPLES, seed=seed).get(metric, EVEN)
        labels = ours.labels if isinstance(ours, Correlation) else np.arange(ours.n)
        rarer = min((labels == label).sum() for label in (0, 1)) if set(labels.tolist()) == {0, 1} else ours.n
        return {
            "difference": comparison.difference,
            "ci95": list(comparison.interval),
            "rows": ours.n,
            "too_few": too_few(ours.n, int(rarer)),
        }

    @property
    def deciding(self) -> DevMetric:
        """The metric that chooses the best weights: of one set, or the mean of all sets."""
        if self.chosen is not None:
            return self.by_set[self.chosen]
        if len(self.by_set) == 1:
            return next(iter(self.by_set.values()))
        return DevMetric(MEAN, math.fsum(metric.value for metric in self.by_set.values()) / len(self.by_set))

    @property
    def figures(self) -> list[float]:
        """The deciding metric, followed by those of all sets if there are several."""
        each = [metric.value for metric in self.by_set.values()] if len(self.by_set) > 1 else []
        return [self.deciding.value, *each]


def dev_metric(encode: Encode, examples: Examples, similarity: Similarity = "cosine") -> DevMetric:
    """Score held-out examples; each distinct text is encoded once."""
    name, rows = _score_rows(encode, examples, similarity)
    return DevMetric(name, rows.scores()[name])


def _score_rows(encode: Encode, examples: Examples, similarity: Similarity) -> tuple[str, Metrics]:
    """The name of the metric, and the scores of the rows."""
    if examples.kind == "single":
        raise ConfigError("held-out single texts can't be scored; give labelled pairs, positives or triplets")
    if not len(examples):
        raise DataError("the held-out data has no examples")
    vectors = encode([*examples.texts])
    if not np.isfinite(vectors).all():
        raise DataError("vectors of held-out texts contain NaN or infinity; after training, lower --lr")
    if examples.kind == "triplet":
        correct = is_nearer(vectors, examples.rows, similarity)
        return "triplet_accuracy", MeanMetrics({"triplet_accuracy": correct})
    if examples.labels is None:
        ranks = reciprocal_ranks(vectors, examples.rows, similarity, said=examples.content_ids)
        return "mrr", MeanMetrics({"mrr": ranks})
    similarities = pair_similarities(vectors, examples.rows, similarity)
    return "spearman", correlation(similarities, examples.labels, "held-out data")


def own_metric(metric: Callable[[Encoder], float], encoder: Encoder) -> DevMetric:
    """The value of a user's function of the encoder.

    Raises:
        ConfigError: It isn't a finite number.
    """
    value = metric(encoder)
    if not isinstance(value, SupportsFloat) or not math.isfinite(value):
        raise ConfigError(f"dev_metric: found {value!r:.60}; expected a finite number, larger is better")
    return DevMetric(getattr(metric, "__name__", type(metric).__name__), float(value))


def dev_scores(
    encode: Callable[..., np.ndarray],
    sets: Mapping[str, Examples],
    similarity: Similarity = "cosine",
    *,
    chosen: str | None = None,
) -> DevScores:
    """Score all dev sets; see `dev_metric`."""

    def score(name: str, rows: Examples) -> tuple[str, Metrics]:
        try:
            return _score_rows(partial(encode, prompt=rows.prompts), rows, similarity)
        except DataError as error:
            if len(sets) == 1:
                raise
            raise DataError(f"dev set {name}: {error}") from error

    scored = {name: score(name, rows) for name, rows in sets.items()}
    figures = {name: DevMetric(metric, rows.scores()[metric]) for name, (metric, rows) in scored.items()}
    return DevScores(figures, chosen, {name: rows for name, (_, rows) in scored.items()})


def is_nearer(vectors: np.ndarray, triplets: np.ndarray, similarity: Similarity = "cosine") -> np.ndarray:
    """Whether each anchor is more similar to its positive than to any negative, (row,); a tie is a miss."""
    anchors, others = np.broadcast_arrays(triplets[:, :1], triplets[:, 1:])
    pairs = np.stack([anchors.ravel(), others.ravel()], axis=1)
    # In one call, because similarities are rounded relative to the largest in a call.
    similarities = pair_similarities(vectors, pairs, similarity).reshape(others.shape)
    nearer = (similarities[:, :1] > similarities[:, 1:] + ROUNDING) | (others[:, 1:] == ABSENT)
    is_correct: np.ndarray = nearer.all(axis=1)
    return is_correct


def reciprocal_ranks(
    vectors: np.ndarray,
    pairs: np.ndarray,
    similarity: Similarity = "cosine",
    *,
    said: np.ndarray | None = None,
) -> np.ndarray:
    """1 / the rank of each row's positive among the positives of all rows, (row,).

    The anchor itself and its other positives are not ranked. Ties count against the positive, so a model
    with constant vectors scores low. Equal numbers in `said` are equal texts.
    """
    said = np.arange(len(vectors)) if said is None else said
    candidates, column = np.unique(pairs[:, 1], return_inverse=True)
    anchors, row = np.unique(pairs[:, 0], return_inverse=True)
    candidate_vectors = comparable(vectors[candidates], similarity)
    ranks = np.empty(len(pairs))
    for start in range(0, len(anchors), _BLOCK):
        block = anchors[start : start + _BLOCK]
        cosines = all_similarities(comparable(vectors[block], similarity), candidate_vectors, similarity)
        pair = np.flatnonzero((row >= start) & (row < start + _BLOCK))
        anchor, positive = row[pair] - start, column[pair]
        positive_cosines = cosines[anchor, positive]
        cosines[anchor, positive] = -np.inf
        cosines[said[block][:, None] == said[candidates]] = -np.inf
        ranks[pair] = 1 + (cosines[anchor] >= positive_cosines[:, None] - ROUNDING).sum(axis=1)
    return 1 / ranks
