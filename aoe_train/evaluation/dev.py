"""Held-out data of a run: dev sets that choose the weights, and judged pairs that must show a gain."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple, SupportsFloat

import numpy as np

from aoe_train.data.examples import Say
from aoe_train.evaluation.gain import EVEN, Gain, gain, too_few
from aoe_train.evaluation.overlap import (
    digests,
    overlap,
    trained_examples,
    training_digests,
)
from aoe_train.evaluation.pair_metrics import Correlation, correlation
from aoe_train.evaluation.pair_task import PairSource, PairTask, pair_task
from aoe_train.evaluation.search_results import is_nearer, reciprocal_ranks
from aoe_train.evaluation.tasks import (
    Encode,
    MeanMetrics,
    Metrics,
    Resampling,
    TaskVectors,
    compare,
)
from aoe_train.model.run_folder import add_texts
from aoe_train.model.similarity import pair_similarities
from pairkit.base.errors import ConfigError, DataError
from pairkit.dataset.reading.in_memory import Source, source_name
from pairkit.dataset.records import is_search

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder
    from aoe_train.objectives.training_rows import Examples
    from aoe_train.settings.train_settings import Similarity, TrainSettings

MEAN = "mean"  # the name of the mean of several dev sets
# With more rows in all dev sets, the trained model isn't scored again for an interval,
# which would be small.
_MAX_GAIN_ROWS = 1000
_RESAMPLES = 1000


class DevMetric(NamedTuple):
    """The number that chooses the best checkpoint, at most 1: `spearman`, `triplet_accuracy` or `mrr`."""

    name: str
    value: float


@dataclass(frozen=True)
class DevScores:
    """A model's metric on each dev set, and the metrics from which a gain is computed."""

    by_set: Mapping[str, DevMetric]
    chosen: str | None = None
    metrics_by_set: Mapping[str, Metrics] = field(default_factory=dict)

    @property
    def gain_set(self) -> str | None:
        """The set whose gain gets an interval; None for a mean of sets or for many rows."""
        rows = sum(metrics.n for metrics in self.metrics_by_set.values())
        if rows > _MAX_GAIN_ROWS:
            return None
        if self.chosen is None and len(self.metrics_by_set) == 1:
            return next(iter(self.metrics_by_set))
        return self.chosen

    def gain_over(self, before: DevScores, *, seed: int) -> dict[str, object] | None:
        """The gain in the deciding metric with its interval; None without a `gain_set`."""
        name = self.gain_set
        if name is None:
            return None
        ours = self.metrics_by_set[name]
        theirs = before.metrics_by_set[name]
        comparisons = compare(ours, theirs, Resampling(_RESAMPLES, seed))
        ahead = comparisons.get(self.by_set[name].name, EVEN)
        rarer = ours.n
        if isinstance(ours, Correlation) and set(ours.labels.tolist()) == {0, 1}:
            rarer = ours.rarer_label()
        return {
            "difference": ahead.difference,
            "ci95": list(ahead.interval),
            "rows": ours.n,
            "too_few": too_few(ours.n, rarer),
        }

    @property
    def deciding(self) -> DevMetric:
        """The metric that chooses the best weights: of one set, or the mean of all sets."""
        if self.chosen is not None:
            return self.by_set[self.chosen]
        metrics = list(self.by_set.values())
        if len(metrics) == 1:
            return metrics[0]
        return DevMetric(MEAN, fmean(metric.value for metric in metrics))

    def log_entry(self, key: str) -> dict[str, float]:
        """The deciding metric as `key`; of several sets also each one's, such as `key.nli`."""
        entry = {key: self.deciding.value}
        if len(self.by_set) > 1:
            for name, metric in self.by_set.items():
                entry[f"{key}.{name}"] = metric.value
        return entry


def _score_rows(encode: Encode, examples: Examples, similarity: Similarity) -> Metrics:
    """The scores of the rows; the first metric is the one that counts."""
    if examples.kind == "single":
        raise ConfigError(
            "held-out single texts can't be scored; give labelled pairs, positives or triplets"
        )
    if not len(examples):
        raise DataError("the held-out data has no examples")
    vectors = encode([*examples.texts])
    if not np.isfinite(vectors).all():
        raise DataError(
            "vectors of held-out texts contain NaN or infinity; after training, lower --lr"
        )
    if examples.kind == "triplet":
        return MeanMetrics(
            {"triplet_accuracy": is_nearer(vectors, examples.rows, similarity)}
        )
    if examples.labels is None:
        ranks = reciprocal_ranks(
            vectors, examples.rows, similarity, content_ids=examples.content_ids
        )
        return MeanMetrics({"mrr": ranks})
    similarities = pair_similarities(vectors, examples.rows, similarity)
    return correlation(similarities, examples.labels, "held-out data")


def own_metric(metric: Callable[[Encoder], float], encoder: Encoder) -> DevMetric:
    """The value of a user's function of the encoder."""
    value = metric(encoder)
    try:
        number = float(value) if isinstance(value, SupportsFloat) else math.nan
    except (RuntimeError, TypeError, ValueError):  # several numbers, as in an array
        number = math.nan
    if not math.isfinite(number):
        raise ConfigError(
            f"dev_metric: found {value!r:.60}; expected a finite number, larger is better"
        )
    return DevMetric(getattr(metric, "__name__", type(metric).__name__), number)


def dev_scores(
    encode: Callable[..., np.ndarray],
    sets: Mapping[str, Examples],
    similarity: Similarity = "cosine",
    *,
    chosen: str | None = None,
) -> DevScores:
    """Score all dev sets; each distinct text is encoded once."""

    def score(name: str, rows: Examples) -> Metrics:
        try:
            return _score_rows(partial(encode, prompt=rows.prompts), rows, similarity)
        except DataError as error:
            if len(sets) == 1:
                raise
            raise DataError(f"dev set {name}: {error}") from error

    scored = {name: score(name, rows) for name, rows in sets.items()}
    by_set = {}
    for name, metrics in scored.items():
        first, *_ = metrics.scores().items()
        by_set[name] = DevMetric(*first)
    return DevScores(by_set, chosen, scored)


@dataclass(frozen=True)
class JudgedPairs:
    """Judged pairs as a task that is named after their source."""

    task: PairTask

    @classmethod
    def read(cls, source: Source, say: Say) -> JudgedPairs:
        """Read the pairs; their labels must differ."""
        pairs = PairSource(source, say=say)
        name = source_name(source)
        frame = pairs.frame()
        if is_search(frame):
            raise ConfigError(
                f"--accept-on {name}: has judged search results; expected judged pairs (compare models on"
                " search results with `aoe evaluate --against`)"
            )
        task = pair_task(name, frame)
        if len(np.unique(task.labels)) < 2:
            raise DataError(
                "all labels are equal; expected different labels", path=name
            )
        is_binary = bool(np.isin(task.labels, (0, 1)).all())
        return cls(replace(task, is_binary=is_binary, parts={}))

    def __len__(self) -> int:
        return len(self.task.labels)

    @property
    def identity(self) -> str:
        """SHA-256 of the pairs, their labels and the labels' probabilities."""
        digest = hashlib.sha256()
        add_texts(digest, self.task.texts)
        for array in (self.task.labels, self.task.probabilities):
            digest.update(b"-" if array is None else np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def warning(self, training_texts: Iterable[str]) -> str | None:
        """A warning if training texts are among the judged texts."""
        shared = overlap(self.task, digests(training_texts))
        if not shared.texts:
            return None
        return f"warning: {self.task.name}: the model is {shared}, so its score is too high"

    def score(self, encode: Encode, similarity: Similarity) -> Metrics:
        """A model's scores of the pairs."""
        vectors = TaskVectors(encode, [self.task.texts], similarity=similarity)
        return self.task.measure(vectors).whole

    def gain(
        self,
        model: Metrics,
        backbone: Metrics,
        data: Iterable[Examples],
        *,
        seed: int,
    ) -> Gain:
        """The model's gain over the backbone on pairs that aren't in its training data."""
        trained = trained_examples(self.task, training_digests(data))
        result = gain(model, backbone, Resampling(_RESAMPLES, seed), trained)
        if result is None:
            raise DataError(
                "its labels are too uncertain to compare models; use other pairs",
                path=self.task.name,
            )
        return result


def check_judged(source: Source | None, settings: TrainSettings) -> None:
    """Refuse settings with which the backbone can't be scored or restored."""
    if source is None:
        if "if_not_better" in settings.optim.model_fields_set:
            raise ConfigError(
                "--if-not-better without --accept-on has no effect; give --accept-on PAIRS, or leave it out"
            )
        return
    reason = None
    if settings.run.shard:
        reason = "run.shard: no process has the whole model"
    elif settings.encoder.dense:
        reason = "encoder.dense: randomly initialised layers have no backbone to compare with"
    if reason is not None:
        raise ConfigError(
            f"--accept-on with {reason}; leave it out, and compare afterwards with `aoe evaluate --against`"
        )
