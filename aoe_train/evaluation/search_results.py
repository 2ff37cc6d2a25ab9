"""Judged search results as a task: whether a model ranks relevant results of a query first.

`aoe sample --queries` draws queries on which two models differ, so metrics are of these queries. All other
queries have equal results, so the gain over all queries is the gain here times the share of these queries.
Judgements of LLMs count by their label, whatever its probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from aoe_train.data.examples import Say
from aoe_train.evaluation.resample import MeanMetrics
from aoe_train.evaluation.tasks import TaskVectors
from aoe_train.model.similarity import pair_similarities
from pairkit.app.errors import DataError

P_AT_1 = "P@1"


@dataclass(frozen=True)
class SearchMetrics(MeanMetrics):
    """Metrics of queries that are a share of all queries."""

    share: float = 1.0


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
    def texts(self) -> Sequence[str]:
        """Queries and results."""
        return [text for row in self.rows for text in row]

    def measure(self, vectors: TaskVectors) -> SearchMetrics:
        """Precision of the first result, and whether one of the first `top` is relevant."""
        pairs = np.stack([vectors.rows(side) for side in zip(*self.rows, strict=True)], axis=1)
        scores = pair_similarities(vectors.matrix, pairs, vectors.similarity)
        ranked = [self.relevant[rows[np.argsort(-scores[rows], kind="stable")]] for rows in self.queries]
        outcomes = {P_AT_1: np.array([relevant[0] for relevant in ranked])}
        if self.top > 1:
            outcomes[f"success@{self.top}"] = np.array([relevant[: self.top].any() for relevant in ranked])
        return SearchMetrics(outcomes, self.share)


def search_task(name: str, frame: pl.DataFrame, say: Say) -> SearchTask:
    """A task from the queries whose results are all judged."""
    if not np.isin(frame["label"].to_numpy(), (0, 1)).all():
        raise DataError(
            "expected labels 0 and 1; judge its pairs with `pairs review`, without --grades", path=name
        )
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
