"""Tickets of Jira, GitLab, Bugzilla or a table as a dump: with repositories, numbers, and marks for links.

The tickets of a project are a repository. A ticket has the number that its id ends in if no other of the
repository has it, and else the next one after all of these, in order of time. The store keeps the numbers, so
that a later export does not change them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from pathlib import Path

from gis_builder.store.decoding import Malformed, RepoName, convert
from gis_builder.store.records import Comment, Event, Issue, IssueRef, Tickets
from gis_builder.trackers.dump import (
    BrokenRows,
    Dump,
    MissingObject,
    Row,
    SavedDump,
    find_dumps,
    is_tracker_file,
)
from gis_builder.trackers.saved import saved_files
from gis_builder.trackers.ticket_files import ROLES, Ticket, file_kind, holds_tickets, read_parts
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.printable import one_line

_NUMBERED = re.compile(r"(?:[A-Za-z][A-Za-z0-9_]{0,30}[-_#]|[A-Za-z]{0,30})0*([1-9][0-9]{0,6})")
_TABLES = (".csv", ".tsv", ".parquet")  # which can hold nothing else
_SPREADSHEETS = (".xlsx", ".xls", ".ods")
_PAGE = re.compile(r"https?://[^\s\x00-\x1f\x7f-\x9f<>\"]{1,1000}")
_GITLAB_PAGE = re.compile(r"https?://[^/]+/(.{1,400}?)(?:/-)?/(?:issues|work_items)/[0-9]+")
# An id such as ABC-12, or the address of its page.
_MENTION = re.compile(
    r"(?:https?://[^\s/<>\[\]()|\"']{1,200}(?:/[\w.~-]{1,60}){0,8}/)?"
    r"\b([A-Za-z][A-Za-z0-9_]{1,30}-[0-9]{1,9})\b"
)


@dataclass(frozen=True)
class ImportOptions:
    """How the files of an import are to be read."""

    links: Path | None = None  # a table of duplicates
    columns: Mapping[str, str] = field(default_factory=dict)
    repo: str | None = None  # of all tickets, and of GitHub's objects that name none
    skip_broken: bool = False

    def __post_init__(self) -> None:
        if unknown := [role for role in self.columns if role not in ROLES]:
            raise ConfigError(f"column mapping {unknown[0]!r}: expected one of {', '.join(ROLES)}")
        try:
            convert(self.repo or "owner/name", RepoName)
        except Malformed:
            raise ConfigError(f"repo = {self.repo!r}: expected owner/name, such as acme/helpdesk") from None


PLAIN = ImportOptions()


def find_trackers(source: Path, options: ImportOptions, known: Tickets, broken: BrokenRows) -> list[Dump]:
    """The trackers of a folder or file: dumps, or tickets and what other tools saved."""
    if source.is_file() and source.suffix.lower() in _SPREADSHEETS:
        raise DataError("a spreadsheet, which is not read; save its sheet as CSV", path=source)
    every = [source] if source.is_file() else sorted(source.rglob("*"))
    links = options.links.resolve() if options.links else None
    files = [path for path in every if file_kind(path) and (path == source or path.resolve() != links)]
    if source.is_dir() and any(map(is_tracker_file, every)):
        files = []
    # Whatever is wrong with a table that is given by name is reported when it is read.
    is_table = source.is_file() and bool(file_kind(source) in _TABLES or options.links or options.columns)
    tickets = []
    for path in files:
        try:
            tickets += [path] if is_table or holds_tickets(path, options.columns) else []
        except DataError as error:
            broken(error)
    if tickets:
        ours = frozenset(tickets)
        rest = tuple(path for path in files if path not in ours)
        dump = TicketDump(source, None, {}, options.repo, broken, tuple(tickets), rest, options, known)
        others = SavedDump(source, fallback=options.repo, broken=broken, others=ours)
        return [dump, others] if set(rest) & set(saved_files(source)) else [dump]
    if source.exists() and (options.links or options.columns):
        raise ConfigError(
            f"{source}: holds no tickets, which links and columns are for; see gis import --help"
        )
    return find_dumps(source, options.repo, broken)


@dataclass(frozen=True)
class TicketDump(Dump):
    """Tickets in files, which are read anew for issues, comments and events; only ids and links are held."""

    files: tuple[Path, ...] = ()
    rest: tuple[Path, ...] = ()  # what else the folder has
    options: ImportOptions = PLAIN
    known: Tickets = field(default_factory=dict)  # of an earlier import

    @property
    def passed_over(self) -> tuple[Path, ...]:
        """Tables of the folder that hold no tickets."""
        return tuple(path for path in self.rest if file_kind(path) != ".json")

    @property
    def has_events(self) -> bool:
        """Always: closings and marks are made from the tickets."""
        return True

    def issues(self) -> Iterator[Row[Issue]]:
        """Every ticket; one with a link counts as closed."""
        for issue, _ in self._tickets():
            title, body = (self.index.with_references(text, issue.repo) for text in (issue.title, issue.body))
            yield Row(*issue.ref, {}, replace(issue, title=title, body=body))

    def comments(self) -> Iterator[Row[Comment]]:
        """Every comment."""
        for issue, ticket in self._tickets():
            for one in ticket.comments:
                body = self.index.with_references(one.body, issue.repo)
                yield Row(*issue.ref, {}, replace(one, body=body))

    def events(self) -> Iterator[Row[Event]]:
        """The closing of each closed ticket, and a mark for each of its links."""
        done: set[IssueRef] = set()
        for issue, _ in self._tickets():
            ref, when = issue.ref, issue.closed_at
            if when and ref not in done:
                done.add(ref)
                yield Row(*ref, {}, Event("closed", None, when, state_reason=issue.state_reason))
                for target in self.index.marks.get(ref, ()):
                    yield Row(*ref, {}, Event("marked_as_duplicate", None, when, target))

    def missing(self) -> Iterator[Row[MissingObject]]:
        """None: no export has what was deleted."""
        return iter(())

    @cached_property
    def index(self) -> TicketIndex:
        """All ids, numbers and links of the files."""
        index = TicketIndex(self.known)
        for path, ticket in self._read(self.files):
            index.add(ticket, self._home(ticket, path))
        links = (self.options.links,) if self.options.links else ()
        for _, link in self._read(links, are_links=True):
            index.add(link, "")
        index.settle()
        return index

    def _read(self, files: tuple[Path, ...], *, are_links: bool = False) -> Iterator[tuple[Path, Ticket]]:
        for path in files:
            for ticket in read_parts(path, self.options.columns, self.broken, are_links=are_links):
                yield path, ticket

    def _tickets(self) -> Iterator[tuple[Issue, Ticket]]:
        """The issue that each ticket becomes, but for its references, and the ticket."""
        index = self.index
        for path, ticket in self._read(self.files):
            one, ref = ticket.issue, index.ref(ticket.id, self._home(ticket, path))
            if one is None or ref is None:
                continue
            if ref in index.marks:
                closed_at = one.closed_at or one.updated_at
                one = replace(one, state="closed", state_reason="duplicate", closed_at=closed_at)
            yield replace(one, repo=ref.repo, number=ref.number), ticket

    def _home(self, ticket: Ticket, path: Path) -> str:
        """The repository of a ticket, as owner/name."""
        if self.fallback:
            return self.fallback
        page = _GITLAB_PAGE.match(ticket.url)
        owner, _, name = (ticket.repo or (page[1] if page else "")).rpartition("/")
        host = ticket.url.partition("://")[2].partition("/")[0]
        place = path if path == self.folder else self.folder.resolve()
        return f"{_word(owner or host)}/{_word(name or place.name.partition('.')[0])}"


class TicketIndex:
    """Which tickets there are: their numbers, pages and links."""

    def __init__(self, known: Tickets) -> None:
        self.tickets = {repo: dict(own) for repo, own in known.items()}
        self.links: list[tuple[str, str, str]] = []  # duplicate, original, repository
        self.marks: dict[IssueRef, dict[IssueRef, None]] = {}  # the originals of each, in order
        self.unknown: list[tuple[str, str]] = []  # links of tickets that are not there
        self.repeated = 0
        self._spelling = {repo.lower(): repo for repo in known}
        self._new: dict[str, dict[str, tuple[str, str]]] = {}  # when created and the page, by id
        self._anywhere: dict[str, IssueRef | None] = {}  # by id; None if several have it

    @property
    def notes(self) -> list[str]:
        """What has no effect, in words."""
        named = one_line(", ".join(f"{source} of {target}" for source, target in self.unknown[:3]))
        links = f"{len(self.unknown):,} duplicate links left out ({named}): import both tickets of each"
        again = f"{self.repeated:,} tickets came again, and the last counts"
        return [*([links] if self.unknown else []), *([again] if self.repeated else [])]

    def add(self, ticket: Ticket, home: str) -> None:
        """Note a ticket and its links, or a link alone."""
        repo = self._spelling.setdefault(home.lower(), home)
        self.links += [(ticket.id, target, repo) for target in ticket.duplicate_of]
        if ticket.issue:
            own = self._new.setdefault(repo, {})
            self.repeated += ticket.id in own
            page = ticket.url if _PAGE.fullmatch(ticket.url) else ticket.id
            own[ticket.id] = ticket.issue.created_at, page

    def settle(self) -> None:
        """Once all tickets are noted: give them numbers, and find what the links mean."""
        for repo, new in self._new.items():
            own = self.tickets.setdefault(repo, {})
            numbers = _numbered({id_: when for id_, (when, _) in new.items()}, own)
            own |= {id_: (numbers[id_], page) for id_, (_, page) in new.items()}
            for id_, number in numbers.items():
                self._anywhere[id_] = None if id_ in self._anywhere else IssueRef(repo, number)
        for source, target, repo in dict.fromkeys(self.links):
            duplicate, original = self.ref(source, repo), self.ref(target, repo)
            if duplicate is None or original is None or duplicate == original:
                self.unknown.append((source, target))
            else:
                self.marks.setdefault(duplicate, {})[original] = None

    def ref(self, id_: str, repo: str) -> IssueRef | None:
        """The ticket of an id: in a repository, and else in the only one that has it."""
        repo = self._spelling.get(repo.lower(), repo)
        if id_ in self._new.get(repo, ()):
            return IssueRef(repo, self.tickets[repo][id_][0])
        return self._anywhere.get(id_)

    def with_references(self, text: str, repo: str) -> str:
        """A text in which ids of tickets are references of GitHub's form, which a dataset's texts drop."""

        def reference(match: re.Match[str]) -> str:
            ref = self.ref(match[1], repo)
            return match[0] if ref is None else f"#{ref.number}" if ref.repo == repo else str(ref)

        return _MENTION.sub(reference, text) if "-" in text else text


def _numbered(created: Mapping[str, str], known: Mapping[str, tuple[int, str]]) -> dict[str, int]:
    """A number for each id, by when each was created."""
    numbers = {id_: known[id_][0] for id_ in created if id_ in known}
    taken = {number for number, _ in known.values()}
    new = sorted(created.keys() - numbers.keys(), key=lambda id_: (created[id_], id_))
    for id_ in new:
        found = _NUMBERED.fullmatch(id_)
        if found and (number := int(found[1])) not in taken:
            numbers[id_] = number
            taken.add(number)
    free = count(max(taken, default=0) + 1)
    return numbers | {id_: next(free) for id_ in new if id_ not in numbers}


def _word(name: str) -> str:
    """A name as part of a repository's."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:90] or "tickets"
