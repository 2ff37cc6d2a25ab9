"""What the stages pass to one another: issues, threads, verdicts, texts and pairs. Plain data, no behaviour.

Times are ISO 8601 strings in UTC as GitHub writes them (`2015-01-31T23:59:59Z`), which sort as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeAlias

GITHUB = "https://github.com"  # below it are the pages of its issues
# Tickets of other trackers by repository and id: their number, and their page or, if there is none, their id.
Tickets: TypeAlias = dict[str, dict[str, tuple[int, str]]]


class IssueRef(NamedTuple):
    """An issue or pull request by repository (`owner/name`) and number."""

    repo: str
    number: int

    def __str__(self) -> str:
        return f"{self.repo}#{self.number}"

    def page(self, site: str) -> str:
        """The page a person opens, below the root of all pages; for a pull request GitHub redirects."""
        own = site.pages.get(self) if isinstance(site, TicketSite) else None
        return own or f"{site}/{self.repo}/issues/{self.number}"


class TicketSite(str):
    """GitHub as the root of all pages, but tickets of other trackers have their own."""

    pages: Mapping[IssueRef, str]

    @classmethod
    def of(cls, tickets: Tickets) -> TicketSite:
        """The root for a store with these tickets."""
        site = cls(GITHUB)
        site.pages = {IssueRef(repo, n): page for repo, own in tickets.items() for n, page in own.values()}
        return site


class Kind(StrEnum):
    """What a reference turned out to point at."""

    ISSUE = "issue"
    PULL = "pull"
    MISSING = "missing"  # deleted, transferred away, or never there
    UNKNOWN = "unknown"  # not fetched, so nothing can be said


@dataclass(frozen=True, slots=True)
class Issue:
    """One issue as the tracker last showed it; `body` is empty where GitHub says null."""

    repo: str
    number: int
    title: str
    body: str
    state: str  # open | closed
    state_reason: str | None  # completed | not_planned | duplicate | reopened
    author: str | None  # None: the account is gone
    author_association: str  # OWNER | MEMBER | COLLABORATOR | CONTRIBUTOR | NONE | ...
    created_at: str
    updated_at: str
    closed_at: str | None
    closed_by: str | None
    is_pull: bool = False
    is_bot: bool = False
    labels: tuple[str, ...] = ()
    duplicate_of: IssueRef | None = None  # GitHub's own field, where the server has it

    @property
    def ref(self) -> IssueRef:
        """Where this issue stands."""
        return IssueRef(self.repo, self.number)


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment of a thread."""

    id: int  # GitHub's database id: unique, ascending in time
    author: str | None
    author_association: str
    created_at: str
    body: str
    is_bot: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a thread's timeline that bears on duplicates."""

    kind: str  # closed | reopened | marked_as_duplicate | unmarked_as_duplicate
    actor: str | None
    created_at: str
    target: IssueRef | None = None  # the canonical issue of a mark, or of a closing as duplicate
    target_is_pull: bool = False
    state_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Thread:
    """An issue with its comments and events, each in order of time."""

    issue: Issue
    comments: tuple[Comment, ...] = ()
    events: tuple[Event, ...] = ()


class Relation(StrEnum):
    """How an issue hangs together with the one that it was closed for, as the closing words say."""

    DUPLICATE = "duplicate"  # marked so by the tracker, or called so
    SAME = "same"  # "same issue as #1", "this is #1"
    REPORTED = "reported"  # "already reported as #1", "known issue #1"
    SUPERSEDED = "superseded"  # "in favour of #1", "subsumed by #1", "moved to #1"
    TRACKED = "tracked"  # "tracked in #1", "covered by #1"
    PART_OF = "part-of"  # "part of #1", "a special case of #1"


class VerdictOutcome(StrEnum):
    """What a thread says about its issue."""

    DUPLICATE = "duplicate"
    NOT = "not"
    UNCERTAIN = "uncertain"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One statement for or against, with its place, so that a verdict can be explained."""

    kind: str  # the signal, e.g. marked_event, closer_comment, maintainer_comment, label, reopened, disputed
    url: str
    who: str | None
    when: str
    targets: tuple[IssueRef, ...] = ()
    said: str = ""  # the words that matched, at most 200 characters


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision on one issue and why it was taken."""

    ref: IssueRef
    outcome: VerdictOutcome
    targets: tuple[IssueRef, ...]  # the canonical issues; for `uncertain` the likely ones
    confidence: float  # in [0, 1]
    reason: str  # a short code, counted in statistics.json
    evidence: tuple[Evidence, ...] = ()
    relation: Relation = Relation.DUPLICATE  # of the issue to its targets; says nothing where there are none


@dataclass(frozen=True, slots=True)
class DuplicateCluster:
    """Issues that are all about the same thing, collapsed from the verdicts' edges by union-find."""

    id: str  # "owner/name#lowest number"
    members: tuple[IssueRef, ...]  # ascending by number
    canonical: IssueRef  # the member that the others were closed for
    edges: tuple[tuple[IssueRef, IssueRef], ...]  # (duplicate, target), as the verdicts said


@dataclass(frozen=True, slots=True)
class IssueText:
    """The rendered text of one issue; `removed` counts what the rendering took out, by kind."""

    ref: IssueRef
    text: str
    created_at: str
    removed: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Grounds:
    """On what an issue counts as closed for another."""

    relation: Relation
    reason: str  # the verdict's
    confidence: float  # the verdict's, in [0, 1]
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True)
class IssuePair:
    """One row of the dataset before its texts are put in: label 1 means duplicates."""

    first: IssueRef
    second: IssueRef
    label: int  # 0 | 1
    cluster: str  # the duplicate cluster of a positive ("owner/name#lowest"); empty for a negative
    grounds: Grounds | None = None  # None for a negative, and for two issues that a third ties together
    negative_kind: str = ""  # random | hard, for a negative


class DroppedPair(NamedTuple):
    """A pair that was considered and left out, and why."""

    first: IssueRef
    second: IssueRef
    label: int
    reason: str  # a short code, counted in statistics.json
