"""One figure for how well a model does on held-out examples of any kind, and one over several dev sets."""

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
MOST_RESAMPLED = (
    1000  # held-out rows; with more the interval is small, and to score them once more takes time
)


class DevMetric(NamedTuple):
    """A figure to choose the best checkpoint by: larger is better, at most 1.

    `spearman` for labelled pairs, `triplet_accuracy` (see `is_nearer`) for triplets, `mrr` (mean reciprocal
    rank) for positives alone.
    """

    name: str
    value: float


MEAN = "mean"


@dataclass(frozen=True)
class DevScores:
    """How well a model does on each dev set."""

    by_set: Mapping[str, DevMetric]
    chosen: str | None = None
    rows: Mapping[str, Metrics] = field(default_factory=dict)

    def ahead_of(self, before: DevScores | None, *, seed: int) -> dict[str, Any] | None:
        """The gain of the deciding figure with its interval; None of several sets, or of many rows."""
        name = self.chosen or (next(iter(self.rows)) if len(self.rows) == 1 else None)
        if name is None or before is None or self.rows[name].n > MOST_RESAMPLED:
            return None
        ours, metric = self.rows[name], self.by_set[name].name
        ahead = compare(ours, before.rows[name], resamples=_RESAMPLES, seed=seed).get(metric, EVEN)
        labels = ours.labels if isinstance(ours, Correlation) else np.arange(ours.n)
        rarer = min((labels == label).sum() for label in (0, 1)) if set(labels.tolist()) == {0, 1} else ours.n
        return {
            "difference": ahead.difference,
            "ci95": list(ahead.interval),
            "rows": ours.n,
            "too_few": too_few(ours.n, int(rarer)),
        }

    @property
    def deciding(self) -> DevMetric:
        """What chooses the best weights: one figure, or the mean of all, whatever they measure."""
        if self.chosen is not None:
            return self.by_set[self.chosen]
        if len(self.by_set) == 1:
            return next(iter(self.by_set.values()))
        return DevMetric(MEAN, math.fsum(metric.value for metric in self.by_set.values()) / len(self.by_set))

    @property
    def figures(self) -> list[float]:
        """The deciding one, and where there are several dev sets, that of each."""
        each = [metric.value for metric in self.by_set.values()] if len(self.by_set) > 1 else []
        return [self.deciding.value, *each]


def dev_metric(encode: Encode, examples: Examples, similarity: Similarity = "cosine") -> DevMetric:
    """Score held-out examples by what vectors are compared by; each distinct text is encoded once."""
    name, rows = _score_rows(encode, examples, similarity)
    return DevMetric(name, rows.scores()[name])


def _score_rows(encode: Encode, examples: Examples, similarity: Similarity) -> tuple[str, Metrics]:
    """The name of the figure, and the scores of all rows from which it is computed."""
    if examples.kind == "single":
        raise ConfigError(
            "held-out data of single texts can't be scored; give pairs with labels or positives"
        )
    if not len(examples):
        raise DataError("the held-out data has no examples")
    vectors = encode([*examples.texts])
    if not np.isfinite(vectors).all():
        raise DataError(
            "the model gives held-out texts vectors that are not numbers (NaN, infinity); if it has just been"
            " trained, lower --lr"
        )
    if examples.kind == "triplet":
        right = is_nearer(vectors, examples.rows, similarity)
        return "triplet_accuracy", MeanMetrics({"triplet_accuracy": right})
    if examples.labels is None:
        ranks = reciprocal_ranks(vectors, examples.rows, similarity, said=examples.content_ids)
        return "mrr", MeanMetrics({"mrr": ranks})
    alike = pair_similarities(vectors, examples.rows, similarity)
    return "spearman", correlation(alike, examples.labels, "held-out data")


def own_metric(metric: Callable[[Encoder], float], encoder: Encoder) -> DevMetric:
    """The figure of a user's own function of the encoder.

    Raises:
        ConfigError: It isn't a finite number.
    """
    value = metric(encoder)
    if not isinstance(value, SupportsFloat) or not math.isfinite(value):
        raise ConfigError(
            f"dev_metric: found {value!r:.60}; expected a finite number, larger for a better model"
        )
    return DevMetric(getattr(metric, "__name__", type(metric).__name__), float(value))


def dev_scores(
    encode: Callable[..., np.ndarray],
    sets: Mapping[str, Examples],
    similarity: Similarity = "cosine",
    *,
    chosen: str | None = None,
) -> DevScores:
    """Score held-out examples by dev set; see `dev_metric`."""

    def score(name: str, rows: Examples) -> tuple[str, Metrics]:
        try:
            return _score_rows(partial(encode, prompt=rows.prompts), rows, similarity)
        except DataError as error:
            if len(sets) == 1:
                raise
            raise DataError(f"dev set {name}: {error}") from error

    found = {name: score(name, rows) for name, rows in sets.items()}
    figures = {name: DevMetric(metric, rows.scores()[metric]) for name, (metric, rows) in found.items()}
    return DevScores(figures, chosen, {name: rows for name, (_, rows) in found.items()})


def is_nearer(vectors: np.ndarray, triplets: np.ndarray, similarity: Similarity = "cosine") -> np.ndarray:
    """Whether each row's anchor is nearer to the positive than to every one of its negatives, (row,).

    Near is a large cosine, or what else vectors are compared by; a tie is a miss.
    """
    anchors, others = np.broadcast_arrays(triplets[:, :1], triplets[:, 1:])
    pairs = np.stack([anchors.ravel(), others.ravel()], axis=1)
    # In one call, as each rounds to the largest value that it has.
    alike = pair_similarities(vectors, pairs, similarity).reshape(others.shape)
    nearer = (alike[:, :1] > alike[:, 1:] + ROUNDING) | (others[:, 1:] == ABSENT)
    found: np.ndarray = nearer.all(axis=1)
    return found


def reciprocal_ranks(
    vectors: np.ndarray,
    pairs: np.ndarray,
    similarity: Similarity = "cosine",
    *,
    said: np.ndarray | None = None,
) -> np.ndarray:
    """1 / the rank of each row's positive by similarity among the positives of all rows, (row,).

    The anchor itself and its other positives do not compete. A tie counts against the positive, so that a
    model that tells no text from another scores low.
    """
    said = np.arange(len(vectors)) if said is None else said
    candidates, column = np.unique(pairs[:, 1], return_inverse=True)
    anchors, row = np.unique(pairs[:, 0], return_inverse=True)
    towards = comparable(vectors[candidates], similarity)
    ranks = np.empty(len(pairs))
    for start in range(0, len(anchors), _BLOCK):
        block = anchors[start : start + _BLOCK]
        cosines = all_similarities(comparable(vectors[block], similarity), towards, similarity)
        mine = np.flatnonzero((row >= start) & (row < start + _BLOCK))
        own, positive = row[mine] - start, column[mine]
        of_positive = cosines[own, positive]
        cosines[own, positive] = -np.inf
        cosines[said[block][:, None] == said[candidates]] = -np.inf
        ranks[mine] = 1 + (cosines[own] >= of_positive[:, None] - ROUNDING).sum(axis=1)
    return 1 / ranks
