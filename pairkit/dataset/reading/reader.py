"""Read pairs or rows of any source."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from pairkit.base.errors import DataError
from pairkit.base.printable import one_line
from pairkit.base.settings import argument
from pairkit.dataset.frames import join_frames
from pairkit.dataset.labels import AS_FOUND, LabelRules, LabelsRead
from pairkit.dataset.negative_columns import ROW
from pairkit.dataset.provenance import count_generated_rows
from pairkit.dataset.reading.in_memory import Source, contents_of, source_name
from pairkit.dataset.reading.label_column import LabelColumn
from pairkit.dataset.reading.label_meaning import LabelMeaning, decide_labels
from pairkit.dataset.reading.pair_rows import to_rows
from pairkit.dataset.reading.parts import TablePart, parts_of, split_name
from pairkit.dataset.reading.proposed_columns import Meant
from pairkit.dataset.reading.source_table import SourceTable
from pairkit.dataset.records import PairDataset, join_bad_rows, report_bad_rows

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SplitRows:
    """Rows by split with columns text1, text2, label; or anchor, positive[, negatives]; or text."""

    splits: Mapping[str, pl.DataFrame]
    labels: LabelsRead | None
    # Tables with the numbers of their rows.
    places: Mapping[str, Sequence[tuple[str, pl.Series]]]
    written: Mapping[str, int]  # rows with generated texts
    bad_rows: pl.DataFrame

    def place(self, split: str, row: int) -> str:
        """The origin of a row, as `file:row`."""
        for where, numbers in self.places[split]:
            if row < len(numbers):
                return f"{where}:{numbers[row]}"
            row -= len(numbers)
        raise IndexError(f"{split} has no row {row}")

    def __getitem__(self, split: str) -> pl.DataFrame:
        """The rows of a split."""
        return self.splits[split]


def read_pairs(
    source: Source,
    columns: Mapping[str, str] | None = None,
    rules: LabelRules = AS_FOUND,
    *,
    split: str | None = None,
    placed: bool = False,
) -> PairDataset:
    """Read pairs as text1, text2, label and the source's other columns; if `placed`, `FILE` and `ROW`."""
    pairs = collect_pairs(source, columns, rules, split=split, placed=placed)
    report_bad_rows(pairs.bad_rows)
    contents = contents_of(source)
    if not isinstance(contents, PairDataset):
        return pairs
    return replace(pairs, bad_rows=join_bad_rows([contents.bad_rows, pairs.bad_rows]))


def collect_pairs(
    source: Source,
    columns: Mapping[str, str] | None = None,
    rules: LabelRules = AS_FOUND,
    *,
    split: str | None = None,
    placed: bool = False,
) -> PairDataset:
    """Like `read_pairs`, but only with the rows that are left out now, which are not logged."""
    source = contents_of(source)
    by_split, meaning = _open_tables(source, parts_of(source), columns, rules, split)
    splits: dict[str, pl.DataFrame] = {}
    bad = []
    for name, tables in by_split.items():
        frames = []
        for table in tables:
            rows = table.usable(meaning)
            bad.append(rows.bad)
            frames.append(table.pairs(rows, placed=placed))
        splits[name] = join_frames(frames)
    if not meaning.binary:
        for name, frame in splits.items():
            splits[name] = frame.with_columns(pl.col("label").cast(pl.Float32))
    return PairDataset(
        splits,
        source_name(source),
        "binary" if meaning.binary else "graded",
        source.labels if isinstance(source, PairDataset) else meaning.read,
        join_bad_rows(bad),
    )


def read_rows(
    source: Source,
    *,
    columns: Mapping[str, str] | None = None,
    split: str | None = None,
    rules: LabelRules = AS_FOUND,
    meant: Meant = "rows",
) -> SplitRows:
    """Read rows without conversion: pairs with labels, positives, triplets or single texts."""
    by_split, meaning = _open_tables(
        source, parts_of(source, lines=True), columns, rules, split, meant=meant
    )
    splits = {}
    places: dict[str, list[tuple[str, pl.Series]]] = {}
    bad = []
    written = dict.fromkeys(by_split, 0)
    for name, tables in by_split.items():
        places[name] = []
        frames = []
        for table in tables:
            usable = table.usable(meaning)
            bad.append(usable.bad)
            rows = to_rows(usable.frame, table.roles, usable.labels)
            places[name].append((table.where, rows[ROW]))
            frames.append(rows.drop(ROW))
            written[name] += count_generated_rows(table.rows)
        splits[name] = join_frames(frames)
        has_nulls = splits[name].select(pl.all().has_nulls())
        if any(has_nulls.row(0)):  # as some files lack a column
            raise DataError(
                f"the files of {name} have different kinds of rows; together they have the columns"
                f" {one_line(', '.join(splits[name].columns))}; read them separately",
                path=source_name(source),
            )
    return SplitRows(splits, meaning.read, places, written, join_bad_rows(bad))


def split_names(source: Source) -> list[str]:
    """The splits of a source for `read_rows`, in the usual order."""
    return list(parts_of(source, lines=True))


def _open_tables(
    source: Source,
    parts: Mapping[str, Sequence[TablePart]],
    columns: Any,
    rules: LabelRules,
    split: Any = None,
    *,
    meant: Meant = "pairs",
) -> tuple[dict[str, list[SourceTable]], LabelMeaning]:
    """Open the tables of each chosen split and decide what their labels mean.

    Raises DataError for an unknown split, and for labels without a clear meaning.
    """
    columns = argument("columns", columns, dict[str, str] | None)
    split = argument("split", split, str | None)
    chosen = [split_name(split)] if split else [*parts]
    if split and chosen[0] not in parts:
        raise DataError(
            f"no split {chosen[0]!r}; there are {', '.join(parts)}",
            path=source_name(source),
        )

    skips = rules.bad_rows == "skip"
    tables: dict[str, list[SourceTable]] = {}
    labels: list[LabelColumn] = []
    for name in chosen:
        tables[name] = []
        for part in parts[name]:
            table = SourceTable.open(part, columns, skips=skips, meant=meant)
            tables[name].append(table)
            labels += table.distinct_labels()
    meaning = decide_labels(labels, rules)
    if labels:
        _LOG.info("%s: %s", labels[0].where, meaning.read)
    return tables, meaning
