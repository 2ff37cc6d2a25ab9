"""Your own tasks for `aoe_train.evaluate`: texts, and metrics of their vectors.

A task is any object with `name`, `texts` and `measure(vectors)`, which returns metrics for each example.
`evaluate` computes scores with bootstrap intervals, and paired tests between models.

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
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from aoe_train.evaluation.resample import (
    Interval,
    MeanMetrics,
    Metrics,
    Resampling,
    intervals,
)
from aoe_train.model.collection import Collection
from aoe_train.model.similarity import comparable, scaled_to_one
from aoe_train.settings.train_settings import NamedPrompts, Purpose, Similarity
from pairkit.base.errors import DataError

__all__ = [
    "EvaluationTask",
    "Input",
    "MeanMetrics",
    "Metrics",
    "TaskMetrics",
    "TaskVectors",
]

Split = Literal["test", "validation"]

Encode = Callable[..., np.ndarray]
"""Maps texts to float32 (text, dim), such as `Encoder.encode`."""


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
