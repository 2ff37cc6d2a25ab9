"""Search in a corpus as a task: folders in BEIR's layout (`pairkit/dataset/reading/beir.py`).

As in BEIR, the score of a document is its gain, and a document with the id of the query is not ranked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from aoe_train.data.examples import Say
from aoe_train.evaluation.search_results import SearchMetrics
from aoe_train.evaluation.tasks import SearchText, Split, TaskVectors
from aoe_train.model.similarity import ROUNDING, all_similarities, comparable
from pairkit.base.errors import DataError
from pairkit.dataset.reading.beir import read_beir
from pairkit.dataset.reading.parts import split_of

_DEPTH, _MOST = 10, 100
_BLOCK = 64  # queries ranked at once
_DISCOUNTS = 1 / np.log2(np.arange(2, _DEPTH + 2))


@dataclass(frozen=True)
class CorpusTask:
    """Find the relevant documents of each query in a corpus."""

    name: str
    queries: Sequence[str]
    documents: Sequence[str]
    relevant: Sequence[np.ndarray]  # documents of each query
    gains: Sequence[np.ndarray]  # of these documents
    excluded: np.ndarray  # the document with the query's id, or -1, (query,)

    @property
    def texts(self) -> Sequence[SearchText]:
        """Queries, then documents."""
        return [
            *(SearchText(text, is_query=True) for text in self.queries),
            *(SearchText(text, is_query=False) for text in self.documents),
        ]

    @property
    def rows(self) -> Sequence[tuple[str, str]]:
        """Each query with each relevant document."""
        pairs = zip(self.queries, self.relevant, strict=True)
        return [(query, self.documents[found]) for query, documents in pairs for found in documents.tolist()]

    def measure(self, vectors: TaskVectors) -> SearchMetrics:
        """NDCG and MRR at 10, recall at 10 and 100, of each query; ties count against relevant documents."""
        matrix = comparable(vectors.matrix[vectors.rows(self.texts)], vectors.similarity)
        queries, documents = np.split(matrix, [len(self.queries)])
        ranked = np.zeros((len(queries), min(_MOST, len(documents))))  # the gains of the nearest documents
        for start in range(0, len(queries), _BLOCK):
            block = all_similarities(queries[start : start + _BLOCK], documents, vectors.similarity)
            for query, similarities in enumerate(block, start):
                similarities[self.relevant[query]] -= ROUNDING
                if self.excluded[query] >= 0:
                    similarities[self.excluded[query]] = -np.inf
                gains = np.zeros(len(documents))
                gains[self.relevant[query]] = self.gains[query]
                order = np.lexsort((gains, -similarities))
                ranked[query] = gains[order[: ranked.shape[1]]]
        first, hits = ranked[:, :_DEPTH], ranked > 0
        best = [np.sort(gains)[::-1][:_DEPTH] for gains in self.gains]
        ideal = np.array([gains @ _DISCOUNTS[: len(gains)] for gains in best])
        found = np.where(hits[:, :_DEPTH].any(axis=1), 1 / (1 + hits.argmax(axis=1)), 0.0)
        counts = np.array([len(gains) for gains in self.gains])
        recalls = {f"recall@{depth}": hits[:, :depth].sum(axis=1) / counts for depth in (_DEPTH, _MOST)}
        ndcg = first @ _DISCOUNTS[: first.shape[1]] / ideal
        return SearchMetrics({f"ndcg@{_DEPTH}": ndcg, f"mrr@{_DEPTH}": found, **recalls})


def corpus_task(folder: Path, split: Split | None, say: Say) -> CorpusTask:
    """The task of a split, `test` by default."""
    beir = read_beir(folder)
    files = {split_of(path): path for path in beir.judgements}
    asked = split or "test"
    path = files.get(asked)
    if path is None:
        names = ", ".join(files) or "none"
        raise DataError(f"no judgements of {asked}, found {names}; choose with --split", path=folder)
    judged = beir.relevant(path)
    known = judged.filter(pl.all_horizontal(pl.col("anchor", "positive").is_not_null()))
    if left_out := len(judged) - len(known):
        say(f"{folder.name}: left out {left_out:,} judgements of unknown queries or documents")
    if known.is_empty():
        raise DataError("no relevant document of a query", path=path)
    place_of = {name: place for place, name in enumerate(beir.corpus["id"])}
    queries = known.group_by("query", "anchor", maintain_order=True).agg("document", "gain")
    return CorpusTask(
        folder.resolve().name,
        queries["anchor"].to_list(),
        beir.corpus["text"].to_list(),
        [np.array([place_of[name] for name in names]) for names in queries["document"].to_list()],
        [np.array(gains) for gains in queries["gain"].to_list()],
        np.array([place_of.get(query, -1) for query in queries["query"]]),
    )
