"""Duplicate detection as a task: find the duplicates of each report of a tracker.

`build_queries` turns pairs into queries with targets; `DuplicatesTask` measures a ranking; `score_rows`
compares rankings by words, by each model, and by both.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final

import numpy as np
from numpy import ndarray

from aoe_train.evaluation.overlap import Overlap
from aoe_train.evaluation.pair_task import length_buckets, rows_by_bucket
from aoe_train.evaluation.scores import EvaluatedModel, Score
from aoe_train.evaluation.tasks import (
    MeanMetrics,
    Resampling,
    TaskMetrics,
    TaskVectors,
    comparable_vectors,
    compare,
    select_examples,
    summarise,
)
from aoe_train.model.collection import WEIGHTS, WORD_INDEXES, TfIdf, Words, fused
from aoe_train.model.similarity import ROUNDING, all_similarities
from pairkit.base.cli.progress import Listener, stage
from pairkit.base.errors import DataError
from pairkit.similarity.bm25 import Bm25
from pairkit.similarity.groups import Groups

DEPTHS = (1, 5, 10, 20)
BASELINES: Final[dict[Words, str]] = {"bm25": "BM25", "tfidf": "TF-IDF"}
_DAYS = {"<7 days": 0, "7-29 days": 7, "30-364 days": 30, ">=365 days": 365}
_WEIGHTS = tuple(step / 20 for step in range(21))
# Reasons to drop a pair.
NO_TEXT = "contain a report without text"
ABSENT = "contain an unknown report"
SAME_TIME = "have two reports of the same time, so that neither is older"
ITSELF = "contain one report twice"


@dataclass(frozen=True)
class TrackerReports:
    """All reports with a text, oldest first; `empty` are the ids of the others."""

    ids: Sequence[str]
    texts: Sequence[str]
    created: Sequence[datetime] | None
    empty: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DuplicateQuery:
    """A report, the number of older ones, those paired with it, and further ones of its duplicate group."""

    report: int
    candidates: int
    targets: tuple[int, ...]
    relatives: tuple[int, ...]


QueryScores = Callable[[DuplicateQuery], ndarray]
"""Maps a query to the score of each candidate, (candidate,)."""


def sorted_reports(
    ids: Sequence[str],
    texts: Sequence[str],
    created: Sequence[datetime] | None,
    where: str,
) -> TrackerReports:
    """Reports in order of time; those of the same time keep their order.

    Raises DataError if an id is repeated or no report has a text.
    """
    repeated = [id_ for id_, rows in Counter(ids).items() if rows > 1]
    if repeated:
        raise DataError(
            f"{len(repeated)} ids occur in several rows, first {repeated[0]}; expected one row per report",
            path=where,
        )
    kept = [index for index, text in enumerate(texts) if text.strip()]
    if not kept:
        raise DataError("no report has a text", path=where)
    times = None
    if created is not None:
        kept.sort(key=created.__getitem__)
        times = [created[index] for index in kept]
    kept_ids = [ids[index] for index in kept]
    empty = frozenset(ids).difference(kept_ids)
    return TrackerReports(kept_ids, [texts[index] for index in kept], times, empty)


def build_queries(
    reports: TrackerReports,
    pairs: Mapping[str, Iterable[tuple[str, str]]],
) -> tuple[dict[str, list[DuplicateQuery]], dict[str, Counter[str]]]:
    """The queries of each split from pairs (duplicate, canonical), and counts of dropped pairs by reason.

    With times, the newer report of a pair is the query and the older one its target, because only that one
    existed before. Without times, the duplicate is the query. A query's pairs in a split are all its targets.
    """
    index = {id_: number for number, id_ in enumerate(reports.ids)}
    dropped: dict[str, Counter[str]] = {}
    targets: dict[str, dict[int, set[int]]] = {}
    groups: Groups[int] = Groups()
    for split, split_pairs in pairs.items():
        dropped[split] = Counter()
        targets[split] = defaultdict(set)
        for duplicate, canonical in dict.fromkeys(split_pairs):
            reason = _reason_to_drop(reports, index, duplicate, canonical)
            if reason:
                dropped[split][reason] += 1
                continue
            query = index[duplicate]
            target = index[canonical]
            # Reports of the same time are no query and target, but they are duplicates, not negatives.
            groups.join(query, target)
            if reports.created is not None:
                # Reports are sorted by time, so the older one has the smaller index.
                target, query = sorted((query, target))
                if reports.created[query] == reports.created[target]:
                    dropped[split][SAME_TIME] += 1
                    continue
            targets[split][query].add(target)
    members = {member: group for group in groups.all().values() for member in group}
    queries = {}
    for split, by_query in targets.items():
        queries[split] = [
            _build_query(reports, report, by_query[report], members[report])
            for report in sorted(by_query)
        ]
    return queries, dropped


def _reason_to_drop(
    reports: TrackerReports,
    index: Mapping[str, int],
    duplicate: str,
    canonical: str,
) -> str:
    """Why a pair can't be used; empty if it can."""
    if duplicate == canonical:
        return ITSELF
    ids = {duplicate, canonical}
    if ids & reports.empty:
        return NO_TEXT
    return "" if ids <= index.keys() else ABSENT


def _build_query(
    reports: TrackerReports,
    report: int,
    targets: set[int],
    members: Sequence[int],
) -> DuplicateQuery:
    candidates = len(reports.ids)
    if reports.created is not None:  # without times, all reports are candidates
        candidates = bisect_left(reports.created, reports.created[report])
    relatives = (
        {member for member in members if member < candidates} - targets - {report}
    )
    return DuplicateQuery(
        report, candidates, tuple(sorted(targets)), tuple(sorted(relatives))
    )


@dataclass(frozen=True)
class DuplicatesTask:
    """Find the targets of each query; `known` are queries that choose a hybrid's weight."""

    name: str
    reports: TrackerReports
    queries: Sequence[DuplicateQuery]
    known: Sequence[DuplicateQuery] = ()

    @property
    def texts(self) -> Sequence[str]:
        """All reports."""
        return self.reports.texts

    @property
    def rows(self) -> Sequence[tuple[str, ...]]:
        """The texts of each query and of its targets."""
        rows = []
        for query in self.queries:
            reports = (query.report, *query.targets)
            rows.append(tuple(self.texts[report] for report in reports))
        return rows

    def measure(self, vectors: TaskVectors) -> TaskMetrics:
        """Rank by vectors; see `metrics`."""
        return self.ranked(self.by_vectors(vectors))

    def by_both(
        self, by_vectors: QueryScores, words: Words, weight: float
    ) -> TaskMetrics:
        """Rank by vectors and words."""
        by_words = self.by_words(words)
        return self.ranked(
            lambda query: fused(by_vectors(query), by_words(query), weight)
        )

    def chosen_weight(self, by_vectors: QueryScores, words: Words) -> float:
        """The lowest weight of vectors with the best MRR of the known queries; without these the default."""
        if not self.known:
            return WEIGHTS[words]
        by_words = self.by_words(words)
        total = np.zeros(len(_WEIGHTS))
        for query in self.known:
            vector_scores = by_vectors(query)
            word_scores = by_words(query)
            is_negative = _is_negative(query)
            for number, weight in enumerate(_WEIGHTS):
                scores = fused(vector_scores, word_scores, weight)
                best = scores[[*query.targets]].max()
                total[number] += 1 / _rank_of(best, scores[is_negative])
        return _WEIGHTS[int(total.argmax())]

    def ranked(self, scores: QueryScores) -> TaskMetrics:
        """Metrics over all queries, by the query's length, and by the time between reports."""
        whole = MeanMetrics(metrics(self.queries, scores))
        parts = {
            name: (select_examples(whole, queries), len(queries))
            for name, queries in self._parts.items()
        }
        return TaskMetrics(whole, parts)

    def by_vectors(self, vectors: TaskVectors) -> QueryScores:
        """Scores by vectors, all of which are made comparable once."""
        matrix = comparable_vectors(vectors, self.texts)

        def scores(query: DuplicateQuery) -> ndarray:
            vector = matrix[query.report : query.report + 1]
            candidates = matrix[: query.candidates]
            (similarities,) = all_similarities(vector, candidates, vectors.similarity)
            return _rank_query_last(query, similarities)

        return scores

    def by_words(self, words: Words) -> QueryScores:
        """Scores by words."""
        index = self._indexes[words]

        def scores(query: DuplicateQuery) -> ndarray:
            all_scores = index.scores(self.texts[query.report])
            return _rank_query_last(query, all_scores[: query.candidates])

        return scores

    @cached_property
    def _indexes(self) -> dict[Words, Bm25 | TfIdf]:
        return {words: make(self.texts) for words, make in WORD_INDEXES.items()}

    @cached_property
    def _parts(self) -> Mapping[str, ndarray]:
        """The queries by length in tokens and by days since their newest target, without empty parts."""
        texts = [self.texts[query.report] for query in self.queries]
        parts = {
            f"{name} tokens": rows
            for name, rows in length_buckets(texts, texts).items()
        }
        created = self.reports.created
        if created is None:
            return parts
        days = []
        for query in self.queries:
            age = created[query.report] - created[query.targets[-1]]
            days.append(age.total_seconds() / 86_400)
        return parts | rows_by_bucket(np.array(days), _DAYS)


def _rank_query_last(query: DuplicateQuery, scores: ndarray) -> ndarray:
    """Set the score of the query itself, if it is a candidate, to the minimum, in place."""
    if query.report < query.candidates:
        scores[query.report] = scores.min()
    return scores


def metrics(
    queries: Sequence[DuplicateQuery], scores: QueryScores
) -> dict[str, ndarray]:
    """Each query's metrics, (query,), in [0, 1].

    * `recall@k`: whether a target is among the first k candidates, not counting relatives.
    * `mrr`: 1 / the rank of the best target, not counting relatives.
    * `map`: average precision, with targets and relatives as positives.
    """
    first_rank = np.empty(len(queries))
    precision = np.empty(len(queries))
    for number, query in enumerate(queries):
        ranking = scores(query)
        negatives = ranking[_is_negative(query)]
        best = ranking[[*query.targets]].max()
        first_rank[number] = _rank_of(best, negatives)
        positives = -np.sort(-ranking[[*query.targets, *query.relatives]])
        ranks = np.array([_rank_of(score, negatives) for score in positives])
        hits = np.arange(1, len(positives) + 1)
        precision[number] = (hits / (ranks + hits - 1)).mean()
    outcomes = {
        f"recall@{depth}": (first_rank <= depth).astype(float) for depth in DEPTHS
    }
    return {**outcomes, "mrr": 1 / first_rank, "map": precision}


def _rank_of(score: float, negatives: ndarray) -> int:
    """The rank of a positive among negatives, after those of equal score."""
    return 1 + int(np.count_nonzero(negatives >= score - ROUNDING))


def _is_negative(query: DuplicateQuery) -> ndarray:
    """Which candidates are outside the query's duplicate group: (candidate,)."""
    negative = np.ones(query.candidates, bool)
    negative[[*query.targets, *query.relatives]] = False
    if query.report < query.candidates:
        negative[query.report] = False
    return negative


class _Rankings:
    """The scores of rankings by name, each compared with earlier ones."""

    def __init__(self, resamples: Resampling) -> None:
        self.rows: dict[str, Score] = {}
        self._resamples = resamples
        self._measured: dict[str, TaskMetrics] = {}

    def add(
        self,
        name: str,
        measured: TaskMetrics,
        others: Iterable[str],
        overlap: Overlap | None = None,
        weight: float | None = None,
    ) -> None:
        """Score a ranking, and compare it with others that it should beat."""
        over = {}
        if self._resamples.number:
            for other in others:
                rival = self._measured[other].whole
                over[other] = compare(measured.whole, rival, self._resamples)
        self._measured[name] = measured
        result = summarise(measured, self._resamples)
        self.rows[name] = Score(result, overlap, over=over, weight=weight)


def score_rows(
    task: DuplicatesTask,
    models: Iterable[EvaluatedModel],
    resamples: Resampling,
    show: Listener,
) -> dict[str, Score]:
    """Rank by words, by the vectors of each model, and by both, with a chosen weight or that of `WEIGHTS`.

    Each ranking is compared with those that it should beat; models also with the first one.
    """
    rankings = _Rankings(resamples)
    for words, baseline in BASELINES.items():
        with stage(f"rank by {baseline}", show):
            measured = task.ranked(task.by_words(words))
            rankings.add(baseline, measured, [*rankings.rows])
    first_model: list[str] = []
    for model in models:
        name = model.name
        overlap = model.overlaps.get(task.name)
        embedder = model.embedder
        vectors = TaskVectors(
            embedder.encode, [task.texts], similarity=embedder.similarity
        )
        with stage(f"rank by {name}", show):
            by_vectors = task.by_vectors(vectors)
            others = [BASELINES["bm25"], *first_model]
            rankings.add(name, task.ranked(by_vectors), others, overlap)
            for words, baseline in BASELINES.items():
                weight = task.chosen_weight(by_vectors, words)
                both = task.by_both(by_vectors, words, weight)
                others = [baseline, name]
                others += [f"{first} + {baseline}" for first in first_model]
                rankings.add(f"{name} + {baseline}", both, others, overlap, weight)
        first_model = first_model or [name]
    return rankings.rows
