"""The reports of a tracker as a task: ranked by vectors, by words, or by both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from aoe_train._evaluate.duplicates.ranking import Scores, first_ranks, verdict
from aoe_train._evaluate.duplicates.tracker import Query, Tracker
from aoe_train._evaluate.tasks import Verdict
from aoe_train._evaluate.vectors import Vectors
from aoe_train._hybrid import WORD_INDEXES, WordIndex, Words, fused
from aoe_train._similarity import all_similarities, comparable

_WEIGHTS = tuple(step / 20 for step in range(21))


@dataclass(frozen=True)
class DuplicatesTask:
    """For each query of a split: find what it repeats.

    Attributes:
        tracker: All reports, and the queries of all splits.
        judged: The split whose queries are judged.
        known: The split on which weights are chosen; None where there is none.
    """

    tracker: Tracker
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
    def queries(self) -> Sequence[Query]:
        """Those that are judged."""
        return self.tracker.queries[self.judged]

    def judge(self, vectors: Vectors) -> Verdict:
        """By vectors alone; see `aoe_train._evaluate.duplicates.ranking.metrics`."""
        return self.ranked(self.by_vectors(vectors))

    def by_words(self, words: Words) -> Verdict:
        """By words alone."""
        return self.ranked(self._by_words(words))

    def by_both(self, near: Scores, words: Words, weight: float) -> Verdict:
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

    def ranked(self, scores: Scores) -> Verdict:
        """By any scores."""
        return verdict(self.tracker.reports, self.queries, scores)

    def by_vectors(self, vectors: Vectors) -> Scores:
        """How near the vectors of candidates are to a query's; all are made comparable here, once."""
        matrix = comparable(vectors.matrix[vectors.rows(self.texts)], vectors.similarity)

        def scores(query: Query) -> np.ndarray:
            own = matrix[query.report : query.report + 1]
            return _last(query, all_similarities(own, matrix[: query.candidates], vectors.similarity)[0])

        return scores

    def _by_words(self, words: Words) -> Scores:
        index = self._indexes[words]
        return lambda query: _last(query, index.scores(self.texts[query.report])[: query.candidates])

    @cached_property
    def _indexes(self) -> dict[Words, WordIndex]:
        return {words: make(self.texts) for words, make in WORD_INDEXES.items()}


def _last(query: Query, scores: np.ndarray) -> np.ndarray:
    """The scores with that of the query itself, where it is among the candidates, made as low as any."""
    if query.report < query.candidates:
        scores[query.report] = scores.min()
    return scores
