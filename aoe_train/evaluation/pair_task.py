"""Labelled pairs as a task: correlations or classification metrics, or the ranking of judged search results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy import ndarray

from aoe_train.data.examples import (
    Say,
    distinct,
    read_examples,
    resolve_conflicts,
    silent,
)
from aoe_train.evaluation.pair_metrics import binary, correlation
from aoe_train.evaluation.search_results import (
    P_AT_1,
    SearchMetrics,
    group_numbers,
    search_texts,
)
from aoe_train.evaluation.tasks import (
    Metrics,
    SearchText,
    Split,
    TaskMetrics,
    TaskVectors,
)
from aoe_train.model.similarity import pair_similarities
from aoe_train.objectives.training_rows import Examples
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.system.folders import base_name
from pairkit.dataset.labels import AS_FOUND, LabelRules, describe_labels
from pairkit.dataset.reading.in_memory import Source, source_name
from pairkit.dataset.reading.parts import files_of
from pairkit.dataset.reading.reader import read_pairs, split_names
from pairkit.dataset.reading.tables import has_header, is_table
from pairkit.dataset.records import FILE, QUERY_COLUMNS, RANK, ROW
from pairkit.similarity.measures import estimated_tokens

_LENGTH_BUCKETS = {"<128": 0, "128-255": 128, "256-511": 256, ">=512": 512}


@dataclass(frozen=True)
class PairTask:
    """Pairs with graded or binary labels; thresholds are chosen on the pairs of `dev`."""

    name: str
    text1: Sequence[str]
    text2: Sequence[str]
    labels: ndarray
    parts: Mapping[str, ndarray]
    probabilities: ndarray | None = None
    is_binary: bool = False
    dev: PairTask | None = None

    @property
    def texts(self) -> Sequence[str]:
        """Both sides of all pairs."""
        texts = [*self.text1, *self.text2]
        if self.dev is not None:
            texts += self.dev.texts
        return texts

    @property
    def rows(self) -> Sequence[tuple[str, str]]:
        """The two texts of each pair."""
        return list(zip(self.text1, self.text2, strict=True))

    @property
    def row_examples(self) -> ndarray:
        """The number of each row in the metrics."""
        return np.arange(len(self.labels))

    def similarities(self, vectors: TaskVectors) -> ndarray:
        """float64 (pair,): cosines, or the model's other measure."""
        sides = [vectors.rows(self.text1), vectors.rows(self.text2)]
        pairs = np.stack(sides, axis=1)
        return pair_similarities(vectors.matrix, pairs, vectors.similarity)

    def measure(self, vectors: TaskVectors) -> TaskMetrics:
        """`Correlation` or `Binary` of all pairs, and of each part, with the thresholds of all pairs."""
        thresholds = None
        if self.dev is not None:
            dev = binary(self.dev.similarities(vectors), self.dev.labels, self.dev.name)
            thresholds = dev.best_thresholds()
        cosines = self.similarities(vectors)

        def metrics(rows: ndarray | slice, probabilities: ndarray | None) -> Metrics:
            labels = self.labels[rows]
            if self.is_binary:
                return binary(
                    cosines[rows], labels, self.name, thresholds, probabilities
                )
            return correlation(cosines[rows], labels, self.name)

        parts: dict[str, tuple[Metrics | None, int]] = {}
        for name, rows in self.parts.items():
            try:
                parts[name] = metrics(rows, None), len(rows)
            except DataError:
                parts[name] = None, len(rows)
        return TaskMetrics(metrics(slice(None), self.probabilities), parts)


def pair_task(name: str, frame: pl.DataFrame) -> PairTask:
    """A task from the columns text1, text2 and label, in parts by the optional column subset."""
    parts = {}
    dtype = frame.schema.get("subset")
    if dtype is not None and not dtype.is_nested():
        subsets = frame["subset"].cast(pl.String)
        for subset in subsets.drop_nulls().unique(maintain_order=True):
            parts[subset] = (subsets == subset).arg_true().to_numpy()
    return PairTask(
        name,
        frame["text1"].to_list(),
        frame["text2"].to_list(),
        frame["label"].cast(pl.Float64).to_numpy(),
        parts,
        _probabilities(frame),
    )


def _probabilities(frame: pl.DataFrame) -> ndarray | None:
    """Probabilities of label 1 in a table of `label judge`; other tables may have a similar column."""
    if not {"judged", "votes", "probability"} <= {*frame.columns}:
        return None
    column = frame["probability"]
    if column.dtype.is_nested():
        return None
    # In a CSV file, all columns are texts.
    numbers = column.cast(pl.Float64, strict=False)
    if numbers.has_nulls() or not numbers.is_between(0, 1).all():
        return None
    return numbers.to_numpy()


@dataclass(frozen=True)
class SearchTask:
    """Rank the judged results of each query; `queries` are the rows of each one's results.

    `aoe sample-pairs --queries` draws queries on which candidates differ, so metrics are of these queries. All
    other queries have equal results, so the gain over all queries is the gain here times the `share` of these.
    Judgements of LLMs count by their label, whatever its probability.
    """

    name: str
    rows: Sequence[tuple[str, str]]
    relevant: ndarray
    queries: Sequence[ndarray]
    top: int
    share: float
    # The rank of each row by candidate, with which no model is needed; 0 if it isn't among the first `top`.
    ranks: Mapping[str, ndarray]

    @property
    def texts(self) -> Sequence[SearchText]:
        """Queries and results."""
        texts = []
        for query, result in self.rows:
            texts += search_texts([query], [result])
        return texts

    @property
    def row_examples(self) -> ndarray:
        """The number of each row's query."""
        return group_numbers(self.queries)

    def measure(self, vectors: TaskVectors) -> SearchMetrics:
        """Precision of the first result, and whether one of the first `top` is relevant."""
        pairs = vectors.rows(self.texts).reshape(-1, 2)
        scores = pair_similarities(vectors.matrix, pairs, vectors.similarity)
        ranks = np.zeros(len(scores))
        for rows in self.queries:
            best_first = rows[np.argsort(-scores[rows], kind="stable")]
            ranks[best_first] = np.arange(len(rows)) + 1
        return self.metrics(ranks)

    def metrics(self, ranks: ndarray) -> SearchMetrics:
        """As `measure`, from the rank of each row; rank 0 means that the candidate didn't find it."""
        depths = {P_AT_1: 1}
        if self.top > 1:
            depths[f"success@{self.top}"] = self.top
        outcomes = {}
        for name, depth in depths.items():
            is_hit = self.relevant & (ranks > 0) & (ranks <= depth)
            outcomes[name] = np.array([is_hit[rows].any() for rows in self.queries])
        return SearchMetrics(outcomes, self.share)


def search_task(name: str, frame: pl.DataFrame, say: Say) -> SearchTask:
    """A task from the queries whose results are all judged; raises DataError if there are none."""
    sheet = _checked_sheet(name, frame)
    sheet = sheet.unique(["text1", "text2"], keep="first", maintain_order=True)
    is_complete = pl.len().over("text1") == pl.col("query_results")
    judged = sheet.filter(is_complete).sort("text1", "text2")
    left_out = sheet["text1"].n_unique() - judged["text1"].n_unique()
    if left_out:
        say(f"{name}: left out {left_out:,} queries with unjudged results")
    if judged.is_empty():
        raise DataError(
            "no query has judgements of all its results; judge more pairs", path=name
        )
    queries = (
        judged.with_row_index().group_by("text1", maintain_order=True).agg("index")
    )
    ranks = {}
    for column in judged:
        if column.name.startswith(RANK):
            numbers = column.cast(pl.Float64, strict=False).fill_null(0)
            ranks[column.name.removeprefix(RANK)] = numbers.to_numpy()
    return SearchTask(
        name,
        rows=judged.select("text1", "text2").rows(),
        relevant=judged["label"].to_numpy() == 1,
        queries=[rows.to_numpy() for rows in queries["index"]],
        top=int(judged["query_top"][0]),
        share=judged["query_share"][0],
        ranks=ranks,
    )


def _checked_sheet(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """The rows with numbers in `QUERY_COLUMNS`; raises DataError for other sheets than of one sample."""
    if not np.isin(frame["label"].to_numpy(), (0, 1)).all():
        raise DataError(
            "expected labels 0 and 1; judge its pairs with `pairs review --no-grades`",
            path=name,
        )
    # In a CSV file, all columns are texts.
    of_query = pl.col(QUERY_COLUMNS)
    sheet = frame.with_columns(of_query.cast(pl.Float64, strict=False))
    if any(sheet.select(of_query.has_nulls()).row(0)):
        raise DataError(
            f"expected numbers in {', '.join(QUERY_COLUMNS)}, as `aoe sample-pairs` writes them",
            path=name,
        )
    if sheet.select("query_top", "query_share").n_unique() > 1:
        raise DataError(
            "has queries of several samples; evaluate each sample separately", path=name
        )
    return sheet


class PairSource(NamedTuple):
    """Pairs to evaluate on: a source, its split, how to read it, and a listener of notes."""

    source: Source
    split: Split | None = None
    rules: LabelRules = AS_FOUND
    say: Say = silent
    columns: Mapping[str, str] | None = None

    @property
    def name(self) -> str:
        """The name of the file or dataset without its path."""
        return Path(base_name(source_name(self.source))).name

    def task(self) -> PairTask:
        """The pairs of one split as a task."""
        return pair_task(self.name, self.frame())

    def frame(self) -> pl.DataFrame:
        """The pairs of a source without splits, or of one split."""
        (frame,) = self.read(self.chosen_split(self.say)).values()
        return frame

    def positives(self) -> Examples | None:
        """Positives or triplets of one split; None for rows with labels."""
        notes = list[str]()
        chosen_split = self.chosen_split(notes.append)
        examples = read_examples(
            self.source,
            split=chosen_split,
            columns=self.columns,
            rules=self.rules,
            meant="pairs or groups",
            say=notes.append,
        )
        if examples.kind not in ("positive", "triplet"):
            return None
        for note in notes:
            self.say(note)
        return examples

    def binary_task(self) -> PairTask:
        """Pairs with labels 0 and 1 (ACL 2024, Table 2); parts are by text length, as in its Figure 9.

        Raises DataError if there is no such split.
        """
        split = self.chosen_split(self.say)
        (frame,) = self.read(split).values()
        dev = None
        # If test is evaluated, the thresholds are chosen on validation.
        if split == "test" and "validation" in split_names(self.source):
            (dev_frame,) = self.read("validation").values()
            if dev_frame["label"].n_unique() < 2:
                self.say(
                    f"{source_name(self.source)}: validation has only one label, so it can't choose"
                    " thresholds"
                )
            else:
                dev = pair_task(f"{self.name}, validation", dev_frame)
        task = pair_task(self.name, frame)
        parts = length_buckets(task.text1, task.text2)
        return replace(task, parts=parts, is_binary=True, dev=dev)

    def read(self, split: str | None = None) -> Mapping[str, pl.DataFrame]:
        """Read the splits, and `say` missing headers, the meaning of labels and contradictions."""
        pairs = read_pairs(
            self.source,
            split=split,
            rules=self.rules,
            columns=self.columns,
            placed=True,
        )

        def note(text: str) -> None:
            self.say(f"{pairs.source}: {text}")

        columns = self.columns
        files = files_of(self.source)
        if columns and not all(has_header(file, columns) for file in files):
            roles = [f"column {number} is {role}" for role, number in columns.items()]
            note(f"no header line; {', '.join(roles)}")
        meaning = describe_labels(pairs.labels)
        if meaning:
            note(meaning)
        for frame in pairs.splits.values():
            if frame.height:
                rows = distinct(frame.select("text1", "text2", "label"))
                resolve_conflicts(
                    rows, "keep", locate=partial(_file_and_row, frame), say=note
                )
        return {name: frame.drop(FILE, ROW) for name, frame in pairs.splits.items()}

    def chosen_split(self, say: Say) -> str | None:
        """The split to judge; by default a single split of any name; None for a source without splits.

        Says which one it chose; raises ConfigError if a split was requested of a source without splits.
        """
        where = source_name(self.source)
        if isinstance(self.source, str | Path):
            kind = "file"
            path = Path(self.source)
            is_whole = path.is_file() or (is_table(path) and not path.is_dir())
        else:
            kind = "table"
            is_whole = split_names(self.source) == ["train"]
        if is_whole:
            if self.split is not None:
                raise ConfigError(f"{where}: a {kind} has no splits; leave --split out")
            return None
        names = split_names(self.source)
        if self.split is not None:
            return self.split
        if "test" not in names and "validation" in names and len(names) > 1:
            say(f"{where}: has no test split, using validation")
            return "validation"
        if len(names) > 1:
            return "test"
        if names[0] not in ("test", "validation"):
            say(f"{where}: using its only split, {names[0]}")
        return names[0]


def _file_and_row(frame: pl.DataFrame, number: int) -> str:
    """The origin of a row, as `file:row`."""
    return f"{frame[FILE][number]}:{frame[ROW][number]}"


def length_buckets(text1: Sequence[str], text2: Sequence[str]) -> dict[str, ndarray]:
    """Rows by the `estimated_tokens` of their longer text, which don't depend on the model."""
    frame = pl.DataFrame({"text1": list(text1), "text2": list(text2)})
    longer = pl.max_horizontal(estimated_tokens(pl.col(name)) for name in frame.columns)
    counts = frame.select(longer).to_series()
    return rows_by_bucket(counts.to_numpy(), _LENGTH_BUCKETS)


def rows_by_bucket(values: ndarray, starts: Mapping[str, int]) -> dict[str, ndarray]:
    """The rows of each bucket that isn't empty; `starts` are the buckets' lowest values, ascending."""
    bucket = np.searchsorted(list(starts.values()), values, side="right") - 1
    rows = {}
    for number, name in enumerate(starts):
        in_bucket = np.flatnonzero(bucket == number)
        if len(in_bucket):
            rows[name] = in_bucket
    return rows
