"""Pairs of texts with labels as a task: by correlations, and with labels 0 and 1 as a classification too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from aoe_train.data.examples import Say, distinct, resolve_conflicts, silent
from aoe_train.evaluation.pair_metrics import binary, correlation
from aoe_train.evaluation.resample import Metrics
from aoe_train.evaluation.tasks import Split, TaskMetrics, TaskVectors
from aoe_train.model.similarity import pair_similarities
from pairkit.app.errors import ConfigError, DataError
from pairkit.dataset.in_memory import Source, source_name
from pairkit.dataset.labels import AS_FOUND, LabelRules, worth_telling
from pairkit.dataset.parts import files_of
from pairkit.dataset.reader import read_pairs, split_names
from pairkit.dataset.records import PairDataset
from pairkit.dataset.tables import has_header, is_table
from pairkit.similarity.measures import estimated_tokens

SPLIT_NAMES = {"test": "test", "dev": "validation"}
_SPLITS: dict[Split, tuple[str, ...]] = {"test": ("test", "validation"), "dev": ("validation",)}
"""By the split to judge: its pairs, and those that thresholds are chosen on."""

_BEGINS = {"<128": 0, "128-255": 128, "256-511": 256, ">=512": 512}


@dataclass(frozen=True)
class PairTask:
    """Pairs of texts with graded or binary labels; `dev` are binary ones on which thresholds are chosen."""

    name: str
    text1: Sequence[str]
    text2: Sequence[str]
    labels: np.ndarray
    parts: Mapping[str, np.ndarray]
    likely: np.ndarray | None = None
    is_binary: bool = False
    dev: PairTask | None = None

    @property
    def texts(self) -> Sequence[str]:
        """Both sides of all pairs."""
        return [*self.text1, *self.text2, *(self.dev.texts if self.dev else ())]

    @property
    def rows(self) -> Sequence[tuple[str, str]]:
        """The two texts of each pair."""
        return list(zip(self.text1, self.text2, strict=True))

    def similarities(self, vectors: TaskVectors) -> np.ndarray:
        """float64 (pair,): cosines, or what else the model's vectors are compared by."""
        pairs = np.stack([vectors.rows(self.text1), vectors.rows(self.text2)], axis=1)
        return pair_similarities(vectors.matrix, pairs, vectors.similarity)

    def measure(self, vectors: TaskVectors) -> TaskMetrics:
        """`Correlation`, or `Binary`, over all pairs at once (SentEval's "all" setting), and of each part.

        Parts have the thresholds of all pairs; a part whose labels are all alike has no metrics.
        """
        thresholds = None
        if self.dev is not None:
            known = binary(self.dev.similarities(vectors), self.dev.labels, self.dev.name)
            thresholds = known.best_thresholds()
        cosines = self.similarities(vectors)

        def metrics(rows: np.ndarray | slice, likely: np.ndarray | None = None) -> Metrics:
            if self.is_binary:
                return binary(cosines[rows], self.labels[rows], self.name, thresholds, likely)
            return correlation(cosines[rows], self.labels[rows], self.name)

        def metrics_of_part(rows: np.ndarray) -> Metrics | None:
            try:
                return metrics(rows)
            except DataError:
                return None

        whole = metrics(slice(None), self.likely)
        return TaskMetrics(
            whole, {name: (metrics_of_part(rows), len(rows)) for name, rows in self.parts.items()}
        )


def pair_task(name: str, frame: pl.DataFrame, *, part_column: str = "subset") -> PairTask:
    """A task of text1, text2 and label, in parts if the frame has `part_column`."""
    parts = {}
    if part_column in frame.columns:
        column = frame[part_column].to_numpy()
        parts = {part: np.flatnonzero(column == part) for part in dict.fromkeys(column.tolist())}
    return PairTask(
        name,
        frame["text1"].to_list(),
        frame["text2"].to_list(),
        frame["label"].cast(pl.Float64).to_numpy(),
        parts,
        _likely(frame),
    )


def _likely(frame: pl.DataFrame) -> np.ndarray | None:
    """Probabilities of the labels, if the table is of `label judge`; others may have such a column, too."""
    if not {"judged", "votes", "probability"} <= {*frame.columns}:
        return None
    found = frame["probability"]
    if not found.dtype.is_float() or found.has_nulls() or not found.is_between(0, 1).all():
        return None
    return found.cast(pl.Float64).to_numpy()


def read_pair_task(
    source: Source,
    split: Split | None = None,
    rules: LabelRules = AS_FOUND,
    say: Say = silent,
    columns: Mapping[str, str] | None = None,
) -> PairTask:
    """Any pairs that `read_one_split` reads, as a task named after them."""
    return pair_task(shown_name(source), read_one_split(source, split, rules, say, columns))


def read_one_split(
    source: Source,
    split: str | None = None,
    rules: LabelRules = AS_FOUND,
    say: Say = silent,
    columns: Mapping[str, str] | None = None,
) -> pl.DataFrame:
    """The pairs to judge by."""
    if not is_whole(source):
        wanted = _wanted_split(source, split, say)
        pairs = read_pairs(source, split=wanted, rules=rules, columns=columns)
        return noted_pairs(pairs, source, columns, say).splits[wanted]
    if split is not None:
        kind = "file" if isinstance(source, str | Path) else "table"
        raise ConfigError(f"{source_name(source)}: all rows of a {kind} are used; leave --split {split} out")
    pairs = read_pairs(source, rules=rules, columns=columns)
    (frame,) = noted_pairs(pairs, source, columns, say).splits.values()
    return frame


def noted_pairs(
    pairs: PairDataset, source: Source, columns: Mapping[str, str] | None, say: Say
) -> PairDataset:
    """The same pairs, after notes on absent header lines, what labels count as, and contradictions."""
    if columns and not all(has_header(file, columns) for file in files_of(source)):
        by_number = ", ".join(f"column {number} is {role}" for role, number in columns.items())
        say(f"{pairs.source}: no header line; {by_number}")
    if told := worth_telling(pairs.labels):
        say(f"{pairs.source}: {told}")
    for name, frame in pairs.splits.items():
        if frame.height:
            examples = distinct(frame.select("text1", "text2", "label"))
            resolve_conflicts(
                examples,
                "keep",
                locate=partial(_row, name),
                say=lambda words: say(f"{pairs.source}: {words}"),
            )
    return pairs


def _row(split: str, number: int) -> str:
    return f"row {number + 1:,} of {split}"


def shown_name(source: Source) -> str:
    """The source's last part, as tables and figures call it."""
    path = Path(source_name(source))
    return path.resolve().name if isinstance(source, str | Path) and path.exists() else path.name


def _wanted_split(source: Source, split: str | None, say: Say) -> str:
    """The split to judge by: the only one, be it called train, where none was asked for."""
    names = split_names(source)
    if split is not None or len(names) > 1:
        return SPLIT_NAMES[split or "test"]
    if names[0] not in SPLIT_NAMES.values():
        say(f"{source_name(source)}: {names[0]} is its only split, and is judged")
    return names[0]


def is_whole(source: Source) -> bool:
    """Whether a source is one file or table, without splits to choose among."""
    if isinstance(source, str | Path):
        path = Path(source)
        return path.is_file() or (is_table(path) and not path.is_dir())
    return len(split_names(source)) == 1


def read_binary_task(
    source: Source,
    split: Split | None = None,
    rules: LabelRules = AS_FOUND,
    say: Say = silent,
    columns: Mapping[str, str] | None = None,
) -> PairTask:
    """The same pairs, of labels 0 and 1, judged as a classification as well; parts are by length of text.

    Source: Spearman as ACL 2024, Table 2 reports it; parts as in its Figure 9.
    """
    name = shown_name(source)
    if is_whole(source) or (split is None and len(split_names(source)) == 1):
        return _task(name, {"test": read_one_split(source, split, rules, say, columns)})
    pairs = read_pairs(source, rules=rules, columns=columns)
    splits = noted_pairs(pairs, source, columns, say).splits
    wanted = _SPLITS[split or "test"]
    if wanted[0] not in splits:
        raise DataError(f"no split {wanted[0]!r}; there are {', '.join(splits)}", path=source_name(source))
    used = {name: splits[name] for name in wanted if name in splits}
    if len(used) > 1 and used["validation"]["label"].n_unique() < 2:
        say(f"{source_name(source)}: all labels of validation are alike, so it chooses no thresholds")
        used.pop("validation")
    return _task(name, used)


def _task(name: str, splits: dict[str, pl.DataFrame]) -> PairTask:
    """Judge `test` with `validation` for the thresholds; or `validation` alone, without."""
    judged = pair_task(name, splits["test" if "test" in splits else "validation"])
    chosen_on = "validation" if {"test", "validation"} <= {*splits} else None
    return replace(
        judged,
        parts=length_buckets(judged.text1, judged.text2),
        is_binary=True,
        dev=None if chosen_on is None else pair_task(f"{name}, {chosen_on}", splits[chosen_on]),
    )


def length_buckets(text1: Sequence[str], text2: Sequence[str]) -> dict[str, np.ndarray]:
    """The rows whose longer text has so many tokens; a bucket without rows is left out.

    Tokens are counted by `estimated_tokens`, so that every model is judged on the same buckets.
    """
    frame = pl.DataFrame({"text1": list(text1), "text2": list(text2)})
    counts = frame.select(pl.max_horizontal(estimated_tokens(pl.col(name)) for name in frame.columns))
    bucket = np.searchsorted(list(_BEGINS.values()), counts.to_series().to_numpy(), side="right") - 1
    found = {name: np.flatnonzero(bucket == number) for number, name in enumerate(_BEGINS)}
    return {name: rows for name, rows in found.items() if len(rows)}
