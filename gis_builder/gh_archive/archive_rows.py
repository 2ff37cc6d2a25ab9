"""The rows of the archive: one table for all kinds of rows, sorted by a key of the repository.

A row's identity is its repository, kind, number, id and name. Only the newest row of each identity is kept.
The key is a hash of the repository's id, so a range of keys (a *bucket*) has a random share of repositories.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import polars as pl

from gis_builder.store.issue_records import Comment, Event, Issue
from pairkit.dataset.table_files import parquet_bytes, read_notes

KEYS = 1 << 63
REPO = "repo"
ISSUE = "issue"
COMMENT = "comment"
EVENT = "event"
PULL = "pull"
MEMBER = "member"

_IDENTITY = ("key", "repo_id", "kind", "number", "id", "name")
_VERSION = ("changed_at", "event_at", "event_id")
SCHEMA: dict[str, Any] = {
    "key": pl.Int64,
    "repo_id": pl.Int64,
    "kind": pl.String,
    "number": pl.Int64,  # of the issue or pull request; 0 for repository and member
    "id": pl.Int64,  # of a comment or event; else 0
    "name": pl.String,  # of a repository or member; else empty
    "changed_at": pl.String,  # last change of an issue; else empty
    "event_at": pl.String,
    "event_id": pl.Int64,
    "action": pl.String,  # closed | reopened
    "author": pl.String,
    "is_bot": pl.Boolean,
    "association": pl.String,  # null if the event lacks it
    "created_at": pl.String,
    "closed_at": pl.String,
    "state": pl.String,
    "state_reason": pl.String,
    "labels": pl.List(pl.String),
    "title": pl.String,
    "body": pl.String,
}
_EMPTY: dict[str, Any] = {
    **dict.fromkeys(SCHEMA),
    "number": 0,
    "id": 0,
    "name": "",
    "changed_at": "",
}
# The columns of each record's fields.
_COLUMNS: dict[type, list[str]] = {
    kind: [field.name for field in fields(kind) if field.name in SCHEMA]
    for kind in (Issue, Comment, Event)
}
_ROW_GROUP = 2048
_TALLIES = "ledger"  # key in a file's footer
_MAX_REASONS = 20  # that are counted separately in an hour
_OTHER = "other"
_OPEN_HOURS = 48  # files that are open at the same time; each takes half a MiB
Row = tuple[Any, ...]
_Record = TypeVar("_Record", Issue, Comment, Event)


class HourTally(msgspec.Struct):
    """The counts of an hour."""

    hour: str
    lines: int = 0
    events: int = 0
    issue_events: int = 0
    broken: dict[str, int] = {}
    broke_off: str = ""
    without_association: int = 0

    def note_broken(self, reason: str) -> None:
        """Count a malformed line."""
        if reason not in self.broken and len(self.broken) >= _MAX_REASONS:
            reason = _OTHER
        self.broken[reason] = self.broken.get(reason, 0) + 1


@lru_cache(1 << 16)
def key_of(repo_id: int) -> int:
    """The key of a repository, in [0, KEYS)."""
    digest = blake2b(str(repo_id).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


class Source(NamedTuple):
    """The event of a row: key and id of its repository, time and id."""

    key: int
    repo_id: int
    event_at: str
    event_id: int


def row_of(
    source: Source, kind: str, record: Issue | Comment | None = None, **values: Any
) -> Row:
    """The row of a record, or of other values; the other columns are empty."""
    columns = _EMPTY | source._asdict() | {"kind": kind}
    if record is not None:
        for name in _COLUMNS[type(record)]:
            columns[name] = getattr(record, name)
    return tuple((columns | values).values())


def record_of(
    kind: type[_Record], row: Mapping[str, Any], /, **values: object
) -> _Record:
    """The record of a row; `values` are of fields that differ or aren't in the row."""
    columns = {name: row[name] for name in _COLUMNS[kind]}
    return kind(**columns | values)


def table_of(rows: Sequence[Row]) -> pl.DataFrame:
    """Convert rows to a table with the newest version of each."""
    return newest(pl.DataFrame(rows, schema=SCHEMA, orient="row"))


def newest(table: pl.DataFrame) -> pl.DataFrame:
    """Keep the newest row of each identity, sorted by identity."""
    ordered = table.sort(*_IDENTITY, *_VERSION, maintain_order=True)
    return ordered.unique(_IDENTITY, keep="last", maintain_order=True)


def serialise(table: pl.DataFrame, tallies: Iterable[HourTally]) -> bytes:
    """Serialise a table with the tallies of its hours."""
    ordered = sorted(tallies, key=lambda tally: tally.hour)
    notes = {_TALLIES: msgspec.json.encode(ordered).decode()}
    return parquet_bytes(table, row_group=_ROW_GROUP, notes=notes)


def read_tallies(files: Iterable[Path]) -> list[HourTally]:
    """Read the tallies of files."""
    tallies = []
    for path in files:
        tallies += msgspec.json.decode(read_notes(path)[_TALLIES], type=list[HourTally])
    return tallies


def read_rows(files: Sequence[Path], where: pl.Expr | None = None) -> pl.DataFrame:
    """Read the newest rows of files, optionally filtered."""
    if not files:
        return pl.DataFrame(schema=SCHEMA)
    rows = pl.scan_parquet(list(files), glob=False)
    if where is not None:
        rows = rows.filter(where)
    return newest(rows.collect())


def changed_keys(hours: Sequence[Path]) -> Iterator[bytes]:
    """Yield the file of the keys of all repositories in these hours."""
    keys = [
        pl.read_parquet(path, columns=["key"], glob=False).unique() for path in hours
    ]
    yield parquet_bytes(pl.concat(keys).unique().sort("key"))


def sort_month(
    hours: Sequence[Path], first: int, last: int, buckets: int
) -> Iterator[bytes]:
    """Yield the files of a month's buckets from `first` to before `last`; bucket 0 has the tallies."""
    inside = _within(first, last, buckets)
    starts = range(0, len(hours), _OPEN_HOURS)
    parts = [read_rows(hours[start : start + _OPEN_HOURS], inside) for start in starts]
    table = newest(pl.concat(parts))
    for bucket in range(first, last):
        tallies = read_tallies(hours) if bucket == 0 else []
        rows = table.filter(_within(bucket, bucket + 1, buckets))
        yield serialise(rows, tallies)


def _within(first: int, last: int, buckets: int) -> pl.Expr:
    key = pl.col("key")
    return (key >= KEYS * first // buckets) & (key < KEYS * last // buckets)
