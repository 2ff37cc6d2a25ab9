"""Reads tickets of other trackers as a dump: with repositories, numbers and duplicate marks.

Each project becomes a repository. A ticket's number is the number at the end of its id; if another ticket
has that number, or the id has none, the ticket gets the next free number, in order of creation. The store
keeps these numbers, so that a later export does not change them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count, product
from pathlib import Path

from gis_builder.crawling.link_cells import LinkKind, LinkPart, read_cell
from gis_builder.store.decoding import Malformed
from gis_builder.store.issue_records import Comment, Event, Issue, IssueRef, TicketRow, Tickets
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
from gis_builder.trackers.ticket_files import PLAIN, TABLES, UNREADABLE, ImportOptions, TicketFile, file_kind
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line

_NUMBERED = re.compile(r"(?:[A-Za-z][A-Za-z0-9_]{0,30}[-_#]|[A-Za-z]{0,30})0*([1-9][0-9]{0,6})")
_PAGE = re.compile(r"https?://[^\s\x00-\x1f\x7f-\x9f<>\"]{1,1000}")
_GITLAB_PAGE = re.compile(r"https?://[^/]+/(.{1,400}?)(?:/-)?/(?:issues|work_items)/[0-9]+")
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
_NO_LINK = re.compile(r"(?:n/?a|nan|none|null|no|[-–—?./ ]*)", re.IGNORECASE)  # what people write for none
_NO_ID, _ITSELF = "without an id", "to the ticket itself"
_WORD = re.compile(r"[^\s,;:()\[\]<>\"'?&]+")
# A number that is all of a text ("12", "see 12", "ticket 12 (same customer)"), or has a mark ("#12").
_NUMBER = re.compile(
    r"^(?:[^\W\d]+[.:]?\s+){0,4}(?:(?:bug|issue|ticket|case|incident|request|gh|no|nr)[-_.:]?)?\s*#?\s*"
    r"(\d{1,9})(?:\.0)?(?=$|\s*[(\[])|(?<![A-Za-z0-9_/])#(\d{1,9})(?![A-Za-z0-9_])",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"[-_#]*0*(\d+)")


def find_trackers(source: Path, options: ImportOptions, known: Tickets, broken: BrokenRows) -> list[Dump]:
    """Find the trackers of a folder or file: dumps, tickets, and JSON of other tools."""
    if source.is_file() and (reason := UNREADABLE.get(Path(source.name.lower().removesuffix(".gz")).suffix)):
        raise DataError(reason, path=source)
    paths = [source] if source.is_file() else sorted(source.rglob("*"))
    links = options.links.resolve() if options.links else None
    files = [path for path in paths if file_kind(path) and (path == source or path.resolve() != links)]
    if source.is_dir() and any(map(is_tracker_file, paths)):
        files = []
    # A table given by name is always read, so that its errors are reported.
    is_table = source.is_file() and bool(file_kind(source) in TABLES or options.links or options.columns)
    tickets = []
    for file in (TicketFile(path, options.columns, broken, options.date_format) for path in files):
        try:
            tickets += [file] if is_table or file.contains_tickets() else []
        except DataError as error:
            broken(error)
    if tickets:
        ticket_paths = frozenset(file.path for file in tickets)
        unreadable = [path for path in paths if path.suffix.lower() in UNREADABLE]
        rest = tuple(path for path in (*files, *unreadable) if path not in ticket_paths)
        dump = TicketDump(source, None, options.repo, broken, tuple(tickets), rest, options, known)
        saved = SavedDump(source, fallback=options.repo, broken=broken, tickets=ticket_paths)
        return [dump, saved] if set(rest) & set(saved_files(source)) else [dump]
    if source.exists() and (options.links or options.columns):
        raise ConfigError(f"{source}: contains no tickets; leave out --links and --columns")
    return find_dumps(source, options.repo, broken)


@dataclass(frozen=True)
class TicketDump(Dump):
    """Files of tickets, read once each for issues, comments and events; only ids and links stay in memory."""

    files: tuple[TicketFile, ...] = ()
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
        for issue, ticket in self.tickets():
            title, body = (self.index.with_references(text, issue.repo) for text in (issue.title, issue.body))
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
        done: set[IssueRef] = set()
        for issue, _ in self.tickets():
            ref, when = issue.ref, issue.closed_at
            if when and ref not in done:
                done.add(ref)
                yield Row(*ref, Event("closed", None, when, state_reason=issue.state_reason))
                for kind, links in (("marked", self.index.marks), ("unmarked", self.index.denials)):
                    for target in links.get(ref, ()):
                        yield Row(*ref, Event(f"{kind}_as_duplicate", None, when, target))

    @cached_property
    def index(self) -> TicketIndex:
        """The ids, numbers and links of all files."""
        index = TicketIndex(self.known)
        for file in self.every_file:
            for ticket in file:
                try:
                    index.add(ticket, "" if file.are_links else self._repo_of(ticket, file.path), file.path)
                except Malformed as error:
                    self.broken(DataError(str(error), path=file.path))
        index.resolve()
        return index

    @property
    def every_file(self) -> list[TicketFile]:
        """The files of tickets, and that of links."""
        links, columns = self.options.links, self.options.link_columns
        return [*self.files, *([TicketFile(links, columns, self.broken, are_links=True)] if links else [])]

    def tickets(self) -> Iterator[tuple[Issue, Ticket]]:
        """Yield each ticket as an issue, whose references are not converted yet, with the ticket itself."""
        index = self.index
        for path, ticket in ((file.path, ticket) for file in self.files for ticket in file):
            issue, ref = ticket.issue, index.ref(ticket.id, self._repo_of(ticket, path))
            if issue is None or ref is None or index.files[ref] != path:
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
        self.tickets = {repo: dict(rows) for repo, rows in known.items()}
        self.links: list[tuple[Link, str]] = []  # with the repository
        self.marks: dict[IssueRef, dict[IssueRef, None]] = {}  # originals of each duplicate, in order
        self.denials: dict[IssueRef, dict[IssueRef, None]] = {}  # tickets that it does not duplicate
        # Links by role of the column, words beside the ids, and how these are read
        self.words: Counter[tuple[str, str, str]] = Counter()
        self.skipped: list[tuple[str, str, str]] = []  # ticket and link as written, reason
        self.files: dict[IssueRef, Path] = {}  # of new tickets
        self.repeated = 0
        self._spelling = {repo.lower(): repo for repo in known}
        self._new: dict[str, dict[str, tuple[str, TicketRow, Path]]] = {}  # creation time by id
        self._by_id: dict[str, IssueRef | None] = {}  # None if several repositories have the id

    @property
    def link_count(self) -> int:
        """Number of resolved links."""
        return sum(map(len, self.marks.values()))

    def notes(self, skipped: str) -> list[str]:
        """Lines on skipped links, which are listed in the file `skipped`, and on repeated tickets."""
        causes = Counter(reason for _, _, reason in self.skipped)
        counted = ", ".join(f"{count:,} {reason}" for reason, count in causes.most_common())
        first = one_line(" to ".join(self.skipped[0][:2]), 80) if self.skipped else ""
        links = f"{len(self.skipped):,} links skipped: {counted}; first {first}; {skipped}"
        repeated = f"{self.repeated:,} tickets occur more than once; the last occurrence counts"
        return [*([links] if self.skipped else []), *([repeated] if self.repeated else [])]

    def add(self, ticket: Ticket, repo: str, path: Path) -> None:
        """Add a ticket with its links, or only links."""
        repo = self._spelling.setdefault(repo.lower(), repo)
        if ticket.issue:
            new, created_at = self._new.setdefault(repo, {}), ticket.issue.created_at
            if ticket.id in new:
                earlier_time, _, earlier_path = new[ticket.id]
                if earlier_path != path and earlier_time != created_at:
                    raise Malformed(
                        f"ticket {one_line(ticket.id, 80)} has another time of creation in"
                        f" {earlier_path.name}; import only one of these files, or each with its own --repo"
                    )
                self.repeated += 1
            page = ticket.url if _PAGE.fullmatch(ticket.url) else ticket.id
            new[ticket.id] = created_at, TicketRow(0, page, ticket.priority), path
        self.links += [(link, repo) for link in ticket.links]

    def resolve(self) -> None:
        """Number the tickets and resolve the links, after all tickets were added."""
        for repo, new in self._new.items():
            rows = self.tickets.setdefault(repo, {})
            numbers = _assign_numbers({id_: created for id_, (created, _, _) in new.items()}, rows)
            for id_, (_, row, path) in new.items():
                rows[id_] = row._replace(number=numbers[id_])
                ref = IssueRef(repo, numbers[id_])
                self.files[ref] = path
                self._by_id[id_] = None if id_ in self._by_id else ref
        for link, repo in dict.fromkeys(self.links):
            for part in read_cell(link.cell, link.ticket) or [LinkPart(link.cell, "", LinkKind.PLAIN)]:
                self._add_part(link, part, repo)

    def _add_part(self, link: Link, part: LinkPart, repo: str) -> None:
        """Mark a duplicate, or set the link aside; a denial also revokes comments on the two tickets."""
        kind = part.kind
        if kind is LinkKind.PLAIN and link.role != "links":
            kind = LinkKind.DUPLICATE
        source, target = link.ticket, part.ids
        if link.role == "duplicated_by" or kind is LinkKind.REVERSED:
            source, target = target, source
        originals = self._find(target, repo)
        if not originals:  # such as "n/a"
            return
        self.words[link.role, part.words, kind] += 1
        for duplicate, original in product(self._find(source, repo), originals):
            if isinstance(duplicate, str) or isinstance(original, str) or duplicate == original:
                reason = next((end for end in (duplicate, original) if isinstance(end, str)), _ITSELF)
                self.skipped.append((source, target, reason))
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
        matches = [ref for part in SEPARATOR.split(cell) for ref in self._named(part.strip(), repo)]
        has_id = any(ref != _NO_ID for ref in matches)
        return [ref for ref in dict.fromkeys(matches) if ref != _NO_ID or not has_id]

    def _named(self, part: str, repo: str) -> list[IssueRef | str]:
        """The tickets that a text names: by id or page, with other case or zeros, or only by number."""
        if _NO_LINK.fullmatch(part):
            return []
        is_page = "://" in part
        last = re.split(r"[/=]", part.rstrip("/"))[-1] if is_page else part
        words = _WORD.findall(last) + _MENTION.findall(last)
        ids = [word for word in words if re.search(r"\d", word) and not word.isdecimal()]
        numbers = [f"#{int(match[1] or match[2])}" for match in _NUMBER.finditer(last)]
        if is_page and _host(part) in self._hosts:  # otherwise the page of another project would be found
            ids = numbers = []
        for forms in ([_form(plain_id(part))], map(_form, ids), numbers):
            if matches := [match for form in forms if (match := self._at(form, repo))]:
                return [ref for ref in matches if isinstance(ref, IssueRef)] or matches[:1]
        return ["to a ticket outside the import" if re.search(r"\d", part) else _NO_ID]

    def _at(self, form: str, repo: str) -> IssueRef | str | None:
        return self._forms.get((self._spelling.get(repo.lower(), repo), form)) or self._forms.get(("", form))

    @cached_property
    def _forms(self) -> dict[tuple[str, str], IssueRef | str]:
        """Tickets by repository (or "") and form of id, page or number; a reason if there are several."""
        forms: dict[tuple[str, str], IssueRef | str] = {}
        for repo, new in self._new.items():
            for id_ in new:
                row = self.tickets[repo][id_]
                ref, number = IssueRef(repo, row.number), _NUMBERED.fullmatch(id_)
                for form in {_form(id_), _form(row.page), *([f"#{number[1]}"] if number else [])}:
                    for key in ((repo, form), ("", form)):
                        forms[key] = ref if forms.get(key, ref) == ref else "to one of several tickets"
        return forms

    @cached_property
    def _hosts(self) -> set[str]:
        rows = (row for new in self._new.values() for _, row, _ in new.values())
        return {_host(row.page) for row in rows if "://" in row.page}

    def with_references(self, text: str, repo: str) -> str:
        """Replace ticket ids by GitHub references, because these are removed from the dataset's texts."""

        def reference(match: re.Match[str]) -> str:
            name = match[match.lastindex or 0]
            ref = self.ref(name, repo) or self._at(_form(name), repo)
            if not isinstance(ref, IssueRef):
                return match[0]
            return f"#{ref.number}" if ref.repo == repo else str(ref)

        text = _TASK_OR_PAGE.sub(reference, text)
        return _MENTION.sub(reference, text) if "-" in text else text


def _assign_numbers(created: Mapping[str, str], known: Mapping[str, TicketRow]) -> dict[str, int]:
    """Assign a number to each id, in order of creation."""
    numbers = {id_: known[id_].number for id_ in created if id_ in known}
    taken = {row.number for row in known.values()}
    new = sorted(created.keys() - numbers.keys(), key=lambda id_: (created[id_], id_))
    for id_ in new:
        match = _NUMBERED.fullmatch(id_)
        if match and (number := int(match[1])) not in taken:
            numbers[id_] = number
            taken.add(number)
    free = count(max(taken, default=0) + 1)
    return numbers | {id_: next(free) for id_ in new if id_ not in numbers}


def _form(text: str) -> str:
    """A form that an id or page has in any case and with any zeros before its numbers."""
    return _DIGITS.sub(r"-\1", text.strip("# /").lower())


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].lower()


def _name_part(name: str) -> str:
    """Convert a name of any script to the owner or name of a repository."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name.encode("punycode").decode()).strip("-.")[:90] or "tickets"
