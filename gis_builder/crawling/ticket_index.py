"""The numbers of tickets, and what their links and texts refer to.

A ticket's number is the number at the end of its id; if another ticket has that number, or the id has none,
the ticket gets the next free number, in order of creation. The store keeps these numbers, so that a later
export does not change them.

Cells of links, such as "duplicate of A-1; see also A-2", are read by the rules for comments: a cell is cut into
parts with ids and the words beside them. Words before an id also hold for the bare ids that follow on its line,
and a heading such as "Related:" for all ids whose own words name no relation.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cached_property, lru_cache
from itertools import count, pairwise, product
from pathlib import Path
from typing import NamedTuple

from gis_builder.detection.claim_reader import Claim, Stance
from gis_builder.detection.issue_references import REFERENCE_MARK
from gis_builder.detection.lexicon import code_pattern
from gis_builder.detection.page import PreparedText
from gis_builder.detection.reading import read
from gis_builder.detection.rules import relation_of
from gis_builder.store import IssueRef, Relation, TicketRow, Tickets
from gis_builder.store.decoding import Malformed
from gis_builder.trackers.ticket_cells import SEPARATOR, plain_id
from gis_builder.trackers.ticket_files import Link, Ticket
from pairkit.base.printable import comparable, one_line

_NUMBERED = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9_]{0,30}[-_#]|[A-Za-z]{0,30})0*([1-9][0-9]{0,6})"
)
_PAGE = re.compile(r"https?://[^\s\x00-\x1f\x7f-\x9f<>\"]{1,1000}")
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
_WORD = re.compile(r"[^\s,;:()\[\]<>\"'?&]+")
# A number that is all of a text ("12", "see 12", "ticket 12 (same customer)"), or has a mark ("#12").
_NUMBER = re.compile(
    r"^(?:[^\W\d]+[.:]?\s++){0,4}(?:(?:bug|issue|ticket|case|incident|request|gh|no|nr)[-_.:]?)?\s*+#?\s*+"
    r"(\d{1,9})(?:\.0)?(?=$|\s*[(\[])|(?<![A-Za-z0-9_/])#(\d{1,9})(?![A-Za-z0-9_])",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"(?<![-_#])[-_#]*0*(\d+)")

# Of cells of links
_ONE = r"(?:https?://[^\s,;|<>()\[\]\"]+|(?<![\w#./-])(?=[\w#./-]{0,200}\d)[\w#./-]+)"
_AND = r"[\s&+/]*+(?:and|or|und|oder|et|ou|y|e|o|ed|en|of|i|lub|oraz|и|или|ve|と|和|及|与|와|과)?[\s&+/]*+"
_ID = re.compile(f"(?ai){_ONE}")
_IDS = re.compile(f"(?ai){_ONE}(?:{_AND}{_ONE})*")
_LETTER = re.compile(r"[^\W\d_]")
_CUT = re.compile(r"(?=\n)|[,;|，、；]")
_HEADING = re.compile(r"(?m)[:：]\s*$")
# Signs that become blanks, as in "has_duplicate: #1".
_SPACED = re.compile(
    r"(?i)(?<=[a-z])[_.-](?=[a-z])|\bn[or]\.\s*(?=#1)|(?<![\s:：])[\s:：]+(?=#1)"
)
# The title of the other ticket; only its claims are about the link.
_TITLE = re.compile(r"(?s)(?<=#1)(?:\s*[:–—-]\s.{24}|.{32}).*")
_TICKET = IssueRef("a/b", 9_999_999)

_LEXICON = tomllib.loads(
    Path(__file__).with_name("link_words.toml").read_text(encoding="utf-8")
)


class LinkKind(StrEnum):
    """How the words beside an id are read."""

    DENIED = "not a duplicate"
    DOUBTED = "in doubt"
    REVERSED = "a duplicate of this ticket"
    DUPLICATE = "duplicate"
    OTHER = "another relation"
    PLAIN = "without words of a relation"  # the name of the column decides


class LinkPart(NamedTuple):
    """The ids in a part of a cell, the words beside them (… stands for the ids), and how these are read."""

    ids: str  # or all of the text, in which a number may be no id
    words: str
    kind: LinkKind


_CODES = {
    LinkKind[name]: code_pattern(pattern) for name, pattern in _LEXICON["codes"].items()
}
# A word begins after no letter of a script with blanks.
_WORDS = {
    LinkKind[name]: re.compile(
        rf"(?<![a-z\u00c0-\u024f\u0400-\u04ff])(?:{'|'.join(words)})".replace(
            "R", f"{REFERENCE_MARK}[^ ]?"
        )
    )
    for name, words in _LEXICON["words"].items()
}


def read_cell(cell: str, ticket: str) -> list[LinkPart]:
    """The parts of a cell of this ticket that have ids, or the whole cell."""
    parts: list[LinkPart] = []
    lead = ""

    def own_as_this(match: re.Match[str]) -> str:
        is_own = match[0].lower().strip("#.") == ticket.lower()
        return "this" if is_own else match[0]

    for text in _texts(_ID.sub(own_as_this, comparable(cell))):
        ids = _IDS.search(text)
        if ids is None:
            lead = text
            continue
        head = text[: ids.start()]
        tail = text[ids.end() :]
        is_bare = not _LETTER.search(head + tail)
        is_headed = _HEADING.search(lead)
        if text.startswith("\n") and not is_headed:
            lead = ""
        words = f"{head} #1{tail}"
        kind = kind_of(words)
        if kind is not LinkKind.PLAIN:
            lead = head
            # "A-1, A-2 are duplicates", unlike "A-1, A-2 (duplicate)"
            is_for_all = all(part.kind is LinkKind.PLAIN for part in parts)
            if is_for_all and tail.strip()[:1].isalpha():
                parts = [part._replace(kind=kind) for part in parts]
        elif is_bare or is_headed:
            kind = kind_of(f"{lead} #1")
        named = "; ".join(_ID.findall(ids[0]))
        if kind is LinkKind.PLAIN and not is_bare:
            named = text  # "2 customers" does not name ticket 2
        beside = " ".join(words.replace("#1", "…").lower().split())
        parts.append(LinkPart(named, beside, kind))
    return parts or [LinkPart(cell, "", LinkKind.PLAIN)]


def _texts(cell: str) -> Iterator[str]:
    """The parts of a cell, each with ids that have the same words, or a heading."""
    text = ""
    for part in _CUT.split(cell):
        # A remark such as "A-1, not a duplicate" or "no, not A-1"; of bounded length
        has_ids = _ID.search(text) and _ID.search(part)
        is_remark = len(text) < 1000 and not has_ids
        if text and is_remark and not _HEADING.search(f"{text}\n{part}"):
            text = f"{text}, {part}"
        else:
            yield from _between_ids(text)
            text = part
    yield from _between_ids(text)


def _between_ids(text: str) -> Iterator[str]:
    """Cut where words are between two ids: before an id if the text begins with one, else after it."""
    ids = [*_IDS.finditer(text)]
    if ids and not _LETTER.search(text[: ids[0].start()]):
        cuts = [found.start() for found in ids[1:]]
    else:
        cuts = [found.end() for found in ids[:-1]]
    for start, end in pairwise([0, *cuts, len(text)]):
        yield text[start:end]


@lru_cache(1 << 14)
def kind_of(words: str) -> LinkKind:
    """How words are read, in which `#1` stands for the ids."""
    text = _SPACED.sub(" ", words).strip(' \n¿¡>"')
    kinds = set(map(_claimed, read(text, _TICKET).claims))
    page = PreparedText(_TITLE.sub("", text), _TICKET, ())
    sentences = map(page.sentence, range(len(page.spans)))
    codes = "".join(sentence.codes for sentence in sentences)
    if kinds <= {LinkKind.PLAIN}:
        kinds.update(kind for kind, pattern in _CODES.items() if pattern.search(codes))
    kinds.update(
        kind for kind, pattern in _WORDS.items() if pattern.search(page.hidden)
    )
    return min(kinds, key=[*LinkKind].index, default=LinkKind.PLAIN)


def _claimed(claim: Claim) -> LinkKind:
    if claim.stance is Stance.DENIED:
        return LinkKind.DENIED
    if claim.stance is not Stance.ASSERTED:
        return LinkKind.DOUBTED
    if claim.about_others:
        return LinkKind.REVERSED
    relation = relation_of(claim.kind, claim.marker)
    is_same = relation in (Relation.DUPLICATE, Relation.SAME)
    return LinkKind.DUPLICATE if is_same else LinkKind.PLAIN


class SkipReason(StrEnum):
    """Why a link is no duplicate mark; other reasons are kinds of `LinkKind`."""

    OUTSIDE = "to a ticket outside the import"
    NO_ID = "without an id"
    ITSELF = "to the ticket itself"
    AMBIGUOUS = "to one of several tickets"


class SkippedLink(NamedTuple):
    """A link that is no duplicate mark, as it is written."""

    id: str
    duplicate_of: str
    reason: SkipReason | LinkKind


class Place(NamedTuple):
    """The position of a ticket in its file."""

    path: Path
    position: int


class NewTicket(NamedTuple):
    """A ticket without a number."""

    created_at: str
    page: str
    priority: str
    place: Place  # of its last occurrence


class TicketIndex:
    """The numbers, pages and links of all tickets."""

    def __init__(self, known: Tickets) -> None:
        self.tickets = {repo: dict(rows) for repo, rows in known.items()}
        self.links: dict[tuple[Link, str], None] = {}  # with the repository, in order
        # Originals of each duplicate, and tickets that it doesn't duplicate, in order
        self.marks: dict[IssueRef, dict[IssueRef, None]] = {}
        self.denials: dict[IssueRef, dict[IssueRef, None]] = {}
        # Links by role of the column, words beside the ids, and how these are read
        self.words: Counter[tuple[str, str, LinkKind]] = Counter()
        self.skipped: list[SkippedLink] = []
        self.places: dict[IssueRef, Place] = {}  # of new tickets
        self._repeated: set[tuple[str, str]] = set()  # repository and id
        self._spelling = {repo.lower(): repo for repo in known}
        self._new: dict[str, dict[str, NewTicket]] = {}  # by repository and id

    @property
    def link_count(self) -> int:
        """Number of resolved links."""
        return sum(map(len, self.marks.values()))

    def notes(self, skipped: str) -> list[str]:
        """Lines on skipped links, which are listed in the file `skipped`, and on repeated tickets."""
        notes = []
        if self.skipped:
            causes = Counter(link.reason for link in self.skipped)
            counted = ", ".join(
                f"{count:,} {reason}" for reason, count in causes.most_common()
            )
            first = self.skipped[0]
            shown = one_line(f"{first.id} to {first.duplicate_of}", 80)
            notes.append(
                f"{len(self.skipped):,} links skipped: {counted}; first {shown}; {skipped}"
            )
        if self._repeated:
            notes.append(
                f"{len(self._repeated):,} tickets occur more than once; the last occurrence counts"
            )
        return notes

    def add(self, ticket: Ticket, repo: str, place: Place) -> None:
        """Add a ticket with its links, or only links."""
        repo = self._spelling.setdefault(repo.lower(), repo)
        if ticket.issue:
            new = self._new.setdefault(repo, {})
            created_at = ticket.issue.created_at
            earlier = new.get(ticket.id)
            if earlier:
                if earlier.created_at != created_at:
                    raise Malformed(
                        f"ticket {one_line(ticket.id, 80)} already has another time of creation, in"
                        f" {earlier.place.path.name}; give a column of unique ids with --columns id=NAME,"
                        " or import each project with its own --repo"
                    )
                self._repeated.add((repo, ticket.id))
            page = ticket.url if _PAGE.fullmatch(ticket.url) else ticket.id
            new[ticket.id] = NewTicket(created_at, page, ticket.priority, place)
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
                self.places[IssueRef(repo, number)] = ticket.place
        for link, repo in self.links:
            for part in read_cell(link.cell, link.ticket):
                self._add_part(link, part, repo)

    def ref(self, id_: str, repo: str) -> IssueRef | None:
        """Find a ticket by id in its repository, else in the only other repository with that id."""
        found = self._at(f"={id_}", self._spelling.get(repo.lower(), repo))
        return found if isinstance(found, IssueRef) else None

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
            if isinstance(duplicate, SkipReason):
                self.skipped.append(SkippedLink(source, target, duplicate))
            elif isinstance(original, SkipReason):
                self.skipped.append(SkippedLink(source, target, original))
            elif duplicate == original:
                self.skipped.append(SkippedLink(source, target, SkipReason.ITSELF))
            elif kind in (LinkKind.DUPLICATE, LinkKind.REVERSED):
                self.marks.setdefault(duplicate, {})[original] = None
            else:
                self.skipped.append(SkippedLink(link.ticket, link.cell, kind))
                if kind is LinkKind.DENIED:
                    self.denials.setdefault(duplicate, {})[original] = None

    def _find(self, cell: str, repo: str) -> list[IssueRef | SkipReason]:
        """The tickets that a cell names, and the reason for each part of it that names none."""
        if ref := self.ref(plain_id(cell), repo):
            return [ref]
        matches: dict[IssueRef | SkipReason, None] = {}
        for part in SEPARATOR.split(cell):
            matches |= dict.fromkeys(self._named(part.strip(), repo))
        if len(matches) > 1:
            matches.pop(SkipReason.NO_ID, None)
        return list(matches)

    def _named(self, part: str, repo: str) -> list[IssueRef | SkipReason]:
        """The tickets that a text names: by id or page, with other case or zeros, or only by number."""
        if _NO_LINK.fullmatch(part):
            return []
        for forms in self._forms_in(part):
            matches = [match for form in forms if (match := self._at(form, repo))]
            if matches:
                # One reason is enough, and none is needed if a ticket was found.
                refs = [match for match in matches if isinstance(match, IssueRef)]
                return [*(refs or matches[:1])]
        has_number = re.search(r"\d", part)
        return [SkipReason.OUTSIDE if has_number else SkipReason.NO_ID]

    def _forms_in(self, part: str) -> Iterator[list[str]]:
        """The forms of a text to look for: the whole, then the ids in it, then the numbers."""
        yield [_form(plain_id(part))]
        if "://" in part:
            if host_of(part).lower() in self._hosts:
                return  # the number may be that of another project's ticket
            part = re.split(r"[/=]", part.rstrip("/"))[-1]
        words = _WORD.findall(part) + _MENTION.findall(part)
        ids = [
            word for word in words if re.search(r"\d", word) and not word.isdecimal()
        ]
        yield list(map(_form, ids))
        yield [f"#{int(match[1] or match[2])}" for match in _NUMBER.finditer(part)]

    def _at(self, form: str, repo: str) -> IssueRef | SkipReason | None:
        return self._forms.get((repo, form)) or self._forms.get(("", form))

    @cached_property
    def _forms(self) -> dict[tuple[str, str], IssueRef | SkipReason]:
        """Tickets by repository (or "") and id, form of id or page, or number; a reason if there are several."""
        forms: dict[tuple[str, str], IssueRef | SkipReason] = {}
        for repo, rows in self.tickets.items():
            for id_, row in rows.items():
                ref = IssueRef(repo, row.number)
                names = {f"={id_}", _form(id_), _form(row.page)}
                number = _NUMBERED.fullmatch(id_)
                if number is not None:
                    names.add(f"#{number[1]}")
                for key in product(("", repo), names):
                    if forms.setdefault(key, ref) != ref:
                        forms[key] = SkipReason.AMBIGUOUS
        return forms

    @cached_property
    def _hosts(self) -> set[str]:
        pages = [row.page for rows in self.tickets.values() for row in rows.values()]
        return {host_of(page).lower() for page in pages if "://" in page}


def host_of(url: str) -> str:
    """The host of an address; empty for a text without one."""
    _, _, address = url.partition("://")
    return address.partition("/")[0]


def _assign_numbers(
    tickets: Mapping[str, NewTicket], known: Mapping[str, TicketRow]
) -> dict[str, int]:
    """Assign a number to each id, in order of creation."""
    numbers = {id_: known[id_].number for id_ in tickets if id_ in known}
    taken = {row.number for row in known.values()}
    new = sorted(
        tickets.keys() - known.keys(), key=lambda id_: (tickets[id_].created_at, id_)
    )
    for id_ in new:
        match = _NUMBERED.fullmatch(id_)
        if match and int(match[1]) not in taken:
            numbers[id_] = int(match[1])
            taken.add(numbers[id_])
    free = count(max(taken, default=0) + 1)
    return numbers | {id_: next(free) for id_ in new if id_ not in numbers}


def _form(text: str) -> str:
    """A form that an id or page has in any case and with any zeros before its numbers."""
    return _DIGITS.sub(r"-\1", text.strip("# /").lower())
