"""The reports of a tracker as a task: for each, find those that say the same, by vectors, words or both.

`track` finds what each report asks for; `DuplicatesTask` measures rankings; `score_rows` compares rankings
by words, by each model, and by both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final

import numpy as np

from aoe_train.evaluation.embedders.embedder import Embedder
from aoe_train.evaluation.overlap import Overlap, overlap
from aoe_train.evaluation.pairs import length_buckets
from aoe_train.evaluation.resample import MeanMetrics, compare
from aoe_train.evaluation.score import Resampling, Score
from aoe_train.evaluation.tasks import TaskMetrics, TaskVectors, summarise
from aoe_train.model.hybrid import WEIGHTS, WORD_INDEXES, WordIndex, Words, fused
from aoe_train.model.similarity import ROUNDING, all_similarities, comparable
from pairkit.app.errors import DataError
from pairkit.app.progress import Display, Listener, stage
from pairkit.similarity.groups import Groups

DEPTHS = (1, 5, 10, 20)
_DAYS = {"<7 days": 0, "7-29 days": 7, "30-364 days": 30, ">=365 days": 365}
_WEIGHTS = tuple(step / 20 for step in range(21))
BASELINES: Final[dict[Words, str]] = {"bm25": "BM25", "tfidf": "TF-IDF"}
NO_TEXT, ABSENT, SAME_MOMENT, ITSELF = (
    "name a report that has no text",
    "name a report that is not among the reports",
    "are of reports of the same moment, none of which is older",
    "name one report twice",
)


@dataclass(frozen=True, slots=True)
class TrackerReports:
    """All reports that have a text."""

    ids: Sequence[str]
    texts: Sequence[str]
    created: Sequence[datetime] | None
    empty: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DuplicateQuery:
    """A report whose like is looked for among the first `candidates` reports."""

    report: int
    candidates: int
    targets: tuple[int, ...]
    relatives: tuple[int, ...]


Scores = Callable[[DuplicateQuery], np.ndarray]
"""How well each candidate of a query fits, (candidate,)."""


@dataclass(frozen=True, slots=True)
class DuplicateTracker:
    """Reports and what is to be found."""

    name: str
    reports: TrackerReports
    queries: Mapping[str, Sequence[DuplicateQuery]]
    dropped: Mapping[str, Counter[str]]


def in_order(
    ids: Sequence[str], texts: Sequence[str], created: Sequence[datetime] | None, where: str
) -> TrackerReports:
    """Reports put in order of time; ones of the same moment stay as they came."""
    repeated = [name for name, times in Counter(ids).items() if times > 1]
    if repeated:
        raise DataError(
            f"{len(repeated)} ids stand in several rows, first {repeated[0]}; expected a row a report",
            path=where,
        )
    kept = [place for place, text in enumerate(texts) if text.strip()]
    if not kept:
        raise DataError("no report has a text", path=where)
    if created is not None:
        kept.sort(key=lambda place: created[place])
    return TrackerReports(
        [ids[place] for place in kept],
        [texts[place] for place in kept],
        None if created is None else [created[place] for place in kept],
        frozenset(ids).difference(ids[place] for place in kept),
    )


def track(
    name: str, reports: TrackerReports, pairs: Mapping[str, Iterable[tuple[str, str]]]
) -> DuplicateTracker:
    """Find out what each split asks for.

    With times the younger report of a pair asks for the older one, whichever of them the tracker calls the
    duplicate: the other was not there yet. Without times the duplicate asks. A report with several pairs in a
    split asks once, for any of them.
    """
    places = {id_: place for place, id_ in enumerate(reports.ids)}
    dropped: dict[str, Counter[str]] = {}
    asked: dict[str, dict[int, set[int]]] = {}
    groups: Groups[int] = Groups()
    for split, of_split in pairs.items():
        dropped[split], asked[split] = Counter(), {}
        for one, other in dict.fromkeys(of_split):
            if reason := _why_not(reports, places, one, other):
                dropped[split][reason] += 1
                continue
            query, target = places[one], places[other]
            groups.join(query, target)
            if reports.created is not None:
                query, target = max(query, target), min(query, target)
                if reports.created[query] == reports.created[target]:
                    dropped[split][SAME_MOMENT] += 1
                    continue
            asked[split].setdefault(query, set()).add(target)
    members = {member: group for group in groups.all().values() for member in group}
    queries = {
        split: [
            _query(reports, report, targets, members[report]) for report, targets in sorted(of_split.items())
        ]
        for split, of_split in asked.items()
    }
    return DuplicateTracker(name, reports, queries, dropped)


def _why_not(reports: TrackerReports, places: Mapping[str, int], one: str, other: str) -> str:
    if one == other:
        return ITSELF
    if {one, other} & reports.empty:
        return NO_TEXT
    return "" if one in places and other in places else ABSENT


def _query(reports: TrackerReports, report: int, targets: set[int], members: Sequence[int]) -> DuplicateQuery:
    candidates = _older(reports, report)
    relatives = {member for member in members if member < candidates} - targets - {report}
    return DuplicateQuery(report, candidates, tuple(sorted(targets)), tuple(sorted(relatives)))


def _older(reports: TrackerReports, report: int) -> int:
    """How many reports were there when this one was written; all, where nobody knows."""
    if reports.created is None:
        return len(reports.ids)
    first = report
    while first and reports.created[first - 1] == reports.created[report]:
        first -= 1
    return first


def ages(reports: TrackerReports, queries: Sequence[DuplicateQuery]) -> np.ndarray | None:
    """Days from the youngest target of each query to the query, float64 (query,); None without times."""
    if reports.created is None:
        return None
    seconds = [
        (reports.created[query.report] - reports.created[query.targets[-1]]).total_seconds()
        for query in queries
    ]
    return np.array(seconds) / 86_400


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


@dataclass(frozen=True, slots=True)
class _ReportRow:
    metrics: TaskMetrics
    over: Sequence[str] = ()
    overlap: Overlap | None = None
    weight: float | None = None


def score_rows(
    task: DuplicatesTask,
    models: Iterable[tuple[str, Embedder, np.ndarray | None]],
    *,
    resamples: Resampling,
    progress: bool | Listener = True,
) -> dict[str, Score]:
    """Rank by words, by the vectors of each model, and by both.

    The weight of a hybrid is chosen on the task's known split; where there is none it is that of `WEIGHTS`.
    """
    with Display(progress) as show:
        rows: dict[str, _ReportRow] = {}
        for words, name in BASELINES.items():
            with stage(f"rank by {name}", show):
                rows[name] = _ReportRow(task.by_words(words), [*rows])
        first = ""
        for name, embedder, trained in models:
            vectors = TaskVectors(embedder.encode, [task.texts], similarity=embedder.similarity)
            with stage(f"rank by {name}", show):
                rows |= _of_model(task, name, vectors, first, trained)
            first = first or name
        with stage("resample", show):
            return {name: _score(row, rows, resamples) for name, row in rows.items()}


def _of_model(
    task: DuplicatesTask, name: str, vectors: TaskVectors, first: str, trained: np.ndarray | None
) -> dict[str, _ReportRow]:
    """A model's row, and those of its hybrids; each knows over which rows it should be ahead."""
    seen = None if trained is None else overlap(task, trained)
    near = task.by_vectors(vectors)
    rows = {name: _ReportRow(task.ranked(near), [BASELINES["bm25"], *([first] if first else [])], seen)}
    for words, baseline in BASELINES.items():
        weight = task.chosen_weight(near, words)
        weight = WEIGHTS[words] if weight is None else weight
        over = [baseline, name, *([hybrid_name(first, baseline)] if first else [])]
        rows[hybrid_name(name, baseline)] = _ReportRow(task.by_both(near, words, weight), over, seen, weight)
    return rows


def hybrid_name(model: str, baseline: str) -> str:
    """What the row of a model together with words is called."""
    return f"{model} + {baseline}"


def _score(row: _ReportRow, rows: Mapping[str, _ReportRow], resamples: Resampling) -> Score:
    how = {"resamples": resamples.number, "seed": resamples.seed}
    over = {
        name: compare(row.metrics.whole, rows[name].metrics.whole, **how)
        for name in (row.over if resamples.number else ())
    }
    return Score(summarise(row.metrics, **how), row.overlap, over=over, weight=row.weight)
