"""Your own tasks for `aoe_train.evaluate`: texts, and metrics of their vectors.

A task is any object with `name`, `texts` and `measure(vectors)`, which returns metrics for each example.
`evaluate` computes scores with bootstrap intervals, and paired tests between models. A resample is a row of
counts of the examples, and a metric is a function of counts, so one implementation of a metric is enough for
scores, intervals and tests. Source: Efron & Tibshirani 1993, chapters 13 (percentile interval) and 16 (bootstrap
tests); pairing by common resamples: Koehn 2004.

Example:
    import numpy as np
    import aoe_train
    from aoe_train.evaluation.tasks import MeanMetrics, TaskVectors

    class Nearest:
        name = "nearest"
        queries, answers = ["a small dog"], ["a puppy", "a red car"]  # query k wants answer k
        texts = [*queries, *answers]

        def measure(self, vectors: TaskVectors) -> MeanMetrics:
            queries, answers = (vectors.matrix[vectors.rows(texts)] for texts in (self.queries, self.answers))
            best = (queries @ answers.T).argmax(axis=1)
            return MeanMetrics({"accuracy": best == np.arange(len(queries))})

    aoe_train.evaluate("model", tasks=[Nearest()])
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from aoe_train.model.collection import Collection
from aoe_train.model.similarity import comparable, scaled_to_one
from aoe_train.settings.train_settings import NamedPrompts, Purpose, Similarity
from pairkit.base.errors import ConfigError, DataError

__all__ = [
    "EvaluationTask",
    "Input",
    "MeanMetrics",
    "Metrics",
    "TaskMetrics",
    "TaskVectors",
]

_MAX_COUNTS = 2_000_000  # that are in memory at a time: 16 MB
_MIN_RESAMPLES = 100  # fewer leave hardly any in the tails of a 95 % interval
_ROUNDING = 1e-12  # smaller differences between metrics are ties

Split = Literal["test", "validation"]

Encode = Callable[..., np.ndarray]
"""Maps texts to float32 (text, dim), such as `Encoder.encode`."""


@dataclass(frozen=True)
class Resampling:
    """Bootstrap resamples for intervals, which cover `level` of them, and tests."""

    number: int = 1000
    seed: int = 42
    level: float = 0.95

    def for_several(self, comparisons: int) -> Resampling:
        """Wider intervals, whose joint level is `level` (Bonferroni), from more resamples."""
        outside = (1 - self.level) / comparisons
        return Resampling(self.number * comparisons, self.seed, 1 - outside)

    def __post_init__(self) -> None:
        if self.number < _MIN_RESAMPLES and self.number != 0:
            raise ConfigError(
                f"--resamples {self.number}: expected at least {_MIN_RESAMPLES}, or 0 for none"
            )


class Interval(NamedTuple):
    """Bounds of the middle part of the resamples; `Resampling.level` is its share."""

    low: float
    high: float


class Metrics(ABC):
    """Metrics of a model on the examples of a task, for any weights of the examples."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of examples."""

    @abstractmethod
    def figures(self, counts: np.ndarray) -> Mapping[str, np.ndarray]:
        """Each metric (draw,), with example e weighted by counts[d, e]."""

    def scores(self) -> dict[str, float]:
        """Each metric with equal weights."""
        figures = self.figures(np.ones((1, self.n)))
        return {name: values.item() for name, values in figures.items()}


@dataclass(frozen=True)
class MeanMetrics(Metrics):
    """Metrics that are means over examples, such as accuracy or nDCG, from the values (example,) of each."""

    outcomes: Mapping[str, np.ndarray]

    def __post_init__(self) -> None:
        lengths = {len(values) for values in self.outcomes.values()}
        if len(lengths) != 1 or 0 in lengths:
            raise DataError(
                f"metrics have {sorted(lengths)} values; expected the same number of values in each, one per"
                " example"
            )

    @property
    def n(self) -> int:
        """Number of examples."""
        return len(next(iter(self.outcomes.values())))

    def figures(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        """Weighted means."""
        total = counts.sum(axis=1)
        means = {}
        for name, values in self.outcomes.items():
            means[name] = counts @ np.asarray(values, float) / total
        return means


def select_examples(metrics: Any, examples: np.ndarray) -> Any:
    """The metrics of some examples, from a dataclass of arrays (example,), or of mappings to these."""
    chosen: dict[str, Any] = {}
    for attribute in fields(metrics):
        values = getattr(metrics, attribute.name)
        if isinstance(values, Mapping):
            by_name = {key: np.asarray(values[key])[examples] for key in values}
            chosen[attribute.name] = by_name
        elif isinstance(values, np.ndarray):
            chosen[attribute.name] = values[examples]
    return replace(metrics, **chosen)


@dataclass(frozen=True)
class Comparison:
    """The difference between two models on the same examples."""

    difference: float
    interval: Interval
    p: float

    def to_dict(self) -> dict[str, Any]:
        """The object in JSON."""
        return {"difference": self.difference, "ci95": list(self.interval), "p": self.p}


def intervals(metrics: Metrics, resamples: Resampling) -> dict[str, Interval]:
    """The percentile bootstrap interval of each metric that is defined in some resample."""
    (resampled,) = _resampled([metrics], resamples)
    bounds = {}
    for name, values in resampled.items():
        if not np.isnan(values).all():
            bounds[name] = _interval(values, resamples.level)
    return bounds


def compare(
    model: Metrics, rival: Metrics, resamples: Resampling
) -> dict[str, Comparison]:
    """Compare two models on every metric that is defined, and not the same constant, with the same resamples.

    Without resamples, there are no comparisons.
    """
    if model.n != rival.n:
        raise DataError(
            f"{model.n} examples against {rival.n}; a paired test needs the same examples"
        )
    if not resamples.number:
        return {}
    ours, theirs = _resampled([model, rival], resamples)
    scores = model.scores()
    rival_scores = rival.scores()
    comparisons = {}
    for name in scores:
        difference = float(_difference(scores[name], rival_scores[name]))
        # Resamples that lack a label have no AUC, for example.
        is_defined = ~np.isnan(ours[name] + theirs[name])
        if np.isnan(difference) or not is_defined.any():
            continue
        our_values = ours[name][is_defined]
        their_values = theirs[name][is_defined]
        varies = max(np.ptp(our_values), np.ptp(their_values)) > _ROUNDING
        if not varies and not difference:
            continue
        resampled = _difference(our_values, their_values)
        tail = min((resampled <= 0).sum(), (resampled >= 0).sum())
        two_sided = 2 * (tail + 1) / (len(resampled) + 1)
        p = float(min(1, two_sided))
        comparisons[name] = Comparison(
            difference, _interval(resampled, resamples.level), p
        )
    return comparisons


def _difference(ours: np.ndarray | float, theirs: np.ndarray | float) -> np.ndarray:
    """The difference between two models, 0 if only rounding decides it."""
    difference = np.subtract(ours, theirs)
    return np.where(np.abs(difference) <= _ROUNDING, 0.0, difference)


def _interval(values: np.ndarray, level: float) -> Interval:
    percentiles = [50 * (1 - level), 50 * (1 + level)]
    low, high = np.nanpercentile(values, percentiles)
    return Interval(float(low), float(high))


def _resampled(
    models: Sequence[Metrics], resamples: Resampling
) -> list[dict[str, np.ndarray]]:
    """The metrics of each model in all resamples."""
    blocks: list[dict[str, list[np.ndarray]]] = [defaultdict(list) for _ in models]
    n = models[0].n
    generator = np.random.default_rng(resamples.seed)
    step = max(1, _MAX_COUNTS // n)
    for start in range(0, resamples.number, step):
        rows = min(step, resamples.number - start)
        drawn = generator.integers(n, size=(rows, n))
        cells = drawn + n * np.arange(rows)[:, None]
        counts = np.bincount(cells.ravel(), minlength=rows * n).astype(float)
        for model, by_name in zip(models, blocks, strict=True):
            for name, values in model.figures(counts.reshape(rows, n)).items():
                by_name[name].append(values)
    return [
        {name: np.concatenate(values) for name, values in by_name.items()}
        for by_name in blocks
    ]


@dataclass(frozen=True, slots=True)
class SearchText:
    """A query or document, encoded with the model's prompt for queries or documents, if it has one."""

    text: str
    is_query: bool


Input = str | tuple[str, str] | SearchText
"""A text, or two texts that form one input with the model's separator between them."""


class TaskVectors:
    """The vectors of the distinct inputs of several tasks, encoded in one call.

    Attributes:
        matrix: float32 (input, dim).
        similarity: The model's measure: cosine, dot, euclidean or manhattan.
    """

    def __init__(
        self,
        encode: Encode,
        collections: Iterable[Sequence[Input]],
        *,
        separator: str = " ",
        similarity: Similarity = "cosine",
        prompts: NamedPrompts | None = None,
    ) -> None:
        query_prompt = None
        document_prompt = None
        if prompts is not None and (prompts.query or prompts.document):
            query_prompt = prompts.query
            document_prompt = prompts.document

        def prompted(item: Input) -> tuple[str | None, str]:
            if isinstance(item, SearchText):
                return query_prompt if item.is_query else document_prompt, item.text
            return None, item if isinstance(item, str) else separator.join(item)

        self.similarity = similarity
        keys = {item: prompted(item) for items in collections for item in items}
        if not keys:
            raise DataError("no texts to encode; a task needs some")
        texts_by_prompt = defaultdict[str | None, dict[str, None]](dict)
        for prompt, text in keys.values():
            texts_by_prompt[prompt][text] = None
        row: dict[tuple[str | None, str], int] = {}
        for prompt, texts in texts_by_prompt.items():
            for text in texts:
                row[prompt, text] = len(row)
        self._row = {item: row[key] for item, key in keys.items()}
        self.matrix = _encoded(encode, texts_by_prompt)

    def among(self, inputs: Sequence[Input], purpose: Purpose) -> TaskVectors:
        """These vectors as in an index for this purpose, of all inputs that aren't queries."""
        units = scaled_to_one(self.matrix.astype(np.float32))
        texts = [item for item in inputs if not getattr(item, "is_query", False)]
        searched = units[np.unique(self.rows(texts))]
        collection = Collection(searched, purpose)
        transformed = copy(self)
        transformed.matrix = collection.transform(units)
        return transformed

    def rows(self, inputs: Sequence[Input]) -> np.ndarray:
        """int64 (input,): the index of each input in `matrix`."""
        return np.array([self._row[item] for item in inputs], np.int64)


def _encoded(
    encode: Encode, texts_by_prompt: Mapping[str | None, Iterable[str]]
) -> np.ndarray:
    """The vectors of all texts; raises DataError for other arrays, NaN and infinity."""
    vectors = []
    texts = []
    for prompt, prompted in texts_by_prompt.items():
        batch = [*prompted]
        vectors.append(encode(batch) if prompt is None else encode(batch, prompt))
        texts += batch
    matrix = vectors[0] if len(vectors) == 1 else np.concatenate(vectors)
    shape = matrix.shape
    if len(shape) != 2 or shape[0] != len(texts):
        raise DataError(
            f"vectors of {len(texts)} texts have shape {shape}; expected one each"
        )
    invalid = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(invalid):
        raise DataError(
            f"the model's vectors of {len(invalid)} of {len(texts)} texts contain NaN or infinity, first"
            f" {texts[invalid[0]][:60]!r}; try --precision fp32"
        )
    return matrix


def comparable_vectors(vectors: TaskVectors, inputs: Sequence[Input]) -> np.ndarray:
    """The vectors of inputs in float64, prepared for `all_similarities`."""
    return comparable(vectors.matrix[vectors.rows(inputs)], vectors.similarity)


@dataclass(frozen=True)
class TaskMetrics:
    """The metrics of a whole task and of its parts, with the number of examples in each part."""

    whole: Metrics
    parts: Mapping[str, tuple[Metrics | None, int]] = field(default_factory=dict)


@runtime_checkable
class EvaluationTask(Protocol):
    """Texts, and metrics of their vectors.

    A task may have `rows`, the texts of each example, by which the overlap with training texts is counted;
    otherwise each text is an example.
    """

    @property
    def name(self) -> str:
        """The name in tables."""
        ...

    @property
    def texts(self) -> Sequence[Input]:
        """All inputs; repeated ones are encoded once."""
        ...

    def measure(self, vectors: TaskVectors) -> TaskMetrics | Metrics:
        """Compute metrics; `vectors` contains at least this task's texts."""
        ...


@dataclass(frozen=True)
class Result:
    """A model's scores on a task."""

    scores: Mapping[str, float]
    n: int
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    subsets: Mapping[str, Result] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object: scores (None if undefined), `n`, and optionally `ci95` and `subsets`."""
        values: dict[str, Any] = {}
        bounds = {}
        for metric, value in self.scores.items():
            interval = self.intervals.get(metric)
            values[metric] = defined(value)
            bounds[metric] = interval and list(interval)
        values["n"] = self.n
        if self.intervals:
            values["ci95"] = bounds
        if self.subsets:
            values["subsets"] = {
                name: part.to_dict() for name, part in self.subsets.items()
            }
        return values


def defined(value: float) -> float | None:
    """The value, or None, for JSON, if it is not finite."""
    return value if math.isfinite(value) else None


def summarise(metrics: TaskMetrics, resamples: Resampling | None = None) -> Result:
    """The scores of a task, with bootstrap intervals if there are resamples; parts have no intervals."""
    whole = metrics.whole
    parts = {}
    for name, (part, n) in metrics.parts.items():
        parts[name] = Result({} if part is None else part.scores(), n)
    bounds = {}
    if resamples is not None and resamples.number:
        bounds = intervals(whole, resamples)
    return Result(whole.scores(), whole.n, bounds, parts)
