"""A table of rankings: by words, by each model, by both; each compared with those that it should beat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from aoe_train.evaluation.duplicates.task import DuplicatesTask
from aoe_train.evaluation.embedders.embedder import Embedder
from aoe_train.evaluation.overlap import Overlap, overlap
from aoe_train.evaluation.resample import compare
from aoe_train.evaluation.score import Resampling, Score
from aoe_train.evaluation.task import TaskMetrics, TaskVectors, summarise
from aoe_train.model.hybrid import WEIGHTS, Words
from pairkit.app.progress import Display, Listener, stage

BASELINES: Final[dict[Words, str]] = {"bm25": "BM25", "tfidf": "TF-IDF"}


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
