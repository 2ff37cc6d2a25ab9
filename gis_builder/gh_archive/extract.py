"""The first map: an hour of the archive to rows of issues, comments, closings and pull requests.

A line of the archive becomes a typed event. Most lines are about something else, as their beginning shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl
from msgspec.json import Decoder

from gis_builder.gh_archive import rows as r
from gis_builder.store.decoding import (
    DecimalId,
    Id,
    Malformed,
    Node,
    Number,
    RepoName,
    Time,
    Word,
    decode,
    stamp,
)
from gis_builder.store.records import Event
from gis_builder.trackers.rest_records import (
    Account,
    CommentObject,
    IssueObject,
    account_name,
    comment_record,
    is_bot,
    issue_record,
)
from pairkit.app.errors import DataError
from pairkit.system.lines import read_lines

_BEGINNING = re.compile(rb'\{"id": ?"[0-9]{1,18}", ?"type": ?"([A-Za-z]{1,50})"')  # of nearly all lines
_OF_ISSUES = ("IssuesEvent", "IssueCommentEvent")
_OF_PULLS = "PullRequestEvent"
_OF_MEMBERS = ("PushEvent", "MemberEvent")
_ACTIONS = ("closed", "reopened")
_CHUNK, _CHUNK_BYTES = 10_000, 16 << 20  # rows, and bytes of lines, that become a table
# Bytes of tables: the limit from which duplicates are removed, the growth until that is done again, and the
# most that an hour may have, so that a hostile one does not take more memory than a worker has.
_FOLD_BYTES, _FOLD_AGAIN, _MOST_BYTES = 96 << 20, 32 << 20, 192 << 20
_FULL = "the hour holds more text than any has"


class _Head(Node, frozen=True):
    id: DecimalId
    type: Word


class _Repo(Node, frozen=True):
    """A repository; its id stays when the name changes."""

    id: Id
    name: RepoName


class _Payload(Node, frozen=True):
    """Of a comment, or another event of an issue; of a pull request; of a new member."""

    action: Word | None = None
    issue: IssueObject | None = None
    comment: CommentObject | None = None
    number: Number | None = None
    member: Account | None = None


class _Event(Node, frozen=True):
    id: DecimalId
    repo: _Repo
    created_at: Time
    payload: _Payload
    actor: Account | None = None


_HEAD, _EVENT = Decoder(_Head), Decoder(_Event)


def extract_hour(path: Path, hour: str) -> Iterator[bytes]:
    """The rows of an hour, with its ledger, as a file."""
    reading = _Reading(hour)
    tally = reading.tally
    try:
        for _, line in read_lines(path, pass_over=lambda _: tally.note_broken("the line is too long")):
            reading.take(line)
    except DataError as error:
        if not _is_damage(error):
            raise
        tally.broke_off = str(error).removeprefix(f"{path}:{error.row}: ")
    if not tally.lines:
        tally.broke_off = tally.broke_off or "holds no line"
    yield r.file_of(reading.table(), [tally])


def _is_damage(error: DataError) -> bool:
    """Whether the file is at fault, and not a disk or network that may deliver it the next time."""
    return error.__cause__ is not None and getattr(error.__cause__, "errno", None) is None


class _Reading:
    """What was read of an hour so far."""

    def __init__(self, hour: str) -> None:
        self.tally = r.HourTally(hour)
        self._rows: list[r.Row] = []
        self._bytes = 0  # of the lines that the rows come from
        self._tables: list[pl.DataFrame] = []  # of earlier rows, which take a fraction of the memory so
        self._fold_at, self._is_full = _FOLD_BYTES, False
        self._seen: set[tuple[int, int | str]] = set()  # pull requests and members: once is enough

    def take(self, line: bytes) -> None:
        """Keep what a line holds about issues."""
        if line.isspace():
            return
        self.tally.lines += 1
        try:
            rows = self._rows_of(line, _kind_of(line))
        except Malformed as error:
            self.tally.note_broken(str(error))
            return
        self.tally.events += 1
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
        if sum(table.estimated_size() for table in self._tables) > self._fold_at:
            self._tables = [r.newest(pl.concat(self._tables)).rechunk()]
            folded = int(self._tables[0].estimated_size())
            self._fold_at = max(_FOLD_BYTES, folded + _FOLD_AGAIN)
            self._is_full = folded > _MOST_BYTES

    def _rows_of(self, line: bytes, kind: str) -> list[r.Row]:
        if kind in _OF_ISSUES:
            if self._is_full:
                raise Malformed(_FULL)
            return self._of_issue(decode(line, _EVENT))
        if kind == _OF_PULLS:
            event = decode(line, _EVENT)
            return self._of_pull(event, event.payload.number)
        # Pushes matter only if events lack what an author is to the repository.
        if kind in _OF_MEMBERS and self.tally.without_association:
            return self._of_member(decode(line, _EVENT))
        return []

    def _of_issue(self, event: _Event) -> list[r.Row]:
        item, comment = event.payload.issue, event.payload.comment
        if item is None:
            raise Malformed("payload.issue: missing")
        if item.is_pull:
            return self._of_pull(event, item.number)
        place, action = _place(event), event.payload.action
        issue = issue_record(event.repo.name, item)
        rows = [
            r.bare_row(place, r.REPO, name=event.repo.name),
            r.issue_row(place, issue, item.author_association),
        ]
        if comment is not None:
            record = comment_record(comment)
            rows.append(r.comment_row(place, issue.number, record, comment.author_association))
        elif action in _ACTIONS:
            why = issue.state_reason if action == "closed" else None
            happened = Event(action, account_name(event.actor), place.at, state_reason=why)
            rows.append(r.event_row(place, issue.number, happened))
        spoken = item if comment is None else comment
        self.tally.issue_events += 1
        self.tally.without_association += spoken.author_association is None
        return rows

    def _of_pull(self, event: _Event, number: int | None) -> list[r.Row]:
        if number is None:
            raise Malformed("payload.number: missing")
        place = _place(event)
        return [r.bare_row(place, r.PULL, number)] if self._is_new(event, number) else []

    def _of_member(self, event: _Event) -> list[r.Row]:
        place, account = _place(event), event.payload.member or event.actor
        name = account_name(account)
        if account is None or name is None or is_bot(account) or not self._is_new(event, name):
            return []
        return [r.bare_row(place, r.MEMBER, name=name)]

    def _is_new(self, event: _Event, what: int | str) -> bool:
        known = len(self._seen)
        self._seen.add((event.repo.id, what))
        return len(self._seen) > known


def _kind_of(line: bytes) -> str:
    """The type of an event."""
    if not line.rstrip().endswith(b"}"):
        raise Malformed("the line is cut off")
    match = _BEGINNING.match(line)
    return match[1].decode() if match is not None else decode(line, _HEAD).type


def _place(event: _Event) -> r.Place:
    return r.Place(r.key_of(event.repo.id), event.repo.id, stamp(event.created_at), int(event.id))
