"""Search as a task: whether judged results, unlabelled positives, or texts of one group come first.

`aoe sample-pairs --queries` draws queries on which two models differ, so metrics are of these queries. All
other queries have equal results, so the gain over all queries is the gain here times the share of these.
Judgements of LLMs count by their label, whatever its probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from aoe_train.data.examples import Say
from aoe_train.evaluation.resample import MeanMetrics
from aoe_train.evaluation.tasks import SearchText, TaskVectors
from aoe_train.model.similarity import ROUNDING, all_similarities, comparable, pair_similarities
from aoe_train.objectives.training_rows import ABSENT, Examples
from aoe_train.settings.train_settings import Similarity
from pairkit.base.errors import DataError

P_AT_1, MRR, MAP = "P@1", "mrr", "map@10"
_DEPTHS = (1, 5, 10)
_MAP_DEPTH = 10
_BLOCK = 128  # anchors ranked at once


@dataclass(frozen=True)
class SearchMetrics(MeanMetrics):
    """Metrics of queries that are a share of all queries, or of all (None); the first one decides."""

    share: float | None = None


@dataclass(frozen=True)
class SearchTask:
    """Rank the judged results of each query; `queries` are the rows of each one's results."""

    name: str
    rows: Sequence[tuple[str, str]]
    relevant: np.ndarray
    queries: Sequence[np.ndarray]
    top: int
    share: float

    @property
    def texts(self) -> Sequence[SearchText]:
        """Queries and results."""
        return [
            SearchText(text, is_query)
            for row in self.rows
            for text, is_query in zip(row, (True, False), strict=True)
        ]

    def measure(self, vectors: TaskVectors) -> SearchMetrics:
        """Precision of the first result, and whether one of the first `top` is relevant."""
        pairs = vectors.rows(self.texts).reshape(-1, 2)
        scores = pair_similarities(vectors.matrix, pairs, vectors.similarity)
        ranked = [self.relevant[rows[np.argsort(-scores[rows], kind="stable")]] for rows in self.queries]
        outcomes = {P_AT_1: np.array([relevant[0] for relevant in ranked])}
        if self.top > 1:
            outcomes[f"success@{self.top}"] = np.array([relevant[: self.top].any() for relevant in ranked])
        return SearchMetrics(outcomes, self.share)


def search_task(name: str, frame: pl.DataFrame, say: Say) -> SearchTask:
    """A task from the queries whose results are all judged."""
    if not np.isin(frame["label"].to_numpy(), (0, 1)).all():
        raise DataError("expected labels 0 and 1; judge its pairs with `pairs review --no-grades`", path=name)
    samples = frame.select("query_top", "query_share").unique()
    if samples.height > 1:
        raise DataError("has queries of several samples; evaluate each sample separately", path=name)
    frame = frame.unique(["text1", "text2"], keep="first", maintain_order=True)
    judged = frame.filter(pl.len().over("text1") == pl.col("query_results")).sort("text1", "text2")
    if left_out := frame["text1"].n_unique() - judged["text1"].n_unique():
        say(f"{name}: left out {left_out:,} queries with unjudged results")
    if judged.is_empty():
        raise DataError("no query has judgements of all its results; judge more pairs", path=name)
    groups = judged.with_row_index().group_by("text1", maintain_order=True).agg("index")["index"]
    ((top, share),) = samples.rows()
    queries = [rows.to_numpy() for rows in groups]
    return SearchTask(
        name,
        judged.select("text1", "text2").rows(),
        judged["label"].to_numpy() == 1,
        queries,
        int(top),
        share,
    )


@dataclass(frozen=True)
class RetrievalTask:
    """Find the positives of each anchor among all positives and negatives."""

    name: str
    examples: Examples

    @property
    def texts(self) -> Sequence[SearchText]:
        """Anchors as queries, then positives and negatives as documents."""
        sides = zip(self._sides(), (True, False), strict=True)
        return [
            SearchText(self.examples.texts[i], is_query) for side, is_query in sides for i in side.tolist()
        ]

    def _sides(self) -> tuple[np.ndarray, np.ndarray]:
        """The indices of anchors, and of positives and negatives."""
        rows = self.examples.rows
        return np.unique(rows[:, 0]), np.unique(rows[:, 1:][rows[:, 1:] != ABSENT])

    @property
    def rows(self) -> Sequence[tuple[str, ...]]:
        """The texts of each row."""
        texts = self.examples.texts
        return [tuple(texts[i] for i in row if i != ABSENT) for row in self.examples.rows.tolist()]

    def measure(self, vectors: TaskVectors) -> SearchMetrics:
        """MRR of each anchor's best positive, recall of its positives, and triplet accuracy: (anchor,)."""
        count, (queries, documents) = len(self.examples.texts), self._sides()
        encoded = np.zeros(2 * count, np.int64)  # of each text as a query, then of each as a document
        encoded[np.concatenate([queries, count + documents])] = vectors.rows(self.texts)
        matrix, rows = vectors.matrix[encoded], self.examples.rows.copy()
        rows[:, 1:][rows[:, 1:] != ABSENT] += count
        ids = np.arange(2 * count) % count
        reciprocal = reciprocal_ranks(matrix, rows, vectors.similarity, content_ids=ids)
        _, anchor, counts = np.unique(rows[:, 0], return_inverse=True, return_counts=True)
        best = np.zeros(len(counts))
        np.maximum.at(best, anchor, reciprocal)
        each = {f"recall@{depth}": reciprocal >= 1 / depth for depth in _DEPTHS}
        if self.examples.kind == "triplet":
            each["triplet_accuracy"] = is_nearer(matrix, rows, vectors.similarity)
        return SearchMetrics(
            {MRR: best} | {name: np.bincount(anchor, values) / counts for name, values in each.items()}
        )


@dataclass(frozen=True)
class GroupTask:
    """Find the other texts of each text's group, such as requests with one intent."""

    name: str
    texts: Sequence[str]
    groups: np.ndarray  # the group of each text, (text,)

    def measure(self, vectors: TaskVectors) -> SearchMetrics:
        """Average precision at ten, and P@1, of each text with others in its group: (text,)."""
        matrix = comparable(vectors.matrix[vectors.rows(self.texts)], vectors.similarity)
        others = np.bincount(self.groups)[self.groups] - 1
        queries, blocks = np.flatnonzero(others), list[np.ndarray]()
        depth = min(_MAP_DEPTH, len(matrix) - 1)  # without the text itself
        for start in range(0, len(queries), _BLOCK):
            block = queries[start : start + _BLOCK]
            similarities = all_similarities(matrix[block], matrix, vectors.similarity)
            similarities[np.arange(len(block)), block] = -np.inf
            nearest = np.argsort(-similarities, axis=1, kind="stable")[:, :depth]
            blocks.append(self.groups[nearest] == self.groups[block][:, None])
        same = np.concatenate(blocks)
        precision = np.cumsum(same, axis=1) / np.arange(1, same.shape[1] + 1)
        average = (precision * same).sum(axis=1) / np.minimum(others[queries], _MAP_DEPTH)
        return SearchMetrics({MAP: average, P_AT_1: same[:, 0]})


def group_task(name: str, rows: Examples) -> GroupTask:
    """A task from rows of a text and the name of its group; of equal texts the first."""
    _, first = np.unique(rows.rows[:, 0], return_index=True)
    kept = rows.rows[np.sort(first)]
    texts = [rows.texts[text] for text in kept[:, 0].tolist()]
    _, groups = np.unique(kept[:, 1], return_inverse=True)
    if np.bincount(groups).max() < 2:
        raise DataError("each group has one text; expected groups of several", path=name)
    return GroupTask(name, texts, groups)


def is_nearer(vectors: np.ndarray, triplets: np.ndarray, similarity: Similarity = "cosine") -> np.ndarray:
    """Whether each anchor is more similar to its positive than to any negative, (row,); a tie is a miss."""
    anchors, others = np.broadcast_arrays(triplets[:, :1], triplets[:, 1:])
    pairs = np.stack([anchors.ravel(), others.ravel()], axis=1)
    # In one call, because similarities are rounded relative to the largest in a call.
    similarities = pair_similarities(vectors, pairs, similarity).reshape(others.shape)
    nearer = (similarities[:, :1] > similarities[:, 1:] + ROUNDING) | (others[:, 1:] == ABSENT)
    is_correct: np.ndarray = nearer.all(axis=1)
    return is_correct


def reciprocal_ranks(
    vectors: np.ndarray,
    rows: np.ndarray,
    similarity: Similarity = "cosine",
    *,
    content_ids: np.ndarray | None = None,
) -> np.ndarray:
    """1 / the rank of each row's positive among the positives and negatives of all rows, (row,).

    The anchor itself and its other positives are not ranked. Ties count against the positive, so a model
    with constant vectors scores low. Equal `content_ids` are equal texts.
    """
    ids = np.arange(len(vectors)) if content_ids is None else content_ids
    candidates = np.unique(rows[:, 1:][rows[:, 1:] != ABSENT])
    column = np.searchsorted(candidates, rows[:, 1])
    anchors, row = np.unique(rows[:, 0], return_inverse=True)
    candidate_vectors = comparable(vectors[candidates], similarity)
    ranks = np.empty(len(rows))
    for start in range(0, len(anchors), _BLOCK):
        block = anchors[start : start + _BLOCK]
        cosines = all_similarities(comparable(vectors[block], similarity), candidate_vectors, similarity)
        pair = np.flatnonzero((row >= start) & (row < start + _BLOCK))
        anchor, positive = row[pair] - start, column[pair]
        positive_cosines = cosines[anchor, positive]
        cosines[anchor, positive] = -np.inf
        cosines[ids[block][:, None] == ids[candidates]] = -np.inf
        ranks[pair] = 1 + (cosines[anchor] >= positive_cosines[:, None] - ROUNDING).sum(axis=1)
    return 1 / ranks
