"""Pairs with labels, scored by how the cosines of their texts follow the labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from aoe_train._conflicts import Say, settle, silent
from aoe_train._evaluate.correlation import Correlation, correlation
from aoe_train._evaluate.tasks import Split, Verdict
from aoe_train._evaluate.vectors import Vectors
from aoe_train._examples import distinct
from aoe_train._similarity import pair_similarities
from pairkit.errors import ConfigError, DataError
from pairkit.in_memory import Source, source_name
from pairkit.labels import AS_FOUND, LabelRules, worth_telling
from pairkit.parts import files_of
from pairkit.reader import read_pairs, split_names
from pairkit.records import PairDataset
from pairkit.tables import has_header, is_table

SPLIT_NAMES = {"test": "test", "dev": "validation"}


@dataclass(frozen=True)
class PairTask:
    """Pairs of texts with binary or graded labels.

    Attributes:
        labels: (pair,), on any scale, larger = more alike.
        parts: Each part's name and the rows that belong to it.
        likely: (pair,), how likely label 1 is by the judges' votes, where judges made the labels.
    """

    name: str
    text1: Sequence[str]
    text2: Sequence[str]
    labels: np.ndarray
    parts: Mapping[str, np.ndarray]
    likely: np.ndarray | None = None

    @property
    def texts(self) -> Sequence[str]:
        """Both sides."""
        return [*self.text1, *self.text2]

    @property
    def rows(self) -> Sequence[tuple[str, str]]:
        """The two texts of each pair."""
        return list(zip(self.text1, self.text2, strict=True))

    def similarities(self, vectors: Vectors) -> np.ndarray:
        """float64 (pair,): cosines, or what else the model's vectors are compared by."""
        pairs = np.stack([vectors.rows(self.text1), vectors.rows(self.text2)], axis=1)
        return pair_similarities(vectors.matrix, pairs, vectors.similarity)

    def judge(self, vectors: Vectors) -> Verdict:
        """Spearman and Pearson over all pairs at once (SentEval's "all" setting), and part by part.

        Raises:
            DataError: Fewer than two pairs, labels or cosines that are all alike, or NaN.
        """
        cosines = self.similarities(vectors)
        whole = correlation(cosines, self.labels, self.name)
        parts = {name: (self._part(cosines, rows), len(rows)) for name, rows in self.parts.items()}
        return Verdict(whole, parts)

    def _part(self, cosines: np.ndarray, rows: np.ndarray) -> Correlation | None:
        try:
            return correlation(cosines[rows], self.labels[rows], self.name)
        except DataError:  # a part of few pairs may well have labels that are all alike
            return None


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
    """What `label judge` says of the labels; anybody's table may have a column of such a name alone."""
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
    """Any pairs that `pairkit.reader.read_pairs` reads as a task named after them; see `read_one_split`."""
    return pair_task(shown_name(source), read_one_split(source, split, rules, say, columns))


def read_one_split(
    source: Source,
    split: str | None = None,
    rules: LabelRules = AS_FOUND,
    say: Say = silent,
    columns: Mapping[str, str] | None = None,
) -> pl.DataFrame:
    """The pairs to judge by.

    Args:
        source: A dataset's folder, a file, a Hub id, or rows in memory.
        split: The part of a dataset to take, `test` (unless told or there is but one) or `dev`; one file or
            table is taken whole.
        rules: What labels count as.
        say: Told what was made of the labels, where they are not 0 and 1, and of contradictory rows.
        columns: Roles to the source's names of columns; by default recognised.

    Raises:
        ConfigError: No such source, or a split of a single file or table.
        DataError: Not readable as pairs, or without such a split.
        RemoteError: The Hub could not be asked.
    """
    if not is_whole(source):
        wanted = _wanted_split(source, split, say)
        pairs = read_pairs(source, split=wanted, rules=rules, columns=columns)
        return told_pairs(pairs, source, columns, say).splits[wanted]
    if split is not None:
        kind = "file" if isinstance(source, str | Path) else "table"
        raise ConfigError(f"{source_name(source)}: all rows of a {kind} are used; leave --split {split} out")
    pairs = read_pairs(source, rules=rules, columns=columns)
    (frame,) = told_pairs(pairs, source, columns, say).splits.values()
    return frame


def told_pairs(
    pairs: PairDataset, source: Source, columns: Mapping[str, str] | None, say: Say
) -> PairDataset:
    """The same pairs, after it was told what was made of their source.

    That is that its files have no header line, what their labels count as, and which contradict each other.
    """
    if columns and not all(has_header(file, columns) for file in files_of(source)):
        by_number = ", ".join(f"column {number} is {role}" for role, number in columns.items())
        say(f"{pairs.source}: no header line; {by_number}")
    if told := worth_telling(pairs.labels):
        say(f"{pairs.source}: {told}")
    for name, frame in pairs.splits.items():
        if frame.height:
            examples = distinct(frame.select("text1", "text2", "label"))
            settle(
                examples, "keep", place=partial(_row, name), say=lambda words: say(f"{pairs.source}: {words}")
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
