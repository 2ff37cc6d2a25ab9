"""Read pairs from a folder of ours, a file, a folder of files, a dataset on the Hub, or from memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import polars as pl

from pairkit.class_names import ClassNames, class_names_of_file
from pairkit.columns import Roles, find_roles, label_column, to_pairs, to_rows
from pairkit.config import argument
from pairkit.errors import DataError
from pairkit.in_memory import Source, source_name
from pairkit.label_meaning import read_labels
from pairkit.labels import AS_FOUND, LabelRules, LabelsRead
from pairkit.parts import Part, parts_of, wanted_split
from pairkit.printable import one_line
from pairkit.provenance import written_rows
from pairkit.records import LabelKind, PairDataset
from pairkit.tables import first_row, has_header, read_table

_LOG = logging.getLogger(__name__)


class _Read(NamedTuple):
    """A table that was read, with which column is what."""

    where: str
    frame: pl.DataFrame
    first_row: int
    roles: Roles
    classes: ClassNames

    def classes_of_labels(self) -> Sequence[str]:
        return self.classes.get(self.roles.label, ())


class Kept(NamedTuple):
    """Which rows of a table were kept: a number in the table for each, from 0; None for all of them."""

    where: str
    first_row: int
    height: int
    numbers: pl.Series | None


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows as they are meant, by split: text1, text2, label; or anchor, positive[, negatives]; or text.

    `labels` says what was made of the source's labels, None where it has none; `kept` where rows are from;
    `written` how many of a split's rows LLMs or rules wrote, see `pairkit.provenance.written_rows`.
    """

    splits: Mapping[str, pl.DataFrame]
    labels: LabelsRead | None
    kept: Mapping[str, Sequence[Kept]]
    written: Mapping[str, int] = field(default_factory=dict)

    def place(self, split: str, row: int) -> str:
        """Where a row of a split is from, as `file:row`."""
        for table in self.kept[split]:
            if row < table.height:
                own = row if table.numbers is None else int(table.numbers[row])
                return f"{table.where}:{table.first_row + own}"
            row -= table.height
        raise IndexError(f"{split} has no row {row}")

    def __getitem__(self, split: str) -> pl.DataFrame:
        """The rows of a split.

        Raises:
            KeyError: There is no such split.
        """
        return self.splits[split]


def read_pairs(
    source: Source,
    *,
    columns: Mapping[str, str] | None = None,
    split: str | None = None,
    rules: LabelRules = AS_FOUND,
    check: bool = True,
) -> PairDataset:
    """Read pairs as text1, text2, label and whatever else the source has.

    Args:
        source: A dataset folder, be it ours or one of `Dataset.save_to_disk`; a file (`.parquet .jsonl .json
            .csv .tsv .arrow`, also `.gz`); a folder of files named after their splits, or of numbered ones;
            a pattern such as `shards/*.parquet`; a Hub id (`owner/name`, `owner/name:config`); or what is in
            memory: see `pairkit.in_memory.Source`.
        columns: `text1`, `text2`, `label` or `anchor`, `positive` and `negative` or `negative_1`,
            `negative_2`, … to the source's names; by default recognised. Triplets become a positive row and
            one for each negative, bare positives get label 1.
        split: Only this split; `dev` and `val` stand for `validation`.
        rules: What labels count as, where that is not certain; see `pairkit.label_meaning`.
        check: Whether an empty text is an error; an audit counts them instead.

    Raises:
        ConfigError: No such source, or a bad mapping.
        DataError: Not readable, a missing column, an empty text or a label that can't be used, with file and
            row.
        RemoteError: The Hub could not be asked.
    """

    def pairs(table: _Read, labels: pl.Series | None) -> pl.DataFrame:
        where, frame, first, roles, _ = table
        return to_pairs(frame, roles, where, labels, check=check, first_row=first)

    columns, split = _checked(columns, split)
    tables = _opened(source, parts_of(source), split, columns)
    splits, labels, _ = _converted(tables, rules, pairs)
    if isinstance(source, PairDataset):
        labels = source.labels
    return _same_labels(splits, source_name(source), labels)


def read_rows(
    source: Source,
    *,
    columns: Mapping[str, str] | None = None,
    split: str | None = None,
    rules: LabelRules = AS_FOUND,
) -> Rows:
    """Read rows as they are meant: pairs with labels, bare positives, triplets or single texts.

    Args:
        source: As for `read_pairs`; also a text file (`.txt`, `.txt.gz`) with one text per line.
        columns: As for `read_pairs`; also `text` alone, for single texts. An only column is one by default.
        split: As for `read_pairs`.
        rules: As for `read_pairs`.

    Returns:
        By split text1, text2, label; or anchor, positive and perhaps `negatives`, a list of one or more; or
        text.

    Raises:
        ConfigError: As `read_pairs`.
        DataError: As `read_pairs`; also if a split's files hold different kinds of rows.
        RemoteError: The Hub could not be asked.
    """

    def rows(table: _Read, labels: pl.Series | None) -> pl.DataFrame:
        where, frame, first, roles, _ = table
        return to_rows(frame, roles, where, labels, first_row=first)

    columns, split = _checked(columns, split)
    parts = parts_of(source, lines=True)
    tables = _opened(source, parts, split, columns, single=True)
    splits, labels, kept = _converted(tables, rules, rows)
    for name, frame in splits.items():
        if any(frame.select(pl.all().has_nulls()).row(0)):  # no file has any: some lack a column
            raise DataError(
                f"the files of {name} differ in what their rows are; together they have"
                f" {one_line(', '.join(frame.columns))}: read them one by one",
                path=source_name(source),
            )
    written = {name: sum(written_rows(table.frame) for table in own) for name, own in tables.items()}
    return Rows(splits, labels, kept, written)


def _roles(frame: pl.DataFrame, where: str, columns: Mapping[str, str] | None, *, single: bool) -> Roles:
    roles = find_roles(frame.columns, where, columns, single=single)
    read_as = (
        f"{role} from {one_line(name if isinstance(name, str) else ', '.join(name), 60)}"
        for role, name in asdict(roles).items()
        if name
    )
    _LOG.info("%s: %d rows, %s", where, frame.height, ", ".join(read_as))
    return roles


def _checked(columns: Any, split: Any) -> tuple[Any, Any]:
    return argument("columns", columns, dict[str, str] | None), argument("split", split, str | None)


def split_names(source: Source) -> list[str]:
    """The splits that a source for `read_rows` has, in the usual order.

    Raises:
        ConfigError: No such source.
        DataError: A folder without data.
        RemoteError: The Hub could not be asked.
    """
    return list(parts_of(source, lines=True))


def _opened(
    source: Source,
    parts: Mapping[str, Sequence[Part]],
    split: str | None,
    columns: Mapping[str, str] | None,
    *,
    single: bool = False,
) -> dict[str, list[_Read]]:
    """Each wanted split's tables, read."""
    chosen = [wanted_split(parts, split, source)] if split else parts
    return {name: [_opened_one(part, columns, single=single) for part in parts[name]] for name in chosen}


def _opened_one(part: Part, columns: Mapping[str, str] | None, *, single: bool) -> _Read:
    where, table, classes, lines = part
    if isinstance(table, pl.DataFrame):
        return _Read(where, table, 1, _roles(table, where, columns, single=single), classes)
    header = has_header(table, columns)
    frame = read_table(table, lines=lines, header=header)
    roles = _roles(frame, where, columns, single=single)
    return _Read(where, frame, first_row(table, header=header), roles, class_names_of_file(table))


def _converted(
    tables: Mapping[str, Sequence[_Read]],
    rules: LabelRules,
    convert: Callable[[_Read, pl.Series | None], pl.DataFrame],
) -> tuple[dict[str, pl.DataFrame], LabelsRead | None, dict[str, list[Kept]]]:
    """Each split's rows; what was made of the labels, the same in all; and where rows are from."""
    labelled = [table for own in tables.values() for table in own if table.roles.label]
    columns = [
        label_column(
            table.frame,
            table.roles,
            table.where,
            classes=table.classes_of_labels(),
            first_row=table.first_row,
        )
        for table in labelled
    ]
    labels, made = read_labels(columns, rules) if columns else ([], None)
    if made is not None:
        _LOG.info("%s: %s", columns[0].where, made)
    in_turn = iter(labels)
    splits: dict[str, pl.DataFrame] = {}
    kept: dict[str, list[Kept]] = {}
    for name, own in tables.items():
        found = [(table, next(in_turn) if table.roles.label else None) for table in own]
        splits[name] = _joined([convert(table, label) for table, label in found], [t.where for t in own])
        kept[name] = [_kept(table, label) for table, label in found]
    return splits, made, kept


def _kept(table: _Read, labels: pl.Series | None) -> Kept:
    if labels is None or not labels.has_nulls():
        return Kept(table.where, table.first_row, table.frame.height, None)
    numbers = labels.is_not_null().arg_true()
    return Kept(table.where, table.first_row, len(numbers), numbers)


def _joined(frames: Sequence[pl.DataFrame], where: Sequence[str]) -> pl.DataFrame:
    if len(frames) == 1:
        return frames[0]
    try:
        return pl.concat(frames, how="diagonal_relaxed")
    except pl.exceptions.PolarsError as error:
        raise _unlike(frames, where) from error


def _unlike(frames: Sequence[pl.DataFrame], where: Sequence[str]) -> DataError:
    """What to say of files of a split that have values of different kinds in a column."""
    for name in dict.fromkeys(name for frame in frames for name in frame.columns):
        own = [(frame.select(name), path) for frame, path in zip(frames, where, strict=True) if name in frame]
        try:
            pl.concat([column for column, _ in own], how="vertical_relaxed")
        except pl.exceptions.PolarsError:
            kinds = {column.dtypes[0]: path for column, path in reversed(own)}
            told = one_line(" and ".join(f"{kind} in {path}" for kind, path in kinds.items()), 400)
            return DataError(f"the column {one_line(name)} holds {told}; make them alike", path=where[0])
    return DataError(
        "its columns differ from those of the split's other files; make them alike", path=where[0]
    )


def _same_labels(splits: Mapping[str, pl.DataFrame], source: str, labels: LabelsRead | None) -> PairDataset:
    binary = all(frame["label"].dtype == pl.Int64 for frame in splits.values())
    kind: LabelKind = "binary" if binary else "graded"
    if not binary:
        splits = {
            name: frame.with_columns(pl.col("label").cast(pl.Float32)) for name, frame in splits.items()
        }
    return PairDataset(dict(splits), source, kind, labels)
