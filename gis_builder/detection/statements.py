"""The input of a verdict: a thread's statements in order of time, their speakers' roles, and its marks."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache, lru_cache
from itertools import compress, count

from gis_builder.detection.issue_references import find_references
from gis_builder.detection.lexicon import Code, code_of, code_pattern, has_any
from gis_builder.detection.page import (
    ANY_ISSUE,
    PreparedText,
    mask,
    might_guess,
    might_matter,
)
from gis_builder.detection.reading import TextReading, read, read_body
from gis_builder.store import (
    GITHUB,
    Comment,
    Event,
    Evidence,
    Issue,
    IssueRef,
    Kind,
    Thread,
)

_MAINTAINERS = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
_DUPLICATES = frozenset((Code.DUPLICATE, Code.DUPLICATES, Code.DUPLICATED))
# In a label, but not "duplicate-candidate" or "needs-duplicate-check"
_DUPLICATE_LABEL = code_pattern(
    "(?<!RELATED) [DUPLICATE DUPLICATES DUPLICATED] (?!WORD | SEE)"
)
_DOUBTS = frozenset((Code.NOT, Code.NO, Code.MAYBE, Code.QUESTION))
_BOT_NAME = re.compile(r"^(?:bors|homu)\b|(?:^|[-_])(?:bot|robot)$", re.IGNORECASE)
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
# Lines in which importers record the status of an issue in another tracker.
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
AT_CLOSING = timedelta(hours=1)
# GitHub records two times for "comment and close", which are at most this far apart.
ONE_CLICK = timedelta(seconds=30)
SAME_SITTING = timedelta(minutes=30)

# Longer threads aren't read, so that one thread can't stall a build. The limit counts characters, not
# seconds: a thread gets the same verdict on every machine. It is ten times the longest thread of
# rust-lang/rust; GitHub allows 2,500 comments of 65,536 characters.
MAX_CHARACTERS = 4_000_000


KindOf = Callable[[IssueRef], Kind]


@dataclass(frozen=True)
class Rules:
    """Settings of one repository that change its verdicts."""

    allow_cross_repository: bool = False
    min_confidence: float = 0.0  # of a duplicate
    # Other repositories whose issues always count as targets.
    one_tracker: frozenset[str] = frozenset()
    former_names: frozenset[str] = frozenset()
    site: str = GITHUB


DEFAULT_RULES = Rules()


class Role(StrEnum):
    """Role of a speaker in the thread."""

    CLOSER = "closer"
    MAINTAINER = "maintainer"
    AUTHOR = "author"
    OTHER = "other"
    BOT = "bot"


@dataclass(frozen=True, slots=True)
class Statement:
    """A comment, body or note: its reading, speaker, time and address."""

    reading: TextReading
    role: Role
    who: str | None
    when: str
    url: str
    is_note: bool = False  # in the title or an edit of the body, at an unknown time


@dataclass(frozen=True)
class TrackerMarks:
    """The tracker's own records of duplicates."""

    # Those marks and closings with a target that are still in force.
    marked: tuple[Event, ...]
    unmarked: tuple[Event, ...]
    reopened_at: str  # the last reopening that wasn't an accident; else empty
    # Another tracker's duplicate mark in an importer's comment; without targets if it was only a status.
    imported: Evidence | None
    # By closing reason, label or mark (REST doesn't return a mark's target).
    says_duplicate: bool


def instant(time: str) -> datetime:
    """Parse an ISO 8601 time in UTC, as GitHub writes it."""
    return datetime.fromisoformat(time)


def read_marks(thread: Thread, site: str) -> TrackerMarks:
    """Read the events, the closing reason and the labels of a thread."""
    issue = thread.issue
    reopened_at = _last_reopening(thread.events)
    in_force: dict[IssueRef | None, Event] = {}
    unmarked = []
    for event in thread.events:
        is_mark = event.kind == "marked_as_duplicate"
        is_closing_as = event.kind == "closed" and event.target is not None
        if event.kind == "unmarked_as_duplicate":
            in_force.pop(event.target, None)
            unmarked.append(event)
        elif (is_mark or is_closing_as) and event.created_at > reopened_at:
            in_force.pop(event.target, None)  # keeps the newest mark last
            in_force[event.target] = event
    marks = list(in_force.values())
    marked = tuple(event for event in marks if event.target is not None)
    imported = _imported_mark(thread, reopened_at, site)
    is_marked = imported is not None or len(marked) < len(marks)
    is_labelled = any(map(_says_duplicate, issue.labels)) and not unmarked
    return TrackerMarks(
        marked=marked,
        unmarked=tuple(unmarked),
        reopened_at=reopened_at,
        imported=imported,
        says_duplicate=issue.state_reason == "duplicate" or is_marked or is_labelled,
    )


@lru_cache(1 << 12)
def _says_duplicate(label: str) -> bool:
    """Whether a label calls its issue a duplicate, unlike "possible-duplicate" and "has-duplicates"."""
    words = re.sub("[-_]", " ", label)
    if not might_guess(label) or words.lower().startswith("has "):
        return False
    page = PreparedText(words, ANY_ISSUE, ())
    codes = "".join(page.sentence(index).codes for index in range(len(page.spans)))
    return bool(_DUPLICATE_LABEL.search(codes)) and _DOUBTS.isdisjoint(codes)


def _imported_mark(thread: Thread, reopened_at: str, site: str) -> Evidence | None:
    """The last imported record if it is of a duplicate; it may be later than the closing."""
    issue = thread.issue
    mark: Evidence | None = None
    for comment in thread.comments:
        if not has_any(comment.body.lower(), _IMPORTED_WORDS):
            continue
        if comment.created_at <= reopened_at:
            continue
        body = mask(comment.body)
        evidence = Evidence(
            kind="imported_mark",
            url=f"{issue.ref.page(site)}#issuecomment-{comment.id}",
            who=comment.author,
            when=comment.created_at,
        )
        for status in _IMPORTED_STATUS.finditer(body):
            is_duplicate = code_of(status["status"].lower()) in _DUPLICATES
            mark = evidence if is_duplicate else None
        for line in _IMPORTED_TARGET.finditer(body):
            references = find_references(
                line["merged"] or line["target"], issue.ref.repo
            )
            targets = tuple(
                reference.ref for reference in references if not reference.is_pull
            )
            mark = None
            if targets:
                mark = replace(evidence, targets=targets, said=line[0].strip())
    return mark


def _last_reopening(events: tuple[Event, ...]) -> str:
    """The last reopening, unless the issue was closed again within minutes."""
    closed_next: datetime | None = None
    for event in reversed(events):
        if event.kind == "closed":
            closed_next = instant(event.created_at)
        elif event.kind == "reopened" and (
            closed_next is None
            or closed_next - instant(event.created_at) > SAME_SITTING
        ):
            return event.created_at
    return ""


def read_statements(
    thread: Thread, rules: Rules, *, must_read: bool
) -> list[Statement]:
    """Read a thread's texts in order of time, body and notes first; empty if no text contains a claim."""
    issue = thread.issue
    page = issue.ref.page(rules.site)
    opens_with_claim = (
        might_guess(issue.body) or _TITLE_NOTE.search(issue.title) is not None
    )
    might_claim = [might_matter(comment.body) for comment in thread.comments]
    if not (must_read or opens_with_claim or any(might_claim)):
        return []
    opening = list(_opening(issue, rules)) if opens_with_claim else []
    closings = [event.actor for event in thread.events if event.kind == "closed"]
    closers = frozenset({issue.closed_by, *closings[-1:]} - {None})

    @cache
    def statement_at(index: int) -> Statement:
        comment = thread.comments[index]
        return Statement(
            reading=read(comment.body, issue.ref, rules.former_names),
            role=_role(issue, comment, closers),
            who=comment.author,
            when=comment.created_at,
            url=f"{page}#issuecomment-{comment.id}",
        )

    early = [*opening, *map(statement_at, compress(count(), might_claim))]
    if not must_read and not any(statement.reading.claims for statement in early):
        return []
    # Only now are the other comments read: most threads have no claim.
    comments = map(statement_at, range(len(thread.comments)))
    return [*(opening or _opening(issue, rules)), *comments]


def _role(issue: Issue, comment: Comment, closers: frozenset[str | None]) -> Role:
    if comment.is_bot:
        return Role.BOT
    if comment.author in closers or (not closers and _is_at_closing(issue, comment)):
        return Role.CLOSER
    if comment.author_association in _MAINTAINERS:
        return Role.MAINTAINER
    is_author = comment.author is not None and comment.author == issue.author
    return Role.AUTHOR if is_author else Role.OTHER


def _is_at_closing(issue: Issue, comment: Comment) -> bool:
    """Whether a comment was written together with the closing, so that its author must be the closer."""
    if issue.closed_at is None:
        return False
    return abs(instant(issue.closed_at) - instant(comment.created_at)) <= ONE_CLICK


def _opening(issue: Issue, rules: Rules) -> Iterator[Statement]:
    """The statements of body and title: the original body, then the notes that the author added later."""
    is_closer = issue.author is not None and issue.author == issue.closed_by
    notes = [match["note"] for match in _EDIT_NOTE.finditer(issue.body)]
    original = _EDIT_NOTE.sub(" ", issue.body)
    page = issue.ref.page(rules.site)
    reading = read_body(original, issue.ref, rules.former_names)
    yield Statement(reading, Role.AUTHOR, issue.author, issue.created_at, page)
    title_note = _TITLE_NOTE.search(issue.title)
    if title_note:
        notes.append(title_note.group())
    for note in notes:
        yield Statement(
            reading=read(note, issue.ref, rules.former_names),
            role=Role.CLOSER if is_closer else Role.AUTHOR,
            who=issue.author,
            when=issue.created_at,
            url=page,
            is_note=True,
        )


@dataclass(frozen=True)
class Closing:
    """How the issue was closed; needed to weigh earlier claims."""

    issue: Issue
    is_by_bot: bool  # bots close at once on command, or when a change is merged
    # What the closer wrote at the closing, unless it has a claim or an agreement.
    remark: Statement | None
    # At the closing, the closer called the issue fixed or not a bug.
    gives_other_reason: bool
    last_words_at: str  # time of the last statement before the closing


def closing_of(
    issue: Issue,
    statements: Iterable[Statement],
    confirming: Collection[Statement | None],
) -> Closing:
    """How the issue was closed, from its statements and those of them that confirm a claim."""
    confirming_ids = set(map(id, confirming))
    remark = None
    last_words_at = ""
    gives_other_reason = False
    for statement in statements:
        before = before_closing(issue, statement)
        reading = statement.reading
        has_other_words = reading.word_count > int(reading.is_closing)
        if before >= timedelta(0) and has_other_words:
            last_words_at = statement.when
        is_at_closing = -ONE_CLICK <= before <= AT_CLOSING
        if statement.role is Role.CLOSER and is_at_closing and not statement.is_note:
            is_answer = (
                reading.agrees or reading.thanks or id(statement) in confirming_ids
            )
            is_claim = reading.speaks_of_duplicates or len(reading.claims) > 0
            remark = None if is_answer or is_claim else statement
            if remark is not None and reading.gives_other_reason:
                gives_other_reason = True
    bots = {statement.who for statement in statements if statement.role is Role.BOT}
    is_by_bot = (
        issue.closed_by in bots or _BOT_NAME.search(issue.closed_by or "") is not None
    )
    return Closing(issue, is_by_bot, remark, gives_other_reason, last_words_at)


def before_closing(issue: Issue, statement: Statement) -> timedelta:
    """Time from a statement to the closing; negative for a later statement."""
    return instant(issue.closed_at or issue.updated_at) - instant(statement.when)
