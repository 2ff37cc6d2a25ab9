"""The hours of the archive, and the first map: the file of an hour to rows of its events.

Only lines of relevant event types are decoded; the type is at the beginning of each line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
from msgspec.json import Decoder

from gis_builder.gh_archive.archive_rows import (
    COMMENT,
    EVENT,
    ISSUE,
    MEMBER,
    PULL,
    REPO,
    HourTally,
    Row,
    Source,
    key_of,
    newest,
    row_of,
    serialise,
    table_of,
)
from gis_builder.gh_archive.runners import identity_of
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
from gis_builder.trackers import rest_records
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.system.text_lines import read_lines

_DAY_OR_HOUR = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:-([0-9]{1,2}))?")
_HOUR = timedelta(hours=1)
# The first hour of today's schema; earlier events have no texts.
_FIRST = datetime(2015, 1, 1, tzinfo=UTC)
# The last hour with all events; later hours lack most of them.
LAST_COMPLETE = datetime(2025, 5, 23, 23, tzinfo=UTC)
# The beginning of nearly all lines, so that few need to be decoded to learn their type.
_LINE_START = re.compile(rb'\{"id": ?"[0-9]{1,18}", ?"type": ?"([A-Za-z]{1,50})"')
_ISSUE_EVENTS = ("IssuesEvent", "IssueCommentEvent")
_PULL_EVENT = "PullRequestEvent"
_MEMBER_EVENTS = ("PushEvent", "MemberEvent")
_ACTIONS = ("closed", "reopened")
# Rows, and bytes of their lines, that are collected before they become a table.
_CHUNK = 10_000
_CHUNK_BYTES = 16 << 20
# Bytes of tables at which duplicates are removed, and their growth until the next removal.
_COMPACT_BYTES = 96 << 20
_COMPACT_AGAIN = 32 << 20
# Maximum bytes of an hour's tables, so that a hostile hour does not exhaust a worker's memory.
_MAX_BYTES = 192 << 20
_FULL = "the hour exceeds the size limit"


def hours_between(text: str) -> list[str]:
    """The names of all hours of a range, such as `2015-01-01-0`, in order."""
    start, end = _first_and_last(text)
    if end < start:
        raise ConfigError(
            f"hours = {text}: the range ends before it starts; expected the earlier time first"
        )
    if start < _FIRST:
        raise ConfigError(
            f"hours = {text}: events before 2015-01-01 have no texts; start with 2015-01-01"
        )
    today = datetime.now(UTC).date()
    if end.date() > today:
        raise ConfigError(
            f"hours = {text}: the range ends after today; end with {today}"
        )
    count = (end - start) // _HOUR + 1
    moments = [start + index * _HOUR for index in range(count)]
    return [f"{moment:%Y-%m-%d}-{moment.hour}" for moment in moments]


def lacks_events(text: str) -> bool:
    """Whether a range ends after the last hour for which the archive is complete."""
    _, end = _first_and_last(text)
    return end > LAST_COMPLETE


def hour_files(folder: Path, hours: Sequence[str]) -> dict[str, tuple[Path, str]]:
    """The existing files of these hours, with their identities; names may have two digits of the hour."""
    folder = folder.resolve()
    names = {path.name for path in folder.glob("*.json.gz")}
    files = {}
    for hour in hours:
        for name in (f"{hour}.json.gz", f"{hour[:11]}{hour[11:]:0>2}.json.gz"):
            path = folder / name
            identity = identity_of(path) if name in names else None
            if identity:
                files[hour] = (path, identity)
                break
    return files


def _first_and_last(text: str) -> tuple[datetime, datetime]:
    """The first and the last hour of a range."""
    first, dots, last = text.partition("..")
    return _parse(text, first, 0), _parse(text, last if dots else first, 23)


def _parse(text: str, part: str, default_hour: int) -> datetime:
    match = _DAY_OR_HOUR.fullmatch(part.strip())
    if match is None:
        raise ConfigError(
            f"hours = {text}: expected days or hours, such as 2015-01-01..2015-12-31 or"
            " 2015-01-01-0..2015-01-01-5"
        )
    try:
        day = datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
        return day.replace(hour=int(match[2]) if match[2] else default_hour)
    except ValueError as error:
        raise ConfigError(
            f"hours = {text}: {match[0]} doesn't exist; expected a day of the calendar,"
            " and an hour from 0 to 23"
        ) from error


class _Head(Node):
    id: DecimalId
    type: Word


class _Repo(Node):
    """A repository; its id is the same after a change of name."""

    id: Id
    name: RepoName


class _Payload(Node):
    """The payload of any relevant event type."""

    action: Word | None = None
    issue: rest_records.IssueObject | None = None
    comment: rest_records.CommentObject | None = None
    number: Number | None = None
    member: rest_records.Account | None = None


class _Event(Node):
    id: DecimalId
    repo: _Repo
    created_at: Time
    payload: _Payload
    actor: rest_records.Account | None = None


_HEAD = Decoder(_Head)
_EVENT = Decoder(_Event)


def extract_hour(path: Path, hour: str) -> Iterator[bytes]:
    """Yield the file of an hour: its rows and its tally."""
    reader = _HourReader(hour)
    tally = reader.tally
    lines = read_lines(
        path, pass_over=lambda _: tally.note_broken("the line is too long")
    )
    try:
        for _, line in lines:
            reader.add(line)
    except DataError as error:
        # An error with a number is one of a disk or network, which may work at the next attempt.
        cause = error.__cause__
        if cause is None or getattr(cause, "errno", None) is not None:
            raise
        tally.broke_off = str(error).removeprefix(f"{path}:{error.row}: ")
    if not tally.lines:
        tally.broke_off = tally.broke_off or "no lines"
    _check_loss(tally, path)
    yield serialise(reader.table(), [tally])


def _check_loss(tally: HourTally, path: Path) -> None:
    """Refuse an hour of which most is lost, because its loss would look like an hour without duplicates."""
    broken = Counter(tally.broken)
    del broken[_FULL]
    lost = broken.total()
    if 2 * lost > tally.lines:
        ((reason, _),) = broken.most_common(1)
        raise DataError(
            f"{lost:,} of {tally.lines:,} lines are broken, most of them with: {reason};"
            " download it again, or remove it to count it as missing",
            path=path,
        )


class _HourReader:
    """Collects the rows of an hour."""

    def __init__(self, hour: str) -> None:
        self.tally = HourTally(hour)
        self._rows: list[Row] = []
        self._bytes = 0  # of the rows' lines
        self._tables: list[pl.DataFrame] = []  # earlier rows; tables take less memory
        self._compact_at = _COMPACT_BYTES
        self._is_full = False
        # Repository, and number of a pull request or name of a member, of each such row.
        self._seen: set[tuple[int, int | str]] = set()

    def add(self, line: bytes) -> None:
        """Add the rows of a line."""
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
        """The newest version of each row."""
        self._flush()
        return newest(pl.concat(self._tables))

    def _flush(self) -> None:
        self._tables.append(table_of(self._rows))
        self._rows = []
        self._bytes = 0
        if sum(table.estimated_size() for table in self._tables) > self._compact_at:
            compacted = newest(pl.concat(self._tables)).rechunk()
            self._tables = [compacted]
            size = int(compacted.estimated_size())
            self._compact_at = max(_COMPACT_BYTES, size + _COMPACT_AGAIN)
            self._is_full = size > _MAX_BYTES

    def _rows_of(self, line: bytes, kind: str) -> list[Row]:
        if kind in _ISSUE_EVENTS:
            if self._is_full:
                raise Malformed(_FULL)
            return self._issue_rows(decode(line, _EVENT))
        if kind == _PULL_EVENT:
            event = decode(line, _EVENT)
            return self._pull_rows(event, event.payload.number)
        # Pushes matter only if events lack the author's association.
        if kind in _MEMBER_EVENTS and self.tally.without_association:
            return self._member_rows(decode(line, _EVENT))
        return []

    def _issue_rows(self, event: _Event) -> list[Row]:
        item = event.payload.issue
        comment = event.payload.comment
        if item is None:
            raise Malformed("payload.issue: missing")
        if item.is_pull:
            return self._pull_rows(event, item.number)
        source = _source(event)
        action = event.payload.action
        issue = rest_records.issue_record(event.repo.name, item)
        association = item.author_association
        changed_at = issue.updated_at
        rows = [
            row_of(source, REPO, name=event.repo.name),
            row_of(
                source, ISSUE, issue, changed_at=changed_at, association=association
            ),
        ]
        if comment:
            association = comment.author_association
            comment_row = row_of(
                source,
                COMMENT,
                rest_records.comment_record(comment),
                number=issue.number,
                association=association,
            )
            rows.append(comment_row)
        elif action in _ACTIONS:
            event_row = row_of(
                source,
                EVENT,
                number=issue.number,
                id=source.event_id,
                author=rest_records.account_name(event.actor),
                created_at=source.event_at,
                action=action,
                state_reason=issue.state_reason if action == "closed" else None,
            )
            rows.append(event_row)
        self.tally.issue_events += 1
        if association is None:
            self.tally.without_association += 1
        return rows

    def _pull_rows(self, event: _Event, number: int | None) -> list[Row]:
        if number is None:
            raise Malformed("payload.number: missing")
        if not self._is_new(event, number):
            return []
        return [row_of(_source(event), PULL, number=number)]

    def _member_rows(self, event: _Event) -> list[Row]:
        account = event.payload.member or event.actor
        name = rest_records.account_name(account)
        if (
            name is None
            or rest_records.is_bot(account)
            or not self._is_new(event, name)
        ):
            return []
        return [row_of(_source(event), MEMBER, name=name)]

    def _is_new(self, event: _Event, key: int | str) -> bool:
        count = len(self._seen)
        self._seen.add((event.repo.id, key))
        return len(self._seen) > count


def _kind_of(line: bytes) -> str:
    """The type of an event."""
    if not line.rstrip().endswith(b"}"):
        raise Malformed("truncated line")
    match = _LINE_START.match(line)
    if match is None:
        return decode(line, _HEAD).type
    return match[1].decode()


def _source(event: _Event) -> Source:
    repo_id = event.repo.id
    return Source(
        key=key_of(repo_id),
        repo_id=repo_id,
        event_at=stamp(event.created_at),
        event_id=int(event.id),
    )
