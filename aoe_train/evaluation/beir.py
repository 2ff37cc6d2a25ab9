"""Folders in BEIR's layout: queries, a corpus, and the relevant documents of each query.

```
FOLDER/corpus.jsonl                  _id, text, optionally title
      /queries.jsonl                 _id, text
      /qrels/{test,dev,train}.tsv    query-id, corpus-id, score (0: not relevant)
```

BEIR: Thakur et al., NeurIPS 2021 (arXiv 2104.08663). Its rules hold: the score of a document is its gain, a
title is put before its text, and a document with the id of the query is not ranked.
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
from pairkit.dataset.reading.tables import read_table

_SPLITS: dict[Split | None, str] = {None: "test", "test": "test", "validation": "dev"}
_DEPTH, _MOST = 10, 100
_BLOCK = 64  # queries ranked at once
_DISCOUNTS = 1 / np.log2(np.arange(2, _DEPTH + 2))


_CORPUS, _QUERIES = "corpus.jsonl", "queries.jsonl"


def is_beir(source: object) -> bool:
    """Whether a source is a folder in BEIR's layout."""
    return isinstance(source, str | Path) and all(
        (Path(source) / name).is_file() for name in (_CORPUS, _QUERIES)
    )


@dataclass(frozen=True)
class BeirTask:
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


def beir_task(folder: Path, split: Split | None, say: Say) -> BeirTask:
    """Read the task of a folder."""
    corpus, queries = (_texts(folder / name) for name in (_CORPUS, _QUERIES))
    path = folder / "qrels" / f"{_SPLITS[split]}.tsv"
    if not path.is_file():
        names = ", ".join(sorted(file.stem for file in path.parent.glob("*.tsv"))) or "none"
        raise DataError(f"no such file; splits in this folder: {names}", path=path)
    judged = read_table(path)
    if judged.columns[:2] != ["query-id", "corpus-id"] or judged.width != 3:
        raise DataError("expected the columns query-id, corpus-id and score", path=path)
    judged.columns = ["query", "document", "gain"]
    judged = judged.with_columns(pl.col("gain").cast(pl.Float64, strict=False))
    if judged["gain"].has_nulls():
        raise DataError(
            "expected a number as score", path=path, row=2 + int(judged["gain"].is_null().arg_max() or 0)
        )
    relevant = judged.filter(pl.col("gain") > 0).unique(["query", "document"], maintain_order=True)
    known = relevant.join(
        queries.rename({"text": "query_text"}), left_on="query", right_on="id", how="inner"
    ).join(
        corpus.with_row_index("place").select("place", "id"), left_on="document", right_on="id", how="inner"
    )
    if left_out := len(relevant) - len(known):
        say(f"{folder.name}: left out {left_out:,} judgements of unknown queries or documents")
    if known.is_empty():
        raise DataError("no relevant document for any query of queries.jsonl", path=path)
    grouped = known.sort("query", "place").group_by("query", "query_text", maintain_order=True).agg("place", "gain")
    place_of = dict(corpus.with_row_index("place").select("id", "place").iter_rows())
    return BeirTask(
        folder.resolve().name,
        grouped["query_text"].to_list(),
        corpus["text"].to_list(),
        [np.array(places) for places in grouped["place"].to_list()],
        [np.array(gains) for gains in grouped["gain"].to_list()],
        np.array([place_of.get(query, -1) for query in grouped["query"]]),
    )


def _texts(path: Path) -> pl.DataFrame:
    """The ids and texts of a file, titles before texts."""
    frame = read_table(path)
    if missing := {"_id", "text"} - {*frame.columns}:
        raise DataError(f"no column {', '.join(sorted(missing))}; expected _id and text", path=path)
    parts = [
        pl.col(name).cast(pl.String).fill_null("") for name in ("title", "text") if name in frame.columns
    ]
    text = pl.concat_str(parts, separator=" ").str.strip_chars()
    return frame.select(id=pl.col("_id").cast(pl.String), text=text).unique("id", maintain_order=True)
