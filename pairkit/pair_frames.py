"""The pairs of a dataset a table at a time, as often as is wanted: of many shards one is in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl

from pairkit.class_names import class_names_of_file
from pairkit.columns import Roles, find_roles, label_column, to_pairs
from pairkit.errors import DataError
from pairkit.in_memory import Source, source_name
from pairkit.label_column import LabelColumn
from pairkit.label_meaning import read_labels
from pairkit.labels import LabelRules, LabelsRead
from pairkit.parquet import read_parquet
from pairkit.parquet_sizes import check_parquet
from pairkit.parts import Part, parts_on_disk
from pairkit.provenance import typed_rows
from pairkit.reader import read_pairs
from pairkit.records import LabelKind, PairDataset
from pairkit.tables import TextSizes, first_row, read_table


@dataclass(frozen=True, slots=True)
class PairFrames:
    """Pairs by split; each call of a reader gives some rows, with known columns in known types.

    Attributes:
        splits: The readers of each split's tables, one after the other.
        known: The columns that each split has, be it not in all of its tables.
        source: What messages call it.
        label_kind: As of `PairDataset`.
        labels: As of `PairDataset`.
    """

    splits: Mapping[str, Sequence[Callable[[], pl.DataFrame]]]
    known: Mapping[str, Set[str]]
    source: str
    label_kind: LabelKind = "binary"
    labels: LabelsRead | None = None


def frames_of(dataset: PairDataset) -> PairFrames:
    """The pairs of a dataset that is in memory."""
    return PairFrames(
        {name: [partial(typed_rows, frame)] for name, frame in dataset.splits.items()},
        {name: {*typed_rows(frame.clear()).columns} for name, frame in dataset.splits.items()},
        *(dataset.source, dataset.label_kind, dataset.labels),
    )


def read_frames(source: Source, columns: Mapping[str, str] | None, rules: LabelRules) -> PairFrames:
    """The pairs of a source, empty texts included; Parquet shards stay on disk.

    Args:
        source: As for `read_pairs`, as what follows.
        columns: See there.
        rules: See there.

    Raises:
        ConfigError, DataError, RemoteError: As `read_pairs`.
    """
    parts = parts_on_disk(source) if isinstance(source, str | Path) else None
    shards = {name: [_Shard.opened(part, columns) for part in own] for name, own in (parts or {}).items()}
    tables = [shard for own in shards.values() for shard in own if shard is not None]
    if len(tables) < sum(map(len, shards.values())) or len(tables) == len(shards):
        return frames_of(read_pairs(source, columns=columns, rules=rules, check=False))
    labelled = [shard for shard in tables if shard.roles.label]
    found, made = read_labels([shard.labels() for shard in labelled], rules) if labelled else ([], None)
    labels = dict(zip(labelled, found, strict=True))
    binary = all(((own == 0) | (own == 1)).all() for own in found)
    return PairFrames(
        {
            name: [partial(shard.read, labels.get(shard)) for shard in own if shard is not None]
            for name, own in shards.items()
        },
        {name: set().union(*(shard.columns() for shard in own if shard)) for name, own in shards.items()},
        source_name(source),
        "binary" if binary else "graded",
        made,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Shard:
    """A Parquet file, and which of its columns is what."""

    part: Part
    path: Path
    roles: Roles
    schema: pl.Schema

    @classmethod
    def opened(cls, part: Part, columns: Mapping[str, str] | None) -> _Shard | None:
        """None for what is no Parquet file, or is damaged: reading it all says what is wrong."""
        path = part.table
        if not isinstance(path, Path) or path.suffix.lower() != ".parquet":
            return None
        try:
            with path.open("rb") as file:
                check_parquet(file, path)  # before a library takes its headers' word for anything
            schema = pl.read_parquet_schema(path)
        except (DataError, pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
            return None
        return cls(part, path, find_roles(list(schema), part.where, columns), pl.Schema(schema))

    def columns(self) -> Set[str]:
        """Those of its pairs."""
        labels = pl.Series(dtype=pl.Float64) if self.roles.label else None
        none = to_pairs(pl.DataFrame(schema=self.schema), self.roles, self.part.where, labels, check=False)
        return {*typed_rows(none).columns}

    def labels(self) -> LabelColumn:
        """What its labels are, as the file has them."""
        frame = read_parquet(self.path, [self.roles.label])
        TextSizes(self.path).add(frame)
        classes = class_names_of_file(self.path).get(self.roles.label, ())
        return label_column(
            frame, self.roles, self.part.where, classes=classes, first_row=first_row(self.path)
        )

    def read(self, labels: pl.Series | None) -> pl.DataFrame:
        """Its pairs.

        Args:
            labels: What its labels mean.
        """
        rows = read_table(self.path)
        pairs = to_pairs(
            rows, self.roles, self.part.where, labels, check=False, first_row=first_row(self.path)
        )
        return typed_rows(pairs)
