"""One table of a source: the columns of its roles, and its usable rows."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import polars as pl

from pairkit.base.printable import one_line
from pairkit.base.system.text_lines import note_once
from pairkit.dataset.frames import as_json
from pairkit.dataset.negative_columns import FILE, ROW
from pairkit.dataset.reading.columns import Roles, find_roles
from pairkit.dataset.reading.label_column import LabelColumn
from pairkit.dataset.reading.label_meaning import LabelMeaning
from pairkit.dataset.reading.pair_rows import (
    label_column,
    missing_text_error,
    missing_text_masks,
    to_pairs,
    with_texts,
)
from pairkit.dataset.reading.parts import TablePart, split_name
from pairkit.dataset.reading.proposed_columns import Meant
from pairkit.dataset.reading.tables import class_names_of_file
from pairkit.dataset.records import SPLITS, join_bad_rows

_LOG = logging.getLogger(__name__)


class UsableRows(NamedTuple):
    """Rows with the numbers of their labels, and the rows left out."""

    frame: pl.DataFrame
    labels: pl.Series | None
    bad: pl.DataFrame | None


@dataclass(frozen=True, slots=True, eq=False)
class SourceTable:
    """One table of a source with the roles of its columns."""

    where: str
    rows: pl.DataFrame  # with the column `ROW`
    roles: Roles
    labels: LabelColumn | None
    skips: bool  # whether rows without a label or text are left out
    are_lines: bool  # whether rows are the lines of a text file

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
            labels = label_column(rows, roles, where, classes.get(roles.label, ()))
        return cls(where, rows, roles, labels, skips, part.lines)

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
        # Blank lines of a text file are always left out.
        if not self.skips and not self.are_lines:
            place = kept.arg_min() or 0
            reason = reasons[place]
            raise missing_text_error(rows, self.roles, self.where, reason, place)
        bad = self._bad_rows(rows.filter(~kept), reasons.drop_nulls())
        if labels is not None:
            labels = labels.filter(kept)
        return UsableRows(rows.filter(kept), labels, bad)

    def _bad_rows(self, frame: pl.DataFrame, reasons: pl.Series) -> pl.DataFrame:
        """Rows that lack a label or text, with their reasons."""
        columns: dict[str, pl.Expr | pl.Series] = {
            "file": pl.lit(self.where),
            "row": frame[ROW].cast(pl.Int64),
            "reason": reasons,
        }
        for name in ("text1", "text2", "label"):
            if role := getattr(self.roles, name):
                column = frame[role]
                is_nested = column.dtype.is_nested()
                columns[name] = as_json(column) if is_nested else column.cast(pl.String)
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
    read_as = []
    for role, name in asdict(roles).items():
        if name:
            listed = name if isinstance(name, str) else ", ".join(name)
            read_as.append(f"{role} from {one_line(listed, 60)}")
    return ", ".join(read_as)


def _note_unused_splits(rows: pl.DataFrame, where: str) -> None:
    """Log that a column with the names of splits is not used."""
    if rows.schema.get("split") == pl.String:
        splits = rows["split"].drop_nulls().unique()
        if len(splits) > 1 and {*map(split_name, splits)} <= {*SPLITS}:
            message = "%s: the column split is not used, so all rows are in one split"
            note_once(message, where)
