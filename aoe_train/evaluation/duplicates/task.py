"""The reports of a tracker as a task: ranked by vectors, by words, or by both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from aoe_train.evaluation.duplicates.tracker import DuplicateQuery, DuplicateTracker, TrackerReports, ages
from aoe_train.evaluation.pairs import length_buckets
from aoe_train.evaluation.resample import MeanMetrics
from aoe_train.evaluation.task import TaskMetrics, TaskVectors
from aoe_train.model.hybrid import WORD_INDEXES, WordIndex, Words, fused
from aoe_train.model.similarity import ROUNDING, all_similarities, comparable

Scores = Callable[[DuplicateQuery], np.ndarray]
"""How well each candidate of a query fits, (candidate,)."""

DEPTHS = (1, 5, 10, 20)
_DAYS = {"<7 days": 0, "7-29 days": 7, "30-364 days": 30, ">=365 days": 365}
_WEIGHTS = tuple(step / 20 for step in range(21))


@dataclass(frozen=True)
class DuplicatesTask:
    """For each query of a split: find what it repeats."""

    tracker: DuplicateTracker
    judged: str
    known: str | None = None

    @property
    def name(self) -> str:
        """The tracker's."""
        return self.tracker.name

    @property
    def texts(self) -> Sequence[str]:
        """All reports."""
        return self.tracker.reports.texts

    @property
    def rows(self) -> Sequence[tuple[str, ...]]:
        """The texts of each judged query and what it asks for."""
        return [
            tuple(self.texts[place] for place in (query.report, *query.targets)) for query in self.queries
        ]

    @property
    def queries(self) -> Sequence[DuplicateQuery]:
        """Those that are judged."""
        return self.tracker.queries[self.judged]

    def measure(self, vectors: TaskVectors) -> TaskMetrics:
        """By vectors alone; see `metrics`."""
        return self.ranked(self.by_vectors(vectors))

    def by_words(self, words: Words) -> TaskMetrics:
        """By words alone."""
        return self.ranked(self._by_words(words))

    def by_both(self, near: Scores, words: Words, weight: float) -> TaskMetrics:
        """By vectors, see `by_vectors`, and words, as `Hybrid` does it."""
        said = self._by_words(words)
        return self.ranked(lambda query: fused(near(query), said(query), weight))

    def chosen_weight(self, near: Scores, words: Words) -> float | None:
        """The weight of vectors that gives the best MRR on the known split; None where there is none.

        Of several that are as good it is the lowest.
        """
        queries = self.tracker.queries[self.known] if self.known else ()
        if not queries:
            return None
        said = self._by_words(words)
        found = np.zeros(len(_WEIGHTS))
        for query in queries:
            one, other = near(query), said(query)
            found += 1 / first_ranks(query, [fused(one, other, weight) for weight in _WEIGHTS])
        return _WEIGHTS[int(found.argmax())]

    def ranked(self, scores: Scores) -> TaskMetrics:
        """By any scores."""
        return task_metrics(self.tracker.reports, self.queries, scores)

    def by_vectors(self, vectors: TaskVectors) -> Scores:
        """How near the vectors of candidates are to a query's; all are made comparable here, once."""
        matrix = comparable(vectors.matrix[vectors.rows(self.texts)], vectors.similarity)

        def scores(query: DuplicateQuery) -> np.ndarray:
            own = matrix[query.report : query.report + 1]
            return _last(query, all_similarities(own, matrix[: query.candidates], vectors.similarity)[0])

        return scores

    def _by_words(self, words: Words) -> Scores:
        index = self._indexes[words]
        return lambda query: _last(query, index.scores(self.texts[query.report])[: query.candidates])

    @cached_property
    def _indexes(self) -> dict[Words, WordIndex]:
        return {words: make(self.texts) for words, make in WORD_INDEXES.items()}


def _last(query: DuplicateQuery, scores: np.ndarray) -> np.ndarray:
    """The scores with that of the query itself, where it is among the candidates, made as low as any."""
    if query.report < query.candidates:
        scores[query.report] = scores.min()
    return scores


def task_metrics(reports: TrackerReports, queries: Sequence[DuplicateQuery], scores: Scores) -> TaskMetrics:
    """How a ranking did on each query, as a whole, by the query's length and by the time between reports."""
    outcomes = metrics(queries, scores)
    return TaskMetrics(
        MeanMetrics(outcomes),
        {
            name: (MeanMetrics({metric: values[rows] for metric, values in outcomes.items()}), len(rows))
            for name, rows in _parts(reports, queries).items()
        },
    )


def metrics(queries: Sequence[DuplicateQuery], scores: Scores) -> dict[str, np.ndarray]:
    """Each query's figures, (query,), in [0, 1].

    * `recall@k`: the first of its targets is among the first k candidates, relatives left out.
    * `mrr`: 1 / the rank of that target, likewise.
    * `map`: average precision, where relatives are as good as targets.
    """
    first, precision = (np.empty(len(queries)) for _ in range(2))
    for place, query in enumerate(queries):
        ranking = scores(query)
        (first[place],) = first_ranks(query, [ranking])
        precision[place] = _precision(query, ranking)
    recalls = {f"recall@{depth}": (first <= depth).astype(float) for depth in DEPTHS}
    return {**recalls, "mrr": 1 / first, "map": precision}


def first_ranks(query: DuplicateQuery, rankings: Sequence[np.ndarray]) -> np.ndarray:
    """The rank of the best target in each ranking, from 1, relatives left out: (ranking,).

    A stranger that scores the same goes before, so that a ranking which tells no report from another finds
    nothing.
    """
    strangers = _strangers(query)
    return np.array([1 + _before(scores[strangers], scores[[*query.targets]].max()) for scores in rankings])


def _precision(query: DuplicateQuery, scores: np.ndarray) -> float:
    """The mean of the precision at each candidate that says the same."""
    strange = scores[_strangers(query)]
    alike = -np.sort(-scores[[*query.targets, *query.relatives]])
    so_far = np.arange(1, len(alike) + 1)
    before = np.array([_before(strange, score) for score in alike])
    return float((so_far / (before + so_far)).mean())


def _strangers(query: DuplicateQuery) -> np.ndarray:
    """Whether each candidate says something else: (candidate,)."""
    stranger = np.ones(query.candidates, bool)
    stranger[[*query.targets, *query.relatives]] = False
    if query.report < query.candidates:
        stranger[query.report] = False
    return stranger


def _before(strange: np.ndarray, score: float) -> int:
    return int((strange >= score - ROUNDING).sum())


def _parts(reports: TrackerReports, queries: Sequence[DuplicateQuery]) -> Mapping[str, np.ndarray]:
    """The queries of each length (in tokens, see `length_buckets`) and age; empty parts are left out."""
    texts = [reports.texts[query.report] for query in queries]
    found = {f"{name} tokens": rows for name, rows in length_buckets(texts, texts).items()}
    days = ages(reports, queries)
    if days is None:
        return found
    part = np.searchsorted(list(_DAYS.values()), days, side="right") - 1
    by_age = {name: np.flatnonzero(part == number) for number, name in enumerate(_DAYS)}
    return found | {name: rows for name, rows in by_age.items() if len(rows)}
