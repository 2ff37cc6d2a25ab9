"""Read pairs or rows of any source."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pairkit.base.errors import DataError
from pairkit.base.printable import one_line
from pairkit.base.settings import argument
from pairkit.base.system.text_lines import note_once
from pairkit.dataset.frames import join_frames, text_or_json
from pairkit.dataset.labels import AS_FOUND, LEAVE_OUT, LabelRules, LabelsRead
from pairkit.dataset.reading.columns import Meant, Roles, find_roles
from pairkit.dataset.reading.in_memory import Source, contents_of, source_name
from pairkit.dataset.reading.label_meaning import (
    LabelColumn,
    LabelMeaning,
    decide_labels,
)
from pairkit.dataset.reading.pair_rows import (
    as_text,
    check_flat,
    missing_text_masks,
    to_pairs,
    to_rows,
    with_texts,
)
from pairkit.dataset.reading.parts import TablePart, parts_of, split_name
from pairkit.dataset.reading.tables import class_names_of_file
from pairkit.dataset.records import (
    FILE,
    ROW,
    SPLITS,
    PairDataset,
    count_generated_rows,
    join_bad_rows,
    report_bad_rows,
)

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class SplitRows:
    """Rows by split with columns text1, text2, label; or anchor, positive[, negatives]; or text."""

    splits: Mapping[str, pl.DataFrame]
    labels: LabelsRead | None
    origins: Mapping[str, pl.DataFrame]  # file and number of each row
    written: Mapping[str, int]  # rows with generated texts
    bad_rows: pl.DataFrame

    def place(self, split: str, row: int) -> str:
        """The origin of a row, as `file:row`."""
        file, number = self.origins[split].row(row)
        return f"{file}:{number}"

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
    logged: bool = True,
) -> PairDataset:
    """Read pairs as text1, text2, label and the source's other columns; if `placed`, `FILE` and `ROW`.

    Unless `logged`, rows that are left out aren't logged, and those of an earlier reading aren't included.
    """
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
            splits[name] = splits[name].cast({"label": pl.Float32})
    labels = meaning.read
    bad_rows = join_bad_rows(bad)
    if logged:
        report_bad_rows(bad_rows)
    if isinstance(source, PairDataset):
        labels = source.labels
        if logged:
            bad_rows = join_bad_rows([source.bad_rows, bad_rows])
    return PairDataset(
        splits,
        source_name(source),
        "binary" if meaning.binary else "graded",
        labels,
        bad_rows,
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
    origins = {}
    bad = []
    written = dict.fromkeys(by_split, 0)
    for name, tables in by_split.items():
        frames = []
        for table in tables:
            usable = table.usable(meaning)
            bad.append(usable.bad)
            rows = to_rows(usable.frame, table.roles, usable.labels)
            file = pl.lit(table.where).cast(pl.Categorical)  # one for many rows
            frames.append(rows.with_columns(file.alias(FILE)))
            written[name] += count_generated_rows(table.rows)
        joined = join_frames(frames)
        origins[name] = joined.select(FILE, ROW)
        splits[name] = joined.drop(FILE, ROW)
        has_nulls = splits[name].select(pl.all().has_nulls())
        if any(has_nulls.row(0)):  # as some files lack a column
            raise DataError(
                f"the files of {name} have different kinds of rows; together they have the columns"
                f" {one_line(', '.join(splits[name].columns))}; read them separately",
                path=source_name(source),
            )
    return SplitRows(splits, meaning.read, origins, written, join_bad_rows(bad))


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
    if meaning.absent and len(chosen) == len(parts):
        listed = one_line(", ".join(meaning.absent), 200)
        note_once(
            "%s: no row has these labels of --labels: %s", source_name(source), listed
        )
    if labels:
        _LOG.info("%s: %s", labels[0].where, meaning.read)
    return tables, meaning


class UsableRows(NamedTuple):
    """Rows with the numbers of their labels, and the rows left out."""

    frame: pl.DataFrame
    labels: pl.Series | None
    bad: pl.DataFrame | None


@dataclass(frozen=True, eq=False)
class SourceTable:
    """One table of a source with the roles of its columns."""

    where: str
    rows: pl.DataFrame  # with the column `ROW`
    roles: Roles
    labels: LabelColumn | None
    skips: bool  # whether rows without a label or text are left out

    @classmethod
    def open(
        cls,
        part: TablePart,
        columns: Mapping[str, str] | None,
        *,
        skips: bool,
        meant: Meant,
    ) -> SourceTable:
        """Read a table and find its columns."""
        where = part.where
        rows = part.numbered(columns)
        roles = find_roles(rows.drop(ROW), where, columns, meant)
        _LOG.info("%s: %d rows, %s", where, rows.height, _read_as(roles))
        _note_unused_splits(rows, where)
        labels = None
        if roles.label:
            classes = part.classes
            if isinstance(part.table, Path):
                classes = class_names_of_file(part.table)
            values = rows[roles.label]
            check_flat(values, rows[ROW], where)
            if values.dtype == pl.Binary:
                values = as_text(rows, roles.label, where)
            table = rows.select(value=values, row=ROW, times=1)
            texts = (roles.text1, roles.text2)
            names = classes.get(roles.label, ())
            labels = LabelColumn(table, roles.label, where, texts, names)
        # Blank lines of a text file are always left out.
        return cls(where, rows, roles, labels, skips or part.lines)

    def distinct_labels(self) -> Iterator[LabelColumn]:
        """Each label once, if there are labels; without missing ones if their rows are left out."""
        if self.labels is not None:
            distinct = self.labels.distinct()
            yield distinct.filter(~distinct.missing()) if self.skips else distinct

    def usable(self, meaning: LabelMeaning) -> UsableRows:
        """The rows with numeric labels. Those that lack a label or text are left out, or raise DataError."""
        rows = with_texts(self.rows, self.roles, self.where)
        labels = None
        lacking = [*missing_text_masks(rows, self.roles)]
        if self.labels is not None:
            missing = self.labels.missing() & self.skips
            known = meaning.of(self.labels.filter(~missing))
            labels = pl.repeat(None, rows.height, dtype=pl.Float64, eager=True)
            labels = labels.scatter((~missing).arg_true(), known)
            lacking = [
                (reason, mask & labels.is_not_null()) for reason, mask in lacking
            ]
            lacking.insert(0, ("empty_label", missing))
        each_reason = [pl.when(mask).then(pl.lit(reason)) for reason, mask in lacking]
        reasons = pl.select(pl.coalesce(each_reason)).to_series()
        kept = reasons.is_null()
        if kept.all():
            return UsableRows(rows, labels, None)
        if not self.skips:
            place = kept.arg_min() or 0
            raise self._missing_text_error(rows, reasons[place], place)
        bad = self._bad_rows(rows.filter(~kept), reasons.drop_nulls())
        if labels is not None:
            labels = labels.filter(kept)
        return UsableRows(rows.filter(kept), labels, bad)

    def _missing_text_error(
        self, frame: pl.DataFrame, reason: str, place: int
    ) -> DataError:
        """The error for the row at this index, which lacks a text."""
        problem_kind, _, name = reason.partition("_")
        problem = f"{name} is empty"
        if problem_kind == "placeholder":
            value = frame[self.roles.required[name]][place]
            problem = f"{name} is {value!r}, so missing"
        elif name == "negative" and len(self.roles.negatives) > 1:
            problem = f"all of {', '.join(self.roles.negatives)} are empty"
        message = f"{one_line(problem)}; fill it, drop the row, {LEAVE_OUT}"
        return DataError(message, path=self.where, row=int(frame[ROW][place]))

    def _bad_rows(self, frame: pl.DataFrame, reasons: pl.Series) -> pl.DataFrame:
        """Rows that lack a label or text, with their reasons."""
        columns: dict[str, pl.Expr | pl.Series] = {
            "file": pl.lit(self.where),
            "row": frame[ROW].cast(pl.Int64),
            "reason": reasons,
        }
        for name in ("text1", "text2", "label"):
            if role := getattr(self.roles, name):
                columns[name] = text_or_json(frame[role])
        return pl.concat([join_bad_rows([]), frame.select(**columns)], how="diagonal")

    def pairs(self, rows: UsableRows, *, placed: bool = False) -> pl.DataFrame:
        """The rows as pairs; if `placed`, with the columns `FILE` and `ROW`."""
        pairs = to_pairs(rows.frame, self.roles, rows.labels)
        if not placed:
            return pairs.drop(ROW)
        file = pl.lit(self.where).alias(FILE)
        return pairs.with_columns(file, pl.col(ROW).cast(pl.Int64))


def _read_as(roles: Roles) -> str:
    """The columns of the roles in words."""
    columns = {**roles.required, "label": roles.label}
    columns["negatives"] = ", ".join(roles.negatives)
    return ", ".join(
        f"{role} from {one_line(name, 60)}" for role, name in columns.items() if name
    )


def _note_unused_splits(rows: pl.DataFrame, where: str) -> None:
    """Log that a column with the names of splits is not used."""
    if rows.schema.get("split") == pl.String:
        splits = rows["split"].drop_nulls().unique()
        if len(splits) > 1 and {*map(split_name, splits)} <= {*SPLITS}:
            note_once(
                "%s: the column split is not used, so all rows are in one split", where
            )
