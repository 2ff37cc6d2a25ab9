"""At which rank the reports that a query asks for are found, and what that is in figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from aoe_train._evaluate.duplicates.tracker import Query, Reports, ages
from aoe_train._evaluate.resample import Means
from aoe_train._evaluate.suites.gis import length_buckets
from aoe_train._evaluate.tasks import Verdict
from aoe_train._similarity import ROUNDING

Scores = Callable[[Query], np.ndarray]
"""How well each candidate of a query fits, (candidate,)."""

DEPTHS = (1, 5, 10, 20)
_DAYS = {"<7 days": 0, "7-29 days": 7, "30-364 days": 30, ">=365 days": 365}


def verdict(reports: Reports, queries: Sequence[Query], scores: Scores) -> Verdict:
    """How a ranking did on each query, as a whole, by the query's length and by the time between reports."""
    outcomes = metrics(queries, scores)
    return Verdict(
        Means(outcomes),
        {
            name: (Means({metric: values[rows] for metric, values in outcomes.items()}), len(rows))
            for name, rows in _parts(reports, queries).items()
        },
    )


def metrics(queries: Sequence[Query], scores: Scores) -> dict[str, np.ndarray]:
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


def first_ranks(query: Query, rankings: Sequence[np.ndarray]) -> np.ndarray:
    """The rank of the best target in each ranking, from 1, relatives left out: (ranking,).

    A stranger that scores the same goes before, so that a ranking which tells no report from another finds
    nothing.
    """
    strangers = _strangers(query)
    return np.array([1 + _before(scores[strangers], scores[[*query.targets]].max()) for scores in rankings])


def _precision(query: Query, scores: np.ndarray) -> float:
    """The mean of the precision at each candidate that says the same."""
    strange = scores[_strangers(query)]
    alike = -np.sort(-scores[[*query.targets, *query.relatives]])
    so_far = np.arange(1, len(alike) + 1)
    before = np.array([_before(strange, score) for score in alike])
    return float((so_far / (before + so_far)).mean())


def _strangers(query: Query) -> np.ndarray:
    """Whether each candidate says something else: (candidate,)."""
    stranger = np.ones(query.candidates, bool)
    stranger[[*query.targets, *query.relatives]] = False
    if query.report < query.candidates:
        stranger[query.report] = False
    return stranger


def _before(strange: np.ndarray, score: float) -> int:
    return int((strange >= score - ROUNDING).sum())


def _parts(reports: Reports, queries: Sequence[Query]) -> Mapping[str, np.ndarray]:
    """The queries of each length (in tokens, see `length_buckets`) and age; empty parts are left out."""
    texts = [reports.texts[query.report] for query in queries]
    found = {f"{name} tokens": rows for name, rows in length_buckets(texts, texts).items()}
    days = ages(reports, queries)
    if days is None:
        return found
    part = np.searchsorted(list(_DAYS.values()), days, side="right") - 1
    by_age = {name: np.flatnonzero(part == number) for number, name in enumerate(_DAYS)}
    return found | {name: rows for name, rows in by_age.items() if len(rows)}
