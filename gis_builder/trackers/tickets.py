"""Reads tickets of other trackers as a dump: with repositories, numbers and duplicate marks.

Each project becomes a repository. A ticket's number is the number at the end of its id; if another ticket
has that number, or the id has none, the ticket gets the next free number, in order of creation. The store
keeps these numbers, so that a later export does not change them.
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
from gis_builder.trackers.ticket_files import ROLES, Ticket, contains_tickets, file_kind, read_parts
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.printable import one_line

_NUMBERED = re.compile(r"(?:[A-Za-z][A-Za-z0-9_]{0,30}[-_#]|[A-Za-z]{0,30})0*([1-9][0-9]{0,6})")
_TABLES = (".csv", ".tsv", ".parquet")  # always tickets, unlike JSON
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
    """The options of an import."""

    links: Path | None = None  # a table of duplicate links
    columns: Mapping[str, str] = field(default_factory=dict)
    repo: str | None = None  # repository of all tickets, and of GitHub's objects that name none
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
    """Find the trackers of a folder or file: dumps, tickets, and JSON of other tools."""
    if source.is_file() and source.suffix.lower() in _SPREADSHEETS:
        raise DataError("spreadsheets can't be read; save the sheet as CSV", path=source)
    every = [source] if source.is_file() else sorted(source.rglob("*"))
    links = options.links.resolve() if options.links else None
    files = [path for path in every if file_kind(path) and (path == source or path.resolve() != links)]
    if source.is_dir() and any(map(is_tracker_file, every)):
        files = []
    # A table given by name is always read, so that its errors are reported.
    is_table = source.is_file() and bool(file_kind(source) in _TABLES or options.links or options.columns)
    tickets = []
    for path in files:
        try:
            tickets += [path] if is_table or contains_tickets(path, options.columns) else []
        except DataError as error:
            broken(error)
    if tickets:
        ours = frozenset(tickets)
        rest = tuple(path for path in files if path not in ours)
        dump = TicketDump(source, None, options.repo, broken, tuple(tickets), rest, options, known)
        saved = SavedDump(source, fallback=options.repo, broken=broken, tickets=ours)
        return [dump, saved] if set(rest) & set(saved_files(source)) else [dump]
    if source.exists() and (options.links or options.columns):
        raise ConfigError(
            f"{source}: contains no tickets, but links or columns were given; see gis import --help"
        )
    return find_dumps(source, options.repo, broken)


@dataclass(frozen=True)
class TicketDump(Dump):
    """Files of tickets, read once each for issues, comments and events; only ids and links stay in memory."""

    files: tuple[Path, ...] = ()
    rest: tuple[Path, ...] = ()  # other files of the folder
    options: ImportOptions = PLAIN
    known: Tickets = field(default_factory=dict)  # tickets of an earlier import

    @property
    def passed_over(self) -> tuple[Path, ...]:
        """Tables of the folder without tickets."""
        return tuple(path for path in self.rest if file_kind(path) != ".json")

    @property
    def has_events(self) -> bool:
        """True: closings and marks are generated from the tickets."""
        return True

    def issues(self) -> Iterator[Row[Issue]]:
        """Read every ticket; one with a duplicate link counts as closed."""
        for issue, _ in self._tickets():
            title, body = (self.index.with_references(text, issue.repo) for text in (issue.title, issue.body))
            yield Row(*issue.ref, replace(issue, title=title, body=body))

    def comments(self) -> Iterator[Row[Comment]]:
        """Read every comment."""
        for issue, ticket in self._tickets():
            for comment in ticket.comments:
                body = self.index.with_references(comment.body, issue.repo)
                yield Row(*issue.ref, replace(comment, body=body))

    def events(self) -> Iterator[Row[Event]]:
        """Yield a closing for each closed ticket, and a duplicate mark for each of its links."""
        done: set[IssueRef] = set()
        for issue, _ in self._tickets():
            ref, when = issue.ref, issue.closed_at
            if when and ref not in done:
                done.add(ref)
                yield Row(*ref, Event("closed", None, when, state_reason=issue.state_reason))
                for target in self.index.marks.get(ref, ()):
                    yield Row(*ref, Event("marked_as_duplicate", None, when, target))

    def missing(self) -> Iterator[Row[MissingObject]]:
        """Yield nothing: exports don't have deleted tickets."""
        return iter(())

    @cached_property
    def index(self) -> TicketIndex:
        """The ids, numbers and links of all files."""
        index = TicketIndex(self.known)
        for path, ticket in self._read(self.files):
            index.add(ticket, self._repo_of(ticket, path))
        links = (self.options.links,) if self.options.links else ()
        for _, link in self._read(links, are_links=True):
            index.add(link, "")
        index.resolve()
        return index

    def _read(self, files: tuple[Path, ...], *, are_links: bool = False) -> Iterator[tuple[Path, Ticket]]:
        for path in files:
            for ticket in read_parts(path, self.options.columns, self.broken, are_links=are_links):
                yield path, ticket

    def _tickets(self) -> Iterator[tuple[Issue, Ticket]]:
        """Yield each ticket as an issue, whose references are not converted yet, with the ticket itself."""
        index = self.index
        for path, ticket in self._read(self.files):
            issue, ref = ticket.issue, index.ref(ticket.id, self._repo_of(ticket, path))
            if issue is None or ref is None:
                continue
            if ref in index.marks:
                closed_at = issue.closed_at or issue.updated_at
                issue = replace(issue, state="closed", state_reason="duplicate", closed_at=closed_at)
            yield replace(issue, repo=ref.repo, number=ref.number), ticket

    def _repo_of(self, ticket: Ticket, path: Path) -> str:
        """The repository of a ticket, as owner/name."""
        if self.fallback:
            return self.fallback
        page = _GITLAB_PAGE.match(ticket.url)
        owner, _, name = (ticket.repo or (page[1] if page else "")).rpartition("/")
        host = ticket.url.partition("://")[2].partition("/")[0]
        source = path if path == self.folder else self.folder.resolve()
        return f"{_name_part(owner or host)}/{_name_part(name or source.name.partition('.')[0])}"


class TicketIndex:
    """The numbers, pages and links of all tickets."""

    def __init__(self, known: Tickets) -> None:
        self.tickets = {repo: dict(own) for repo, own in known.items()}
        self.links: list[tuple[str, str, str]] = []  # duplicate, original, repository
        self.marks: dict[IssueRef, dict[IssueRef, None]] = {}  # originals of each duplicate, in order
        self.unresolved: list[tuple[str, str]] = []  # links from or to tickets that are missing
        self.repeated = 0
        self._spelling = {repo.lower(): repo for repo in known}
        self._new: dict[str, dict[str, tuple[str, str]]] = {}  # creation time and page by id
        self._by_id: dict[str, IssueRef | None] = {}  # None if several repositories have the id

    @property
    def notes(self) -> list[str]:
        """Lines on ignored links and repeated tickets."""
        named = one_line(", ".join(f"{source} of {target}" for source, target in self.unresolved[:3]))
        links = f"{len(self.unresolved):,} duplicate links skipped ({named}): import both tickets of each"
        repeated = f"{self.repeated:,} tickets occur more than once; the last occurrence counts"
        return [*([links] if self.unresolved else []), *([repeated] if self.repeated else [])]

    def add(self, ticket: Ticket, repo: str) -> None:
        """Add a ticket with its links, or only a link."""
        repo = self._spelling.setdefault(repo.lower(), repo)
        self.links += [(ticket.id, target, repo) for target in ticket.duplicate_of]
        if ticket.issue:
            own = self._new.setdefault(repo, {})
            self.repeated += ticket.id in own
            page = ticket.url if _PAGE.fullmatch(ticket.url) else ticket.id
            own[ticket.id] = ticket.issue.created_at, page

    def resolve(self) -> None:
        """Number the tickets and resolve the links, after all tickets were added."""
        for repo, new in self._new.items():
            own = self.tickets.setdefault(repo, {})
            numbers = _assign_numbers({id_: created for id_, (created, _) in new.items()}, own)
            own |= {id_: (numbers[id_], page) for id_, (_, page) in new.items()}
            for id_, number in numbers.items():
                self._by_id[id_] = None if id_ in self._by_id else IssueRef(repo, number)
        for source, target, repo in dict.fromkeys(self.links):
            duplicate, original = self.ref(source, repo), self.ref(target, repo)
            if duplicate is None or original is None or duplicate == original:
                self.unresolved.append((source, target))
            else:
                self.marks.setdefault(duplicate, {})[original] = None

    def ref(self, id_: str, repo: str) -> IssueRef | None:
        """Find a ticket by id in its repository, else in the only other repository with that id."""
        repo = self._spelling.get(repo.lower(), repo)
        if id_ in self._new.get(repo, ()):
            return IssueRef(repo, self.tickets[repo][id_][0])
        return self._by_id.get(id_)

    def with_references(self, text: str, repo: str) -> str:
        """Replace ticket ids by GitHub references, because these are removed from the dataset's texts."""

        def reference(match: re.Match[str]) -> str:
            ref = self.ref(match[1], repo)
            return match[0] if ref is None else f"#{ref.number}" if ref.repo == repo else str(ref)

        return _MENTION.sub(reference, text) if "-" in text else text


def _assign_numbers(created: Mapping[str, str], known: Mapping[str, tuple[int, str]]) -> dict[str, int]:
    """Assign a number to each id, in order of creation."""
    numbers = {id_: known[id_][0] for id_ in created if id_ in known}
    taken = {number for number, _ in known.values()}
    new = sorted(created.keys() - numbers.keys(), key=lambda id_: (created[id_], id_))
    for id_ in new:
        match = _NUMBERED.fullmatch(id_)
        if match and (number := int(match[1])) not in taken:
            numbers[id_] = number
            taken.add(number)
    free = count(max(taken, default=0) + 1)
    return numbers | {id_: next(free) for id_ in new if id_ not in numbers}


def _name_part(name: str) -> str:
    """Convert a name to the owner or name of a repository."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:90] or "tickets"
