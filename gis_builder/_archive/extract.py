"""The first task: an hour of the archive to rows of issues, comments, closings and pull requests."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import polars as pl

from gis_builder._archive import rows as r
from gis_builder._archive.events import (
    ISSUE_EVENT,
    MEMBER_EVENT,
    OF_ISSUES,
    OF_MEMBERS,
    OF_PULLS,
    PULL_EVENT,
    IssueEvent,
    MemberEvent,
    PullEvent,
    head_of,
)
from gis_builder._archive.ledger import LEDGER, Ledger, encode_rows
from gis_builder._decoding import Malformed, decode, stamp
from gis_builder._records import Event
from gis_builder._rest_records import account_name, comment_record, is_bot, issue_record
from pairkit.errors import DataError
from pairkit.lines import read_lines
from pairkit.parquet import parquet_bytes

_ACTIONS = ("closed", "reopened")
_CHUNK, _CHUNK_BYTES = 10_000, 16 << 20  # rows, and bytes of lines, that become a table
# Bytes of tables: from which on they are brought down to the newest rows, by which they have grown till it is
# done again, and that they may have then, lest a hostile hour takes more memory than a worker has.
_FOLD_BYTES, _FOLD_AGAIN, _MOST_BYTES = 96 << 20, 32 << 20, 192 << 20
_FULL = "the hour holds more text than any has"


class HourRead(NamedTuple):
    """What was read of an hour: its ledger, and its rows."""

    ledger: Ledger
    table: pl.DataFrame


def extract_hour(path: Path, hour: str) -> bytes:
    """The rows of an hour as Parquet, with its ledger; see `read_hour`."""
    return packed(read_hour(path, hour))


def packed(read: HourRead) -> bytes:
    """As it is kept."""
    return parquet_bytes(read.table, row_group=r.ROW_GROUP, notes={LEDGER: encode_rows([read.ledger])})


def read_hour(path: Path, hour: str) -> HourRead:
    """The rows of an hour.

    A line that is malformed, cut off or too long is counted in the ledger and left out; of a file that breaks
    off all that stands before is kept.

    Args:
        path: The hour's file, gzipped.
        hour: Its name.

    Raises:
        DataError: The file is not there, or can't be read now, which says nothing of what it holds.
    """
    reading = _Reading(hour)
    try:
        for _, line in read_lines(
            path, pass_over=lambda _: reading.ledger.note_broken("the line is too long")
        ):
            reading.take(line)
    except DataError as error:
        if not _is_damage(error):
            raise
        reading.ledger.broke_off = str(error).removeprefix(f"{path}:{error.row}: ")
    if not reading.ledger.lines:
        reading.ledger.broke_off = reading.ledger.broke_off or "holds no line"
    return HourRead(reading.ledger, reading.table())


def _is_damage(error: DataError) -> bool:
    """Whether the file itself is at fault, not a disk, network or machine that may give it the next time."""
    return error.__cause__ is not None and getattr(error.__cause__, "errno", None) is None


class _Reading:
    """What was read of an hour so far."""

    def __init__(self, hour: str) -> None:
        self.ledger = Ledger(hour)
        self._rows: list[r.Row] = []
        self._bytes = 0  # of the lines that the rows are from
        self._tables: list[pl.DataFrame] = []  # of earlier rows, which take a fraction of the memory so
        self._fold_at, self._is_full = _FOLD_BYTES, False
        self._seen: set[tuple[int, int | str]] = set()  # pull requests and members, of which once is enough

    def take(self, line: bytes) -> None:
        """Keep what a line says of issues."""
        if line.isspace():
            return
        self.ledger.lines += 1
        try:
            number, kind = head_of(line)
            rows = self._rows_of(line, kind)
        except Malformed as error:
            self.ledger.note_broken(str(error))
            return
        self.ledger.note_id(number)
        self._rows += rows
        self._bytes += len(line) if rows else 0
        if len(self._rows) >= _CHUNK or self._bytes >= _CHUNK_BYTES:
            self._flush()

    def table(self) -> pl.DataFrame:
        """All rows, see `rows.newest`."""
        self._flush()
        return r.newest(pl.concat(self._tables))

    def _flush(self) -> None:
        self._tables.append(r.table_of(self._rows))
        self._rows, self._bytes = [], 0
        if _size(self._tables) > self._fold_at:
            self._tables = [r.newest(pl.concat(self._tables)).rechunk()]
            folded = _size(self._tables)
            self._fold_at = max(_FOLD_BYTES, folded + _FOLD_AGAIN)
            self._is_full = folded > _MOST_BYTES

    def _rows_of(self, line: bytes, kind: str) -> list[r.Row]:
        if kind in OF_ISSUES:
            if self._is_full:
                raise Malformed(_FULL)
            return self._of_issue(decode(line, ISSUE_EVENT))
        if kind == OF_PULLS:
            event = decode(line, PULL_EVENT)
            return [*self._of_pull(event, event.payload.number), *_of_language(event)]
        # Who pushes matters only where events do not say what an author is to the repository.
        if kind in OF_MEMBERS and self.ledger.without_association:
            return self._of_member(decode(line, MEMBER_EVENT))
        return []

    def _of_issue(self, event: IssueEvent) -> list[r.Row]:
        item, comment = event.payload.issue, event.payload.comment
        if item.is_pull:
            return self._of_pull(event, item.number)
        place = _place(event)
        issue = issue_record(event.repo.name, item)
        rows = [
            r.bare_row(place, r.REPO, name=event.repo.name),
            r.issue_row(place, issue, item.author_association),
        ]
        if comment is not None:
            record = comment_record(comment)
            rows.append(r.comment_row(place, issue.number, record, comment.author_association))
        elif event.payload.action in _ACTIONS:
            happened = Event(
                event.payload.action,
                account_name(event.actor),
                stamp(event.created_at),
                state_reason=issue.state_reason if event.payload.action == "closed" else None,
            )
            rows.append(r.event_row(place, issue.number, happened))
        spoken = item if comment is None else comment
        self.ledger.issue_events += 1
        self.ledger.without_association += spoken.author_association is None
        return rows

    def _of_pull(self, event: IssueEvent | PullEvent, number: int) -> list[r.Row]:
        place = _place(event)
        return [r.bare_row(place, r.PULL, number)] if self._is_new(event, number) else []

    def _of_member(self, event: MemberEvent) -> list[r.Row]:
        place, account = _place(event), event.payload.member or event.actor
        name = account_name(account)
        if name is None or is_bot(account) or not self._is_new(event, name):
            return []
        return [r.bare_row(place, r.MEMBER, name=name)]

    def _is_new(self, event: IssueEvent | PullEvent | MemberEvent, what: int | str) -> bool:
        known = len(self._seen)
        self._seen.add((event.repo.id, what))
        return len(self._seen) > known


def _size(tables: Iterable[pl.DataFrame]) -> int:
    return sum(int(table.estimated_size()) for table in tables)


def _of_language(event: PullEvent) -> list[r.Row]:
    """The repository's language, which no event of an issue names."""
    language = event.payload.language
    return [r.bare_row(_place(event), r.LANGUAGE, name=language)] if language else []


def _place(event: IssueEvent | PullEvent | MemberEvent) -> r.Place:
    return r.Place(r.key_of(event.repo.id), event.repo.id, stamp(event.created_at), int(event.id))
