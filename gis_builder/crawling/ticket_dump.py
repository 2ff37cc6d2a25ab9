"""Finds trackers on disk, and reads tickets of other trackers than GitHub as a dump."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from gis_builder.crawling.ticket_index import Place, TicketIndex, host_of
from gis_builder.store import Comment, Event, Issue, Tickets
from gis_builder.store.decoding import Malformed
from gis_builder.trackers.dump import (
    NO_ISSUES,
    BrokenRows,
    Dump,
    Row,
    SavedDump,
    closing_events,
    find_dumps,
    is_tracker_file,
)
from gis_builder.trackers.ticket_files import (
    TABLES,
    UNREADABLE,
    ImportOptions,
    Ticket,
    TicketFile,
    file_kind,
)
from pairkit.base.errors import ConfigError, DataError
from pairkit.dataset.reading.tables import format_of

_GITLAB_PAGE = re.compile(
    r"https?://[^/]+/(.{1,400}?)(?:/-)?/(?:issues|work_items)/[0-9]+"
)


def find_trackers(
    source: Path, options: ImportOptions, known: Tickets, broken: BrokenRows
) -> list[Dump]:
    """Find the trackers of a folder or file: dumps, tickets, and JSON of other tools."""
    paths = sorted(path for path in source.rglob("*") if not path.is_dir())
    if source.is_file():
        paths = [source]
        fault = UNREADABLE.get(format_of(source))
        if fault:
            raise DataError(fault, path=source)
    exports = paths
    if options.links:
        links = options.links.resolve()
        exports = [path for path in paths if path == source or path.resolve() != links]
    has_dumps = source.is_dir() and any(map(is_tracker_file, paths))
    candidates = [] if has_dumps else exports
    tickets = tuple(_ticket_files(source, candidates, options, broken))
    ticket_paths = frozenset(file.path for file in tickets)
    others = [
        path
        for path in exports
        if path not in ticket_paths
        and path != source
        and (file_kind(path) or path.suffix.lower() in UNREADABLE)
    ]
    if not tickets:
        ignored = options.links or options.columns or options.date_format
        if ignored and source.exists():
            raise ConfigError(
                f"{source}: contains no tickets; leave out --links, --columns and --date-format"
            )
        return find_dumps(source, options.repo, broken, others)

    tables = [path for path in others if file_kind(path) != ".json"]
    common = (source, None, options.repo, broken)
    dump = TicketDump(*common, tickets, options, known, others=tables)
    if len(tables) < len(others):
        return [dump, SavedDump(*common, ticket_paths)]
    return [dump]


def _ticket_files(
    source: Path, paths: Iterable[Path], options: ImportOptions, broken: BrokenRows
) -> Iterator[TicketFile]:
    # A table given by name is always read, so that its errors are reported.
    is_table = source.is_file() and (
        file_kind(source) in TABLES or options.links or options.columns
    )
    for path in filter(file_kind, paths):
        file = TicketFile(path, options.columns, broken, options.date_format)
        try:
            if is_table or file.contains_tickets():
                yield file
        except DataError as error:
            broken(error)


@dataclass(frozen=True)
class TicketDump(Dump):
    """Files of tickets, whose projects become repositories.

    The files are read once each for issues, comments and events; only ids and links stay in memory.
    """

    why_unread = NO_ISSUES
    files: tuple[TicketFile, ...]
    options: ImportOptions
    known: Tickets  # of an earlier import

    @property
    def has_events(self) -> bool:
        """True: closings and marks are generated from the tickets."""
        return True

    def issues(self) -> Iterator[Row[Issue]]:
        """Read every ticket; one with a duplicate link counts as closed."""
        for issue, ticket in self.tickets():
            title = self.index.with_references(issue.title, issue.repo)
            body = self.index.with_references(issue.body, issue.repo)
            stated = {"comments": ticket.comment_count}
            yield Row(*issue.ref, replace(issue, title=title, body=body), stated)

    def comments(self) -> Iterator[Row[Comment]]:
        """Read every comment."""
        for issue, ticket in self.tickets():
            for comment in ticket.comments:
                body = self.index.with_references(comment.body, issue.repo)
                yield Row(*issue.ref, replace(comment, body=body))

    def events(self) -> Iterator[Row[Event]]:
        """Yield a closing for each closed ticket, and a duplicate mark for each of its links."""
        for issue, _ in self.tickets():
            ref = issue.ref
            for closing in closing_events(issue):
                yield Row(*ref, closing)
                when = closing.created_at
                for original in self.index.marks.get(ref, ()):
                    yield Row(*ref, Event("marked_as_duplicate", None, when, original))
                for other in self.index.denials.get(ref, ()):
                    yield Row(*ref, Event("unmarked_as_duplicate", None, when, other))

    @cached_property
    def index(self) -> TicketIndex:
        """The ids, numbers and links of all files."""
        index = TicketIndex(self.known)
        for file in self.every_file:
            for position, ticket in enumerate(file):
                repo = "" if file.are_links else self._repo_of(ticket, file.path)
                try:
                    index.add(ticket, repo, Place(file.path, position))
                except Malformed as error:
                    self.broken(DataError(str(error), path=file.path))
        index.resolve()
        return index

    @property
    def every_file(self) -> list[TicketFile]:
        """The files of tickets, and that of links."""
        files = list(self.files)
        path = self.options.links
        if path:
            columns = self.options.link_columns
            files.append(TicketFile(path, columns, self.broken, are_links=True))
        return files

    def tickets(self) -> Iterator[tuple[Issue, Ticket]]:
        """Yield each ticket as an issue, whose references are not converted yet, with the ticket itself."""
        index = self.index
        for file in self.files:
            for position, ticket in enumerate(file):
                issue = ticket.issue
                ref = index.ref(ticket.id, self._repo_of(ticket, file.path))
                if issue is None or ref is None:
                    continue
                if index.places[ref] != (file.path, position):
                    continue  # its last occurrence counts
                if ref in index.marks:
                    issue = replace(
                        issue,
                        state="closed",
                        state_reason="duplicate",
                        closed_at=issue.closed_at or issue.updated_at,
                    )
                yield replace(issue, repo=ref.repo, number=ref.number), ticket

    def _repo_of(self, ticket: Ticket, path: Path) -> str:
        """The repository of a ticket, as owner/name."""
        if self.fallback:
            return self.fallback
        page = _GITLAB_PAGE.match(ticket.url)
        full_name = ticket.repo or (page[1] if page else "")
        owner, _, name = full_name.rpartition("/")
        source = path if path == self.folder else self.folder.resolve()
        stem, _, _ = source.name.partition(".")
        return f"{_name_part(owner or host_of(ticket.url))}/{_name_part(name or stem)}"


def _name_part(name: str) -> str:
    """Convert a name of any script to the owner or name of a repository."""
    ascii_name = name.encode("punycode").decode()
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", ascii_name).strip("-.")
    return plain[:90] or "tickets"
