"""Search as a task: whether positives, relevant documents, or texts of one group come first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
from numpy import ndarray

from aoe_train.data.examples import Say
from aoe_train.evaluation.tasks import (
    MeanMetrics,
    SearchText,
    Split,
    TaskVectors,
    comparable_vectors,
)
from aoe_train.model.similarity import (
    ROUNDING,
    all_similarities,
    comparable,
    pair_similarities,
)
from aoe_train.objectives.training_rows import (
    ABSENT,
    Examples,
    TextSelection,
    distinct_texts,
)
from aoe_train.settings.train_settings import Similarity
from pairkit.base.errors import DataError
from pairkit.dataset.reading.beir import BeirFolder, read_beir
from pairkit.dataset.reading.parts import split_of

P_AT_1 = "P@1"
MRR = "mrr"
MAP = "map@10"
NDCG = "ndcg@10"
_BLOCK = 128  # queries ranked at once
_RECALL_DEPTHS = (1, 5, 10)
_DEPTH = 10  # first results that most metrics consider
_MAX_DEPTH = 100  # first results that any metric considers
_DISCOUNTS = 1 / np.log2(np.arange(2, _DEPTH + 2))  # of nDCG, by rank


@dataclass(frozen=True)
class SearchMetrics(MeanMetrics):
    """Metrics of queries that are a share of all queries, or of all (None); the first one decides."""

    share: float | None = None


def search_texts(queries: Iterable[str], documents: Iterable[str]) -> list[SearchText]:
    """Queries, then documents, each with its prompt."""
    return [
        *(SearchText(text, is_query=True) for text in queries),
        *(SearchText(text, is_query=False) for text in documents),
    ]


def group_numbers(groups: Sequence[ndarray]) -> ndarray:
    """The number of the group of each row, int64 (row,), if those of a group follow each other."""
    return np.repeat(np.arange(len(groups)), [len(group) for group in groups])


def _group_means(values: ndarray, groups: ndarray) -> ndarray:
    """The mean of the values (row,) of each group: (group,)."""
    means: ndarray = np.bincount(groups, values) / np.bincount(groups)
    return means


@dataclass(frozen=True)
class RetrievalTask:
    """Find the positives of each anchor among all positives and negatives."""

    name: str
    examples: Examples

    @property
    def texts(self) -> Sequence[SearchText]:
        """Anchors as queries, then positives and negatives as documents."""
        texts = self.examples.texts
        anchors = TextSelection(texts, self._anchors)
        return search_texts(anchors, TextSelection(texts, self._candidates))

    @cached_property
    def _anchors(self) -> ndarray:
        """The indices of anchors."""
        return np.unique(self.examples.rows[:, 0])

    @cached_property
    def _candidates(self) -> ndarray:
        """The indices of positives and negatives."""
        return distinct_texts(self.examples.rows[:, 1:])

    @property
    def rows(self) -> Sequence[tuple[str, ...]]:
        """The texts of each row."""
        texts = self.examples.texts
        rows = self.examples.rows.tolist()
        return [tuple(texts[index] for index in row if index != ABSENT) for row in rows]

    @property
    def row_examples(self) -> ndarray:
        """The number of each row's anchor."""
        return np.searchsorted(self._anchors, self.examples.rows[:, 0])

    def measure(self, vectors: TaskVectors) -> SearchMetrics:
        """MRR of each anchor's best positive, recall of its positives, and triplet accuracy: (anchor,)."""
        count = len(self.examples.texts)
        # The vector of each text as a query, then of each as a document.
        encoded = np.zeros(2 * count, np.int64)
        used = np.concatenate([self._anchors, count + self._candidates])
        encoded[used] = vectors.rows(self.texts)
        matrix = vectors.matrix[encoded]
        rows = self.examples.rows.copy()
        rows[:, 1:][rows[:, 1:] != ABSENT] += count

        ids = np.arange(2 * count) % count
        reciprocal = reciprocal_ranks(matrix, rows, vectors.similarity, content_ids=ids)
        anchor = self.row_examples
        best = np.zeros(len(self._anchors))
        np.maximum.at(best, anchor, reciprocal)
        outcomes = {MRR: best}
        # A positive may be in several rows, such as one for each negative.
        _, once = np.unique(rows[:, :2], axis=0, return_index=True)
        for depth in _RECALL_DEPTHS:
            is_found = reciprocal >= 1 / depth
            outcomes[f"recall@{depth}"] = _group_means(is_found[once], anchor[once])
        if self.examples.kind == "triplet":
            is_correct = is_nearer(matrix, rows, vectors.similarity)
            outcomes["triplet_accuracy"] = _group_means(is_correct, anchor)
        return SearchMetrics(outcomes)


@dataclass(frozen=True)
class GroupTask:
    """Find the other texts of each text's group, such as requests with one intent."""

    name: str
    texts: Sequence[str]
    groups: ndarray  # the group of each text, (text,)

    @property
    def row_examples(self) -> ndarray:
        """The number of each text that is a query, else -1."""
        is_query = np.bincount(self.groups)[self.groups] > 1
        return np.where(is_query, np.cumsum(is_query) - 1, -1)

    def measure(self, vectors: TaskVectors) -> SearchMetrics:
        """Average precision at ten, and P@1, of each text with others in its group: (text,)."""
        matrix = comparable_vectors(vectors, self.texts)
        others = np.bincount(self.groups)[self.groups] - 1
        queries = np.flatnonzero(others)
        blocks = []
        depth = min(_DEPTH, len(matrix) - 1)  # without the text itself
        for start in range(0, len(queries), _BLOCK):
            block = queries[start : start + _BLOCK]
            similarities = all_similarities(matrix[block], matrix, vectors.similarity)
            similarities[np.arange(len(block)), block] = -np.inf
            nearest = np.argsort(-similarities, axis=1, kind="stable")[:, :depth]
            blocks.append(self.groups[nearest] == self.groups[block][:, None])
        is_same = np.concatenate(blocks)
        ranks = np.arange(1, is_same.shape[1] + 1)
        precision = np.cumsum(is_same, axis=1) / ranks
        findable = np.minimum(others[queries], _DEPTH)
        average = (precision * is_same).sum(axis=1) / findable
        return SearchMetrics({MAP: average, P_AT_1: is_same[:, 0]})


def group_task(name: str, rows: Examples, say: Say) -> GroupTask:
    """A task from rows of a text and the name of its group; of equal texts the first."""
    _, first = np.unique(rows.rows[:, 0], return_index=True)
    kept = rows.rows[np.sort(first)]
    if len(kept) < len(rows):
        say(f"{name}: left out {len(rows) - len(kept):,} rows with repeated texts")
    texts = [rows.texts[text] for text in kept[:, 0].tolist()]
    _, groups = np.unique(kept[:, 1], return_inverse=True)
    if np.bincount(groups).max() < 2:
        raise DataError(
            "each group has one text; expected groups of several", path=name
        )
    return GroupTask(name, texts, groups)


def is_nearer(
    vectors: ndarray,
    triplets: ndarray,
    similarity: Similarity = "cosine",
) -> ndarray:
    """Whether each anchor is more similar to its positive than to any negative, (row,); a tie is a miss."""
    anchors, others = np.broadcast_arrays(triplets[:, :1], triplets[:, 1:])
    pairs = np.stack([anchors.ravel(), others.ravel()], axis=1)
    # In one call, because similarities are rounded relative to the largest in a call.
    similarities = pair_similarities(vectors, pairs, similarity).reshape(others.shape)
    is_below = similarities[:, 1:] + ROUNDING < similarities[:, :1]
    is_absent = others[:, 1:] == ABSENT
    is_correct: ndarray = (is_below | is_absent).all(axis=1)
    return is_correct


def reciprocal_ranks(
    vectors: ndarray,
    rows: ndarray,
    similarity: Similarity = "cosine",
    *,
    content_ids: ndarray | None = None,
) -> ndarray:
    """1 / the rank of each row's positive among the positives and negatives of all rows, (row,).

    The anchor itself and its other positives are not ranked. Ties count against the positive, so a model
    with constant vectors scores low. Equal `content_ids` are equal texts.
    """
    ids = np.arange(len(vectors)) if content_ids is None else content_ids
    candidates = distinct_texts(rows[:, 1:])
    positive_column = np.searchsorted(candidates, rows[:, 1])
    anchors, anchor_of_row = np.unique(rows[:, 0], return_inverse=True)
    candidate_vectors = comparable(vectors[candidates], similarity)
    ranks = np.empty(len(rows))
    for start in range(0, len(anchors), _BLOCK):
        block = anchors[start : start + _BLOCK]
        queries = comparable(vectors[block], similarity)
        cosines = all_similarities(queries, candidate_vectors, similarity)
        is_in_block = (anchor_of_row >= start) & (anchor_of_row < start + _BLOCK)
        rows_in_block = np.flatnonzero(is_in_block)
        query_of_row = anchor_of_row[rows_in_block] - start
        columns = positive_column[rows_in_block]
        positive_cosines = cosines[query_of_row, columns]
        # Neither the positives of an anchor nor the anchor itself are ranked.
        cosines[query_of_row, columns] = -np.inf
        cosines[ids[block][:, None] == ids[candidates]] = -np.inf
        is_before = cosines[query_of_row] >= positive_cosines[:, None] - ROUNDING
        ranks[rows_in_block] = 1 + is_before.sum(axis=1)
    return 1 / ranks


@dataclass(frozen=True)
class CorpusTask:
    """Find the relevant documents of each query in a corpus, in the layout of BEIR.

    The score of a document is its gain. A document with the query's id is not ranked, unless it is relevant:
    in one's own folder, queries and documents may be numbered separately.
    """

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
        has_hit = is_hit[:, :_DEPTH].any(axis=1)
        first_rank = 1 + is_hit.argmax(axis=1)
        ideal = np.array([_dcg(np.sort(gains)[::-1]) for gains in self.gains])
        outcomes = {
            NDCG: _dcg(ranked) / ideal,
            f"mrr@{_DEPTH}": np.where(has_hit, 1 / first_rank, 0.0),
        }
        relevant = np.array([len(gains) for gains in self.gains])
        for depth in (_DEPTH, _MAX_DEPTH):
            outcomes[f"recall@{depth}"] = is_hit[:, :depth].sum(axis=1) / relevant
        return SearchMetrics(outcomes)

    def _ranked_gains(self, vectors: TaskVectors) -> ndarray:
        """The gains of the nearest documents of each query, (query, rank)."""
        matrix = comparable_vectors(vectors, self.texts)
        queries, documents = np.split(matrix, [len(self.queries)])
        depth = min(_MAX_DEPTH, len(documents))
        ranked = np.zeros((len(queries), depth))
        for start in range(0, len(queries), _BLOCK):
            block = all_similarities(
                queries[start : start + _BLOCK], documents, vectors.similarity
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
    first = gains[..., :_DEPTH]
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
