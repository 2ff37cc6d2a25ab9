"""Reads tickets of other trackers as a dump: with repositories, numbers and duplicate marks.

Each project becomes a repository. A ticket's number is the number at the end of its id; if another ticket
has that number, or the id has none, the ticket gets the next free number, in order of creation. The store
keeps these numbers, so that a later export does not change them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, count, product
from pathlib import Path

from gis_builder.crawling.link_cells import LinkKind, LinkPart, read_cell
from gis_builder.store import Comment, Event, Issue, IssueRef, TicketRow, Tickets
from gis_builder.store.decoding import Malformed
from gis_builder.trackers.dump import (
    BrokenRows,
    Dump,
    Row,
    SavedDump,
    find_dumps,
    is_tracker_file,
)
from gis_builder.trackers.saved import saved_files
from gis_builder.trackers.ticket_cells import SEPARATOR, Link, Ticket, plain_id
from gis_builder.trackers.ticket_files import (
    PLAIN,
    TABLES,
    UNREADABLE,
    ImportOptions,
    TicketFile,
    file_kind,
)
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line

_NUMBERED = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9_]{0,30}[-_#]|[A-Za-z]{0,30})0*([1-9][0-9]{0,6})"
)
_PAGE = re.compile(r"https?://[^\s\x00-\x1f\x7f-\x9f<>\"]{1,1000}")
_GITLAB_PAGE = re.compile(
    r"https?://[^/]+/(.{1,400}?)(?:/-)?/(?:issues|work_items)/[0-9]+"
)
# An id such as ABC-12, also without blanks around it ("与ABC-12重复"), or the address of its page.
_MENTION = re.compile(
    r"(?:https?://[^\s/<>\[\]()|\"']{1,200}(?:/[\w.~-]{1,60}){0,8}/)?"
    r"(?a:\b([A-Za-z][A-Za-z0-9_]{1,30}-[0-9]{1,9})\b)"
)
# An id of Phabricator, or any address, which is compared with the pages of tickets.
_TASK_OR_PAGE = re.compile(
    r"(?a:\bT[0-9]{1,9}\b)"
    r"|(https?://[^\s<>()\[\]|\"'#]{1,300})#note_[0-9]+"
    r"|https?://[^\s<>()\[\]|\"']{1,300}[\w/]"
)
# Texts that people write if there is no link, such as "n/a" or "-".
_NO_LINK = re.compile(r"(?:n/?a|nan|none|null|no|[-–—?./ ]*)", re.IGNORECASE)
_NO_ID = "without an id"
_ITSELF = "to the ticket itself"
_WORD = re.compile(r"[^\s,;:()\[\]<>\"'?&]+")
# A number that is all of a text ("12", "see 12", "ticket 12 (same customer)"), or has a mark ("#12").
_NUMBER = re.compile(
    r"^(?:[^\W\d]+[.:]?\s+){0,4}(?:(?:bug|issue|ticket|case|incident|request|gh|no|nr)[-_.:]?)?\s*#?\s*"
    r"(\d{1,9})(?:\.0)?(?=$|\s*[(\[])|(?<![A-Za-z0-9_/])#(\d{1,9})(?![A-Za-z0-9_])",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"[-_#]*0*(\d+)")


def find_trackers(
    source: Path,
    options: ImportOptions,
    known: Tickets,
    broken: BrokenRows,
) -> list[Dump]:
    """Find the trackers of a folder or file: dumps, tickets, and JSON of other tools."""
    paths = sorted(source.rglob("*"))
    if source.is_file():
        paths = [source]
        ending = Path(source.name.lower().removesuffix(".gz")).suffix
        if ending in UNREADABLE:
            raise DataError(UNREADABLE[ending], path=source)
    files = _files_of_rows(source, paths, options)
    tickets = tuple(_ticket_files(source, files, options, broken))
    if not tickets:
        if source.exists() and (options.links or options.columns):
            raise ConfigError(
                f"{source}: contains no tickets; leave out --links and --columns"
            )
        return find_dumps(source, options.repo, broken)

    ticket_paths = frozenset(file.path for file in tickets)
    unreadable = [path for path in paths if path.suffix.lower() in UNREADABLE]
    others = [path for path in (*files, *unreadable) if path not in ticket_paths]
    dump = TicketDump(
        folder=source,
        fallback=options.repo,
        broken=broken,
        files=tickets,
        others=others,
        options=options,
        known=known,
    )
    if set(others).isdisjoint(saved_files(source)):
        return [dump]
    saved = SavedDump(
        source, fallback=options.repo, broken=broken, tickets=ticket_paths
    )
    return [dump, saved]


def _files_of_rows(
    source: Path, paths: Sequence[Path], options: ImportOptions
) -> list[Path]:
    """The files that may have tickets: none in a folder of dumps, and not that of the links."""
    if source.is_dir() and any(map(is_tracker_file, paths)):
        return []
    links = options.links.resolve() if options.links else None
    files = [path for path in paths if file_kind(path)]
    return [path for path in files if path == source or path.resolve() != links]


def _ticket_files(
    source: Path,
    paths: Sequence[Path],
    options: ImportOptions,
    broken: BrokenRows,
) -> Iterator[TicketFile]:
    # A table given by name is always read, so that its errors are reported.
    is_table = file_kind(source) in TABLES or options.links or options.columns
    for path in paths:
        file = TicketFile(path, options.columns, broken, options.date_format)
        try:
            if (is_table and source.is_file()) or file.contains_tickets():
                yield file
        except DataError as error:
            broken(error)


@dataclass(frozen=True)
class TicketDump(Dump):
    """Files of tickets, read once each for issues, comments and events; only ids and links stay in memory."""

    files: tuple[TicketFile, ...] = ()
    others: Sequence[Path] = ()  # other files of the folder
    options: ImportOptions = PLAIN
    known: Tickets = field(default_factory=dict)  # tickets of an earlier import

    @property
    def passed_over(self) -> tuple[Path, ...]:
        """Tables of the folder without tickets."""
        return tuple(path for path in self.others if file_kind(path) != ".json")

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
        seen = set()
        for issue, _ in self.tickets():
            ref = issue.ref
            when = issue.closed_at
            if not when or ref in seen:
                continue
            seen.add(ref)
            yield Row(
                *ref, Event("closed", None, when, state_reason=issue.state_reason)
            )
            for original in self.index.marks.get(ref, ()):
                yield Row(*ref, Event("marked_as_duplicate", None, when, original))
            for other in self.index.denials.get(ref, ()):
                yield Row(*ref, Event("unmarked_as_duplicate", None, when, other))

    @cached_property
    def index(self) -> TicketIndex:
        """The ids, numbers and links of all files."""
        index = TicketIndex(self.known)
        for file in self.every_file:
            for ticket in file:
                repo = "" if file.are_links else self._repo_of(ticket, file.path)
                try:
                    index.add(ticket, repo, file.path)
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
            for ticket in file:
                ref = index.ref(ticket.id, self._repo_of(ticket, file.path))
                issue = ticket.issue
                if issue is None or ref is None or index.files[ref] != file.path:
                    continue
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
        return f"{_name_part(owner or _host(ticket.url))}/{_name_part(name or stem)}"


@dataclass(frozen=True)
class NewTicket:
    """A ticket without a number."""

    created_at: str
    page: str
    priority: str
    path: Path


class TicketIndex:
    """The numbers, pages and links of all tickets."""

    def __init__(self, known: Tickets) -> None:
        self.tickets = {repo: dict(rows) for repo, rows in known.items()}
        self.links: dict[tuple[Link, str], None] = {}  # with the repository, in order
        # Originals of each duplicate, and tickets that it doesn't duplicate, in order
        self.marks: dict[IssueRef, dict[IssueRef, None]] = {}
        self.denials: dict[IssueRef, dict[IssueRef, None]] = {}
        # Links by role of the column, words beside the ids, and how these are read
        self.words: Counter[tuple[str, str, str]] = Counter()
        # Each has the ticket and the link as they are written, and the reason.
        self.skipped: list[tuple[str, str, str]] = []
        self.files: dict[IssueRef, Path] = {}  # of new tickets
        self.repeated = 0
        self._spelling = {repo.lower(): repo for repo in known}
        self._new: dict[str, dict[str, NewTicket]] = {}  # by repository and id
        # By id; None if several repositories have it.
        self._by_id: dict[str, IssueRef | None] = {}

    @property
    def link_count(self) -> int:
        """Number of resolved links."""
        return sum(map(len, self.marks.values()))

    def notes(self, skipped: str) -> list[str]:
        """Lines on skipped links, which are listed in the file `skipped`, and on repeated tickets."""
        notes = []
        if self.skipped:
            causes = Counter(reason for _, _, reason in self.skipped)
            counted = ", ".join(
                f"{count:,} {reason}" for reason, count in causes.most_common()
            )
            ticket, link, _ = self.skipped[0]
            first = one_line(f"{ticket} to {link}", 80)
            count = len(self.skipped)
            notes.append(
                f"{count:,} links skipped: {counted}; first {first}; {skipped}"
            )
        if self.repeated:
            times = "occur more than once; the last occurrence counts"
            notes.append(f"{self.repeated:,} tickets {times}")
        return notes

    def add(self, ticket: Ticket, repo: str, path: Path) -> None:
        """Add a ticket with its links, or only links."""
        repo = self._spelling.setdefault(repo.lower(), repo)
        if ticket.issue:
            new = self._new.setdefault(repo, {})
            created_at = ticket.issue.created_at
            earlier = new.get(ticket.id)
            if earlier:
                if earlier.path != path and earlier.created_at != created_at:
                    raise Malformed(
                        f"ticket {one_line(ticket.id, 80)} has another time of creation in"
                        f" {earlier.path.name}; import only one of these files, or each with its own --repo"
                    )
                self.repeated += 1
            page = ticket.url if _PAGE.fullmatch(ticket.url) else ticket.id
            new[ticket.id] = NewTicket(created_at, page, ticket.priority, path)
        for link in ticket.links:
            self.links[link, repo] = None

    def resolve(self) -> None:
        """Number the tickets and resolve the links, after all tickets were added."""
        for repo, new in self._new.items():
            rows = self.tickets.setdefault(repo, {})
            numbers = _assign_numbers(new, rows)
            for id_, ticket in new.items():
                number = numbers[id_]
                rows[id_] = TicketRow(number, ticket.page, ticket.priority)
                ref = IssueRef(repo, number)
                self.files[ref] = ticket.path
                self._by_id[id_] = None if id_ in self._by_id else ref
        for link, repo in self.links:
            whole_cell = LinkPart(link.cell, "", LinkKind.PLAIN)
            for part in read_cell(link.cell, link.ticket) or [whole_cell]:
                self._add_part(link, part, repo)

    def _add_part(self, link: Link, part: LinkPart, repo: str) -> None:
        """Mark a duplicate, or set the link aside; a denial also revokes comments on the two tickets."""
        kind = part.kind
        if kind is LinkKind.PLAIN and link.role != "links":
            kind = LinkKind.DUPLICATE
        source = link.ticket
        target = part.ids
        if link.role == "duplicated_by" or kind is LinkKind.REVERSED:
            source = part.ids
            target = link.ticket
        originals = self._find(target, repo)
        if not originals:  # such as "n/a"
            return
        self.words[link.role, part.words, kind] += 1
        for duplicate, original in product(self._find(source, repo), originals):
            if isinstance(duplicate, str):
                self.skipped.append((source, target, duplicate))
            elif isinstance(original, str):
                self.skipped.append((source, target, original))
            elif duplicate == original:
                self.skipped.append((source, target, _ITSELF))
            elif kind in (LinkKind.DUPLICATE, LinkKind.REVERSED):
                self.marks.setdefault(duplicate, {})[original] = None
            else:
                self.skipped.append((link.ticket, link.cell, kind))
                if kind is LinkKind.DENIED:
                    self.denials.setdefault(duplicate, {})[original] = None

    def ref(self, id_: str, repo: str) -> IssueRef | None:
        """Find a ticket by id in its repository, else in the only other repository with that id."""
        repo = self._spelling.get(repo.lower(), repo)
        if id_ in self._new.get(repo, ()):
            return IssueRef(repo, self.tickets[repo][id_].number)
        return self._by_id.get(id_)

    def _find(self, cell: str, repo: str) -> list[IssueRef | str]:
        """The tickets that a cell names, and the reason for each part of it that names none."""
        if ref := self.ref(plain_id(cell), repo):
            return [ref]
        matches: dict[IssueRef | str, None] = {}
        for part in SEPARATOR.split(cell):
            matches |= dict.fromkeys(self._named(part.strip(), repo))
        if len(matches) > 1:
            matches.pop(_NO_ID, None)
        return list(matches)

    def _named(self, part: str, repo: str) -> list[IssueRef | str]:
        """The tickets that a text names: by id or page, with other case or zeros, or only by number."""
        if _NO_LINK.fullmatch(part):
            return []
        for forms in self._forms_in(part):
            matches = [match for form in forms if (match := self._at(form, repo))]
            refs: list[IssueRef | str] = [
                ref for ref in matches if isinstance(ref, IssueRef)
            ]
            if matches:
                return refs or matches[:1]
        return ["to a ticket outside the import" if re.search(r"\d", part) else _NO_ID]

    def _forms_in(self, part: str) -> Iterator[list[str]]:
        """The forms of a text to look for: the whole, then the ids in it, then the numbers."""
        yield [_form(plain_id(part))]
        if "://" in part:
            if _host(part).lower() in self._hosts:
                return  # the number may be that of another project's ticket
            part = re.split(r"[/=]", part.rstrip("/"))[-1]
        words = _WORD.findall(part) + _MENTION.findall(part)
        ids = [
            word for word in words if re.search(r"\d", word) and not word.isdecimal()
        ]
        yield list(map(_form, ids))
        yield [f"#{int(match[1] or match[2])}" for match in _NUMBER.finditer(part)]

    def _at(self, form: str, repo: str) -> IssueRef | str | None:
        home = self._spelling.get(repo.lower(), repo)
        return self._forms.get((home, form)) or self._forms.get(("", form))

    @cached_property
    def _forms(self) -> dict[tuple[str, str], IssueRef | str]:
        """Tickets by repository (or "") and form of id, page or number; a reason if there are several."""
        forms: dict[tuple[str, str], IssueRef | str] = {}
        for repo, new in self._new.items():
            for id_ in new:
                row = self.tickets[repo][id_]
                ref = IssueRef(repo, row.number)
                names = {_form(id_), _form(row.page)}
                number = _NUMBERED.fullmatch(id_)
                if number is not None:
                    names.add(f"#{number[1]}")
                for key in product(("", repo), names):
                    forms[key] = (
                        ref
                        if forms.get(key, ref) == ref
                        else "to one of several tickets"
                    )
        return forms

    @cached_property
    def _hosts(self) -> set[str]:
        tickets = chain.from_iterable(new.values() for new in self._new.values())
        return {
            _host(ticket.page).lower() for ticket in tickets if "://" in ticket.page
        }

    def with_references(self, text: str, repo: str) -> str:
        """Replace ticket ids by GitHub references, because these are removed from the dataset's texts."""

        def reference(match: re.Match[str]) -> str:
            name = match[match.lastindex or 0]
            ref = self.ref(name, repo) or self._at(_form(name), repo)
            if not isinstance(ref, IssueRef):
                return match[0]
            return f"#{ref.number}" if ref.repo == repo else str(ref)

        text = _TASK_OR_PAGE.sub(reference, text)
        if "-" not in text:
            return text
        return _MENTION.sub(reference, text)


def _assign_numbers(
    tickets: Mapping[str, NewTicket],
    known: Mapping[str, TicketRow],
) -> dict[str, int]:
    """Assign a number to each id, in order of creation."""
    numbers = {id_: known[id_].number for id_ in tickets if id_ in known}
    taken = {row.number for row in known.values()}
    new = sorted(
        tickets.keys() - known.keys(), key=lambda id_: (tickets[id_].created_at, id_)
    )
    for id_ in new:
        match = _NUMBERED.fullmatch(id_)
        number = int(match[1]) if match else None
        if number is not None and number not in taken:
            numbers[id_] = number
            taken.add(number)
    free = count(max(taken, default=0) + 1)
    return numbers | {id_: next(free) for id_ in new if id_ not in numbers}


def _form(text: str) -> str:
    """A form that an id or page has in any case and with any zeros before its numbers."""
    return _DIGITS.sub(r"-\1", text.strip("# /").lower())


def _host(url: str) -> str:
    _, _, address = url.partition("://")
    return address.partition("/")[0]


def _name_part(name: str) -> str:
    """Convert a name of any script to the owner or name of a repository."""
    ascii_name = name.encode("punycode").decode()
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", ascii_name).strip("-.")
    return plain[:90] or "tickets"
