"""Search in a corpus as a task, in the layout of BEIR.

The score of a document is its gain. A document with the query's id is not ranked, unless it is relevant: in
one's own folder, queries and documents may be numbered separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy import ndarray

from aoe_train.data.examples import Say
from aoe_train.evaluation.search_results import (
    BLOCK,
    DEPTH,
    SearchMetrics,
    group_numbers,
    search_texts,
)
from aoe_train.evaluation.tasks import (
    SearchText,
    Split,
    TaskVectors,
    comparable_vectors,
)
from aoe_train.model.similarity import ROUNDING, all_similarities
from pairkit.base.errors import DataError
from pairkit.dataset.reading.beir import BeirFolder, read_beir
from pairkit.dataset.reading.parts import split_of

NDCG = "ndcg@10"
_MAX_DEPTH = 100  # first results that any metric considers
_DISCOUNTS = 1 / np.log2(np.arange(2, DEPTH + 2))  # of nDCG, by rank


@dataclass(frozen=True)
class CorpusTask:
    """Find the relevant documents of each query in a corpus."""

    name: str
    queries: Sequence[str]
    documents: Sequence[str]
    relevant: Sequence[ndarray]  # the numbers of each query's documents
    gains: Sequence[ndarray]  # the scores of these documents
    # (query,): the number of a document that isn't ranked, or -1
    excluded: ndarray

    @property
    def texts(self) -> Sequence[SearchText]:
        """Queries, then documents."""
        return search_texts(self.queries, self.documents)

    @property
    def rows(self) -> Sequence[tuple[str, str]]:
        """Each query with each relevant document."""
        rows = []
        for query, documents in zip(self.queries, self.relevant, strict=True):
            rows += [(query, self.documents[number]) for number in documents.tolist()]
        return rows

    @property
    def row_examples(self) -> ndarray:
        """The number of each row's query."""
        return group_numbers(self.relevant)

    def measure(self, vectors: TaskVectors) -> SearchMetrics:
        """NDCG and MRR at 10, recall at 10 and 100, of each query; ties count against relevant documents."""
        ranked = self._ranked_gains(vectors)
        is_hit = ranked > 0
        has_hit = is_hit[:, :DEPTH].any(axis=1)
        first_rank = 1 + is_hit.argmax(axis=1)
        ideal = np.array([_dcg(np.sort(gains)[::-1]) for gains in self.gains])
        outcomes = {
            NDCG: _dcg(ranked) / ideal,
            f"mrr@{DEPTH}": np.where(has_hit, 1 / first_rank, 0.0),
        }
        relevant = np.array([len(gains) for gains in self.gains])
        for depth in (DEPTH, _MAX_DEPTH):
            outcomes[f"recall@{depth}"] = is_hit[:, :depth].sum(axis=1) / relevant
        return SearchMetrics(outcomes)

    def _ranked_gains(self, vectors: TaskVectors) -> ndarray:
        """The gains of the nearest documents of each query, (query, rank)."""
        matrix = comparable_vectors(vectors, self.texts)
        queries, documents = np.split(matrix, [len(self.queries)])
        depth = min(_MAX_DEPTH, len(documents))
        ranked = np.zeros((len(queries), depth))
        for start in range(0, len(queries), BLOCK):
            block = all_similarities(
                queries[start : start + BLOCK], documents, vectors.similarity
            )
            for query, similarities in enumerate(block, start):
                relevant = self.relevant[query]
                gains = np.zeros(len(documents))
                gains[relevant] = self.gains[query]
                # Almost equal similarities are ties.
                similarities[relevant] -= ROUNDING
                if self.excluded[query] >= 0:
                    similarities[self.excluded[query]] = -np.inf
                order = np.lexsort((gains, -similarities))
                ranked[query] = gains[order[:depth]]
        return ranked


def _dcg(gains: ndarray) -> ndarray:
    """The discounted cumulative gain of the first documents, from (..., rank): (...)."""
    first = gains[..., :DEPTH]
    dcg: ndarray = first @ _DISCOUNTS[: first.shape[-1]]
    return dcg


def corpus_task(folder: Path, split: Split | None, say: Say) -> CorpusTask:
    """The task of a split, `test` by default; raises DataError if it has no usable judgements."""
    beir = read_beir(folder)
    known = _known_judgements(beir, folder, split or "test", say)
    queries = known.group_by("query", "anchor", maintain_order=True).agg(
        "document", "gain"
    )
    document_of = {id_: number for number, id_ in enumerate(beir.corpus["document"])}
    relevant = []
    excluded = []
    for query, documents in queries.select("query", "document").iter_rows():
        relevant.append(np.array([document_of[id_] for id_ in documents]))
        excluded.append(-1 if query in documents else document_of.get(query, -1))
    name = folder.resolve().name
    count = len(excluded) - excluded.count(-1)
    if count:
        say(
            f"{name}: queries for which the document with their id isn't ranked, as in BEIR: {count:,}"
        )
    return CorpusTask(
        name,
        queries=queries["anchor"].to_list(),
        documents=beir.corpus["positive"].to_list(),
        relevant=relevant,
        gains=[np.array(gains) for gains in queries["gain"].to_list()],
        excluded=np.array(excluded),
    )


def _known_judgements(
    beir: BeirFolder, folder: Path, split: str, say: Say
) -> pl.DataFrame:
    """The relevant documents of a split's queries, from all of its files, without unknown ids."""
    splits = {path: split_of(path) for path in beir.judgements}
    tables = [beir.relevant(path) for path in splits if splits[path] == split]
    if not tables:
        found = ", ".join(sorted({*splits.values()}))
        raise DataError(
            f"no judgements of {split}, found {found}; choose with --split", path=folder
        )
    judged = pl.concat(tables).unique(["query", "document"], maintain_order=True)
    known = judged.drop_nulls(["anchor", "positive"])
    left_out = len(judged) - len(known)
    if left_out:
        say(
            f"{folder.resolve().name}: left out {left_out:,} judgements of unknown queries or documents"
        )
    if known.is_empty():
        raise DataError(f"no relevant document of a query of {split}", path=folder)
    return known
