"""Tickets of other trackers than GitHub, out of tables and out of JSON of Jira, GitLab and Bugzilla.

A row of a table (CSV, TSV, JSON lines, a JSON array, Parquet) is a ticket or, where there are no titles, a
link: `id` is a duplicate of `duplicate_of`. Columns are found by the names that exports use, see `ROLES`.
JSON of an API is recognised by what it holds.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from gis_builder.store.decoding import Malformed, stamp
from gis_builder.store.records import Comment
from gis_builder.trackers.saved import is_known, values
from gis_builder.trackers.ticket_apis import Cells, Record, records_in, text_of
from pairkit.app.errors import DataError
from pairkit.app.printable import one_line
from pairkit.dataset.tables import has_header, read_table
from pairkit.system.lines import MAX_LINE_BYTES, read_objects, read_text_lines

# The names of columns for each role, in lower case, words alone; the first that a table has is taken.
ROLES: dict[str, tuple[str, ...]] = {
    "id": ("issue key", "key", "bug id", "ticket id", "iid", "issue id", "number", "ticket", "nr", "id"),
    "title": ("title", "summary", "subject", "short desc", "short description"),
    "body": ("body", "description", "text", "content", "details"),
    "created_at": ("created at", "created", "creation time", "opened", "opendate", "created on", "opened at"),
    "closed_at": ("closed at", "closed", "resolved", "resolutiondate", "cf last resolved", "solved at"),
    "updated_at": ("updated at", "updated", "changed", "last change time", "changeddate"),
    "state": ("state", "status", "bug status"),
    "resolution": ("resolution",),
    "author": ("author username", "author", "reporter", "creator", "requester", "submitter"),
    "labels": ("labels", "tags", "component", "components", "component s", "keywords"),
    "url": ("url", "web url", "permalink"),
    "repo": ("repo", "repository", "project key", "project", "product", "project name"),
    "duplicate_of": (
        *("duplicate of", "dupe of", "dup of", "duplicate id", "dup id", "merged into", "original", "id2"),
        "outward issue link duplicate",
    ),
    "duplicated_by": ("is duplicated by", "inward issue link duplicate"),
}
_LINK_ROLES = {"id": (*ROLES["id"], "duplicate", "id1"), "duplicate_of": ROLES["duplicate_of"]}
_SEVERAL = ("labels", "duplicate_of", "duplicated_by")  # Jira repeats a column for each of its values
_CLOSED = re.compile(r"closed?|resolved|done|solved|verified|fixed|duplicated?|rejected|cancell?ed|merged")
_DUPLICATE = re.compile(r"dup(?:e|licated?)?", re.IGNORECASE)
_ID = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,200}")
_JIRA_TIMES = ("%d/%b/%y %H:%M", "%d/%b/%y %I:%M %p", "%d/%b/%Y %H:%M", "%b %d, %Y, %I:%M %p")
_OR_SKIP = "or give --skip-broken (skip_broken=True)"
_OF_GITHUB = {"author_association", "node_id", "pull_request", "stateReason", "state_reason"}


@dataclass(frozen=True, slots=True)
class Ticket:
    """A ticket as its tracker has it. Ids are texts; times are as in the records."""

    id: str
    title: str
    created_at: str
    body: str
    is_closed: bool
    closed_at: str | None
    updated_at: str | None
    is_duplicate: bool  # its resolution says so, whether or not a link says of what
    author: str | None
    url: str
    repo: str  # owner/name or a name alone; empty where the tracker has none
    labels: tuple[str, ...]
    aliases: tuple[str, ...]  # other names of this ticket alone
    duplicate_of: tuple[str, ...]
    duplicated_by: tuple[str, ...]
    comments: tuple[Comment, ...]


class TicketLink(NamedTuple):
    """One ticket is a duplicate of another."""

    id: str
    duplicate_of: str


class TicketComment(NamedTuple):
    """A comment that was saved apart from its ticket; the first of a bug is its description."""

    id: str
    comment: Comment
    is_body: bool = False


Part: TypeAlias = Ticket | TicketLink | TicketComment
Columns: TypeAlias = Mapping[str, str]
Broken: TypeAlias = Callable[[DataError], None]


def file_kind(path: Path) -> str:
    """The ending of a file that may hold tickets, without `.gz`; empty for another."""
    kind = Path(path.name.lower().removesuffix(".gz")).suffix
    return kind if kind in (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson", ".json") else ""


def holds_tickets(path: Path, columns: Columns) -> bool:
    """Whether the first row or value of a file is a ticket, a link or a comment of another tracker."""
    _, first = next(_rows(path, columns, lambda _: None), (0, None))
    if isinstance(first, dict) and (
        is_known(first) or first.keys() & _OF_GITHUB or "/repos/" in text_of(first.get("url"))
    ):
        return False
    try:
        return bool(_records(first, columns, links=False))
    except Malformed:
        return False


def read_parts(path: Path, columns: Columns, broken: Broken, *, links: bool = False) -> Iterator[Part]:
    """What a file holds; a damaged row goes to `broken`, which may raise, and so does a damaged rest."""
    try:
        for row, value in _rows(path, columns, broken):
            try:
                for kind, cells in _records(value, columns, links=links):
                    try:
                        yield from _MAKE[kind](cells)
                    except Malformed as error:
                        broken(DataError(str(error), path=path, row=row))
            except Malformed as error:  # of its columns, so that in a table no row is better
                wrong = DataError(str(error), path=path, row=row if isinstance(value, dict) else None)
                broken(wrong)
                if not isinstance(value, dict):
                    return
    except DataError as error:
        broken(error)


def _rows(path: Path, columns: Columns, broken: Broken) -> Iterator[tuple[int, Any]]:
    """The rows of a table as names and cells, the values of JSON as they are; each with its number."""
    kind = file_kind(path)
    if kind == ".json":
        yield from values(path)
    elif kind in (".jsonl", ".ndjson"):
        yield from read_objects(path, broken)
    elif kind in (".csv", ".tsv"):
        yield from _separated(path, columns, broken, is_tsv=kind == ".tsv")
    else:
        frame = read_table(path)
        names = tuple(frame.columns)
        yield from ((row, (names, cells)) for row, cells in enumerate(frame.iter_rows(), 1))


def _separated(path: Path, columns: Columns, broken: Broken, *, is_tsv: bool) -> Iterator[tuple[int, Any]]:
    """The rows of CSV or TSV, one in memory at a time, numbered as in a spreadsheet."""
    csv.field_size_limit(MAX_LINE_BYTES)
    _, first = next(read_text_lines(path), (1, ""))
    mark = "\t" if is_tsv else max(",;\t", key=first.count)  # spreadsheets of some countries write ;
    lines = (line for _, line in read_text_lines(path))
    reader = csv.reader(
        lines, delimiter=mark, quoting=csv.QUOTE_NONE if is_tsv else csv.QUOTE_MINIMAL, strict=True
    )
    names: tuple[str, ...] = ()
    for row in count(1):
        wrong = ""
        try:
            cells = next(reader, None)
        except csv.Error as error:
            wrong, cells = f"not a row of a table ({error}); fix its quotation marks", []
        if cells is None:
            return
        if row == 1:
            is_header = has_header(path, columns)
            names = tuple(cells) if is_header else tuple(map(str, range(1, len(cells) + 1)))
            if is_header:
                continue
        if len(cells) > len(names):
            wrong = (
                f"{len(cells)} cells, but the table has {len(names)} columns; quote cells that hold {mark!r}"
            )
        if wrong:
            broken(DataError(wrong, path=path, row=row))
        elif any(map(str.strip, cells)):
            yield row, (names, [*cells, *[""] * (len(names) - len(cells))])


def _records(value: Any, columns: Columns, *, links: bool) -> Iterable[Record]:
    """The records in a row or value."""
    if isinstance(value, dict):
        if not links and (found := records_in(value)) is not None:
            return found
        value = tuple(value), tuple(value.values())
    if not isinstance(value, tuple):
        raise Malformed(f"{type(value).__name__}, expected a JSON object")
    names, cells = value
    kind, places = _layout(names, tuple(columns.items()), links)
    return [(kind, {role: [cells[place] for place in own] for role, own in places.items()})]


@lru_cache(100)
def _layout(
    names: tuple[str, ...], columns: tuple[tuple[str, str], ...], links: bool
) -> tuple[str, dict[str, list[int]]]:
    """What a row with these columns is, and the places of each role's."""
    given = dict(columns)
    places = _places(names, given, ROLES)
    is_link = links or ("title" not in places and "duplicate_of" in places)
    if is_link:
        places = _places(names, given, _LINK_ROLES)
    for role in ("id", "duplicate_of") if is_link else ("id", "title", "created_at"):
        if role not in places:
            what = f"no column {given[role]!r} for {role}" if role in given else f"no column for {role}"
            there = one_line(", ".join(names), 400) or "(none)"
            raise Malformed(f"{what}; there are {there}: rename one, or give columns such as {role}=NAME")
    return "link" if is_link else "ticket", places


def _places(
    names: Sequence[str], columns: Columns, roles: Mapping[str, Sequence[str]]
) -> dict[str, list[int]]:
    plain = [" ".join(re.findall(r"[^\W_]+", name.lower().removesuffix("(utc)"))) for name in names]
    found: dict[str, list[int]] = {}
    for role, known in roles.items():
        if role in columns:
            every = [place for place, name in enumerate(names) if name == columns[role]]
        else:
            every = [place for name in known for place, own in enumerate(plain) if own == name]
        if every:
            found[role] = every if role in _SEVERAL else every[:1]
    return found


def _links(cells: Cells) -> Iterator[Part]:
    yield from (TicketLink(_id(cells), target) for target in _ids(cells, "duplicate_of"))


def _ticket(cells: Cells) -> Iterator[Part]:
    title, state, resolution = (
        _one(cells, "title"),
        _one(cells, "state"),
        _one(cells, "resolution").strip("-"),
    )
    if not title:
        raise Malformed(f"title: empty; fill it, {_OR_SKIP}")
    closed_at = _time(cells, "closed_at")
    yield Ticket(
        _id(cells),
        title,
        _needed_time(cells, "created_at"),
        _one(cells, "body"),
        bool(resolution or (_CLOSED.fullmatch(state.lower()) if state else closed_at)),
        closed_at,
        _time(cells, "updated_at"),
        any(map(_DUPLICATE.fullmatch, (state, resolution))),
        _one(cells, "author") or None,
        _one(cells, "url"),
        _one(cells, "repo"),
        _several(cells, "labels"),
        _several(cells, "aliases"),
        _ids(cells, "duplicate_of"),
        _ids(cells, "duplicated_by"),
        tuple(_comment(one, place) for place, one in enumerate(cells.get("comments", ()), 1)),
    )


def _id(cells: Cells) -> str:
    text = _one(cells, "id")
    if not _ID.fullmatch(text):
        raise Malformed(f"id: empty, or not a line of up to 200 characters; fix it, {_OR_SKIP}")
    return text


def _ids(cells: Cells, role: str) -> tuple[str, ...]:
    """The ids that references name: themselves, or the ends of addresses of pages."""
    found = _several(cells, role)
    return tuple(re.split(r"[/=]", one)[-1] if "://" in one else one.removeprefix("#") for one in found)


def _one(cells: Cells, role: str) -> str:
    return text_of(cells.get(role, [None])[0]).strip()


def _several(cells: Cells, role: str) -> tuple[str, ...]:
    """All values of a role's cells: of lists, and what commas separate."""
    every = [one for cell in cells.get(role, ()) for one in (cell if isinstance(cell, list) else [cell])]
    parts = (part.strip() for one in every for part in re.split(r"[,;|\n]", text_of(one)))
    return tuple(dict.fromkeys(part for part in parts if part))


def _time(cells: Cells, role: str) -> str | None:
    """A time as the records hold it; one without a zone is in UTC."""
    text = _one(cells, role).removesuffix("UTC").strip()
    for form in ("", *_JIRA_TIMES) if text else ():
        try:
            moment = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
        except ValueError:
            continue
        return stamp(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    if text:
        raise Malformed(f"{role}: an unknown form of time; write it as 2024-01-31 23:59, {_OR_SKIP}")
    return None


def _needed_time(cells: Cells, role: str) -> str:
    if (found := _time(cells, role)) is None:
        raise Malformed(f"{role}: empty; fill it, {_OR_SKIP}")
    return found


def _comment(cells: Cells, place: int = 0) -> Comment:
    number = _one(cells, "id")
    id_ = int(number) if re.fullmatch(r"[0-9]{1,18}", number) else place
    when, body = _needed_time(cells, "created_at"), _one(cells, "body")
    return Comment(id_, _one(cells, "author") or None, "NONE", when, body)


def _apart(cells: Cells) -> Iterator[Part]:
    yield TicketComment(_one(cells, "ticket"), _comment(cells), cells.get("place") == [0])


_MAKE: dict[str, Callable[[Cells], Iterable[Part]]] = {"ticket": _ticket, "link": _links, "comment": _apart}
