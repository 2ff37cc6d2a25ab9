"""What a thread holds for a verdict: statements in order of time with their speakers' roles, and marks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from gis_builder.detection.page import has_any, mask, might_guess, might_matter
from gis_builder.detection.reading import MOST_CLAIMS, TextReading, read, read_body
from gis_builder.detection.tokens import find_references
from gis_builder.store.records import GITHUB, Comment, Event, Issue, IssueRef, Thread

_MAINTAINERS = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
_DUPLICATE_LABEL = re.compile(r"\bdup(?:e|licated?|licates)?\b|重复|重複|중복", re.IGNORECASE)
_EDIT_NOTE = re.compile(
    r"^\W{0,4}(?:edit(?:ed)?|updated?|upd|eta)\b[^:\n]{0,30}?[:\-–—\])*]+"
    r"(?P<note>[^\n]++(?:\n(?![^\S\n]*+\n)[^\n]++)*+)",
    re.IGNORECASE | re.MULTILINE,
)
_TITLE_NOTE = re.compile(
    r"^\W{0,3}dup(?:e|licated?)?(?=:)"
    r"|[\[(]\W?(?:possible |probable |likely )?dup(?:e|licated?)?s?"
    r"(?:\s*(?:of\b|[:#]|http|gh-)[^\])]{0,200})?[\])]",
    re.IGNORECASE,
)
# What importers write of another tracker's record, each on a line of its own.
_SIGNS = r"(?:[^\w\n]|_)"
_IMPORTED_STATUS = re.compile(
    rf"^{_SIGNS}{{0,8}}(?:(?:changed|updated|set){_SIGNS}{{1,4}})?(?:status|state|resolution){_SIGNS}{{1,8}}"
    rf"(?:(?:set|changed|to|from|open|closed|new|accepted|assigned|started|resolved|none){_SIGNS}{{1,8}}){{0,6}}"
    rf"(?P<status>[a-z]{{3,20}}){_SIGNS}{{0,8}}$",
    re.IGNORECASE | re.MULTILINE,
)
_IMPORTED_TARGET = re.compile(
    r"^[ \t]{0,8}(?:_merged into (?P<merged>[^\n]{1,200})_"
    r"|(?:\\?\*){3} {0,2}this (?:bug|issue|ticket|report) (?:has been marked as|is) an? duplicate of"
    r" (?P<target>[^\n]{1,200}?)(?:\\?\*){3})[ \t]{0,8}$",
    re.IGNORECASE | re.MULTILINE,
)
_IMPORTED_WORDS = ("status", "state", "resolution", "_merged into", "a duplicate of")
ONE_CLICK = timedelta(seconds=30)  # "comment and close" leaves two times that differ a little
_SAME_SITTING = timedelta(minutes=10)


# How much of one thread is read: what lies beyond is nobody's talk, and no reason to hold a build. Characters
# and claims are counted, not seconds, so that the same thread gets the same verdict on every machine.
# Ten times the longest thread of rust-lang/rust; GitHub takes 65,536 characters a comment and 2,500 comments.
MOST_CHARACTERS = 4_000_000


class Role(StrEnum):
    """Who speaks, as far as it bears on duplicates."""

    CLOSER = "closer"
    MAINTAINER = "maintainer"
    AUTHOR = "author"
    OTHER = "other"
    BOT = "bot"


@dataclass(frozen=True, slots=True)
class Statement:
    """One reading with its place, time and speaker."""

    reading: TextReading
    role: Role
    who: str | None
    when: str
    url: str
    is_note: bool = False  # a title or edit note, written at a time that is not known


@dataclass(frozen=True, slots=True)
class ImportedMark:
    """The record of another tracker that an importer wrote into a comment; it has no event here."""

    targets: tuple[IssueRef, ...]  # empty: the tracker recorded the status alone
    comment: Comment
    line: str


@dataclass(frozen=True, slots=True)
class TrackerMarks:
    """What the tracker itself records."""

    marked: tuple[Event, ...]  # marks and closings with a target that nobody took back
    unmarked: tuple[Event, ...]
    reopened_at: str | None  # the last reopening that was more than a slip
    imported: ImportedMark | None
    says_duplicate: bool  # closed with that reason, labelled so, or marked (REST doesn't tell of what)


def instant(time: str) -> datetime:
    """An ISO 8601 time in UTC as GitHub writes it."""
    return datetime.fromisoformat(time)


def read_marks(thread: Thread) -> TrackerMarks:
    """Read the events, the closing reason and the labels of a thread."""
    issue = thread.issue
    reopened_at = _last_reopening(thread.events)
    in_force: dict[IssueRef | None, Event] = {}
    unmarked = []
    for event in thread.events:
        if event.kind == "unmarked_as_duplicate":
            in_force.pop(event.target, None)
            unmarked.append(event)
        elif event.kind == "marked_as_duplicate" or (event.kind == "closed" and event.target is not None):
            in_force.pop(event.target, None)  # so that the last mark stands last
            in_force[event.target] = event
    marked = [e for e in in_force.values() if reopened_at is None or e.created_at > reopened_at]
    is_labelled = any(_DUPLICATE_LABEL.search(label) for label in issue.labels)
    is_marked = any(event.target is None for event in marked)
    imported = _imported_mark(thread, reopened_at)
    return TrackerMarks(
        marked=tuple(event for event in marked if event.target is not None),
        unmarked=tuple(unmarked),
        reopened_at=reopened_at,
        imported=imported,
        says_duplicate=issue.state_reason == "duplicate"
        or is_marked
        or imported is not None
        or (is_labelled and not unmarked),
    )


def _imported_mark(thread: Thread, reopened_at: str | None) -> ImportedMark | None:
    """The last record of an import, if it is of a duplicate; it may be later than the closing."""
    mark: ImportedMark | None = None
    for comment in thread.comments:
        if not has_any(comment.body.lower(), _IMPORTED_WORDS):
            continue
        if reopened_at is not None and comment.created_at <= reopened_at:
            continue
        body = mask(comment.body)
        for status in _IMPORTED_STATUS.finditer(body):
            is_duplicate = _DUPLICATE_LABEL.fullmatch(status["status"]) is not None
            mark = ImportedMark((), comment, status[0].strip()) if is_duplicate else None
        for named in _IMPORTED_TARGET.finditer(body):
            references = find_references(named["merged"] or named["target"], thread.issue.ref.repo)
            targets = tuple(reference.ref for reference in references if not reference.is_pull)
            mark = ImportedMark(targets, comment, named[0].strip()) if targets else None
    return mark


def _last_reopening(events: tuple[Event, ...]) -> str | None:
    """The last reopening after which the issue stayed open for a while; a slip of the mouse is none."""
    closed_next: datetime | None = None
    for event in reversed(events):
        if event.kind == "closed":
            closed_next = instant(event.created_at)
        elif event.kind == "reopened" and (
            closed_next is None or closed_next - instant(event.created_at) > _SAME_SITTING
        ):
            return event.created_at
    return None


def read_statements(
    thread: Thread, former_names: Collection[str] = (), *, site: str = GITHUB, must_read: bool = False
) -> list[Statement]:
    """Read a thread's texts in order of time, body and notes first; empty if none of them claims anything."""
    issue, page = thread.issue, thread.issue.ref.page(site)
    opens_with_claim = might_guess(issue.body) or _TITLE_NOTE.search(issue.title) is not None
    worth_while = [might_matter(comment.body) for comment in thread.comments]
    if not (must_read or opens_with_claim or any(worth_while)):
        return []
    opening = list(_opening(issue, page, former_names)) if opens_with_claim else []
    known_closers = closers(thread)

    def read_comment(comment: Comment) -> Statement:
        return _comment(thread, comment, page, known_closers, former_names)

    early = [
        read_comment(comment) if is_worth else None
        for comment, is_worth in zip(thread.comments, worth_while, strict=True)
    ]
    if not must_read and not any(statement.reading.claims for statement in (*opening, *early) if statement):
        return []
    rest = (said or read_comment(comment) for comment, said in zip(thread.comments, early, strict=True))
    return [*(opening or _opening(issue, page, former_names)), *rest]


def closers(thread: Thread) -> frozenset[str]:
    """The logins that closed the issue last."""
    last = [event.actor for event in thread.events if event.kind == "closed"][-1:]
    return frozenset(login for login in (thread.issue.closed_by, *last) if login is not None)


def _comment(
    thread: Thread, comment: Comment, page: str, known_closers: frozenset[str], former_names: Collection[str]
) -> Statement:
    issue = thread.issue
    url = f"{page}#issuecomment-{comment.id}"
    role = _role(issue, comment, known_closers)
    return Statement(
        read(comment.body, issue.ref, former_names), role, comment.author, comment.created_at, url
    )


def _role(issue: Issue, comment: Comment, known_closers: frozenset[str]) -> Role:
    if comment.is_bot:
        return Role.BOT
    if comment.author in known_closers or (not known_closers and _is_at_closing(issue, comment)):
        return Role.CLOSER
    if comment.author_association in _MAINTAINERS:
        return Role.MAINTAINER
    is_author = comment.author is not None and comment.author == issue.author
    return Role.AUTHOR if is_author else Role.OTHER


def _is_at_closing(issue: Issue, comment: Comment) -> bool:
    """Whether a comment was written in the moment of the closing, where nobody says who closed."""
    if issue.closed_at is None:
        return False
    return abs(instant(issue.closed_at) - instant(comment.created_at)) <= ONE_CLICK


def _opening(issue: Issue, page: str, former_names: Collection[str]) -> Iterator[Statement]:
    """The statements of body and title: what the author thought at the start, then the notes added later."""
    is_closer = issue.author is not None and issue.author == issue.closed_by
    notes = [match["note"] for match in _EDIT_NOTE.finditer(issue.body)]
    rest = _EDIT_NOTE.sub(" ", issue.body) if notes else issue.body
    reading = read_body(rest, issue.ref, former_names)
    yield Statement(reading, Role.AUTHOR, issue.author, issue.created_at, page)
    title_note = _TITLE_NOTE.search(issue.title)
    for note in (*notes, *([title_note.group()] if title_note else [])):
        yield Statement(
            reading=read(note, issue.ref, former_names),
            role=Role.CLOSER if is_closer else Role.AUTHOR,
            who=issue.author,
            when=issue.created_at,
            url=page,
            is_note=True,
        )


def text_over_limit(thread: Thread) -> str | None:
    """The reason code if the thread's texts are longer together than is read."""
    issue = thread.issue
    length = len(issue.title) + len(issue.body) + sum(len(comment.body) for comment in thread.comments)
    return "too_much_text" if length > MOST_CHARACTERS else None


def claims_over_limit(statements: Iterable[Statement]) -> str | None:
    """The reason code if more is claimed than is weighed: claims, and the issues that they name."""
    weight = sum(1 + len(claim.targets) for statement in statements for claim in statement.reading.claims)
    return "too_many_claims" if weight > MOST_CLAIMS else None
