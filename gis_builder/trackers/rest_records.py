"""GitHub's REST objects (of the API, or of a dump) to records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from msgspec import UNSET, Meta, UnsetType

from gis_builder.store.decoding import (
    EVENT_KINDS,
    MOST_NUMBER,
    Count,
    Id,
    Login,
    Malformed,
    Node,
    Number,
    Reference,
    RepoName,
    Time,
    Word,
    convert,
    stamp,
    stamp_or_none,
    whole_text,
)
from gis_builder.store.records import Comment, Event, Issue, IssueRef

_GHOST = "ghost"  # whom REST names in place of every deleted account; GraphQL names nobody
_BOT = "[bot]"  # how REST ends a bot's login; GraphQL leaves it off

_REPO = re.compile(r"/repos/([A-Za-z0-9._-]+/[A-Za-z0-9._-]+)/?")
_ISSUE = re.compile(r"/issues/([0-9]{1,10})")
Url = Annotated[str, Meta(max_length=2000)]


class Account(Node, frozen=True):
    """Who did something."""

    login: Login
    type: str | None = None


class Label(Node, frozen=True):
    """A label."""

    name: str


class _Present(Node, frozen=True):
    """What is only looked for."""


class IssueObject(Node, frozen=True):
    """An issue or, where it has the key `pull_request`, a pull request."""

    number: Number
    title: str
    state: Literal["open", "closed"]
    created_at: Time
    updated_at: Time
    body: str | None = None
    state_reason: Word | None = None
    user: Account | None = None
    author_association: Word | None = None
    closed_at: Time | None = None
    closed_by: Account | None = None
    labels: list[Label] | None = None
    comments: Count = 1
    pull_request: _Present | UnsetType | None = UNSET
    repository_url: Url | None = None

    @property
    def is_pull(self) -> bool:
        """Whether it is a pull request."""
        return self.pull_request is not UNSET


class _Home(Node, frozen=True):
    url: Url


class CommentObject(Node, frozen=True):
    """A comment of an issue or pull request."""

    id: Id
    created_at: Time
    body: str | None = None
    user: Account | None = None
    author_association: Word | None = None
    issue_url: Url | None = None


class EventObject(Node, frozen=True):
    """An event; those of other kinds than ours may lack all else."""

    event: str | None = None
    id: Id | None = None
    created_at: Time | None = None
    actor: Account | None = None
    state_reason: Word | None = None
    canonical: Reference | None = None  # a dump's own
    issue_url: Url | None = None
    issue: _Home | None = None


class RepoObject(Node, frozen=True):
    """A repository."""

    full_name: RepoName
    private: bool = False
    has_issues: bool = True
    created_at: Time | None = None


Taken = TypeVar("Taken", bound=Node)
Given = Mapping[str, Any]


def issue_record(repo: str, value: IssueObject | Given) -> Issue:
    """An issue or pull request; the list of issues has no `closed_by`, which the closing event then tells."""
    item = _taken(value, IssueObject)
    return Issue(
        repo=repo,
        number=item.number,
        title=whole_text(item.title),
        body=whole_text(item.body),
        state=item.state,
        state_reason=item.state_reason,
        author=account_name(item.user),
        author_association=item.author_association or "NONE",
        created_at=stamp(item.created_at),
        updated_at=stamp(item.updated_at),
        closed_at=stamp_or_none(item.closed_at),
        # What was reopened keeps the name of who once closed it.
        closed_by=account_name(item.closed_by) if item.closed_at else None,
        is_pull=item.is_pull,
        is_bot=is_bot(item.user),
        labels=tuple(sorted({whole_text(label.name) for label in item.labels or ()})),
    )


def title_only(pull: Issue) -> Issue:
    """What is kept of a pull request: it is no issue, and that is what is asked of it."""
    return Issue(
        repo=pull.repo,
        number=pull.number,
        title=pull.title,
        body="",
        state=pull.state,
        state_reason=None,
        author=None,
        author_association="NONE",
        created_at=pull.created_at,
        updated_at=pull.updated_at,
        closed_at=None,
        closed_by=None,
        is_pull=True,
    )


def comment_record(value: CommentObject | Given) -> Comment:
    """A comment of an issue."""
    item = _taken(value, CommentObject)
    return Comment(
        id=item.id,
        author=account_name(item.user),
        author_association=item.author_association or "NONE",
        created_at=stamp(item.created_at),
        body=whole_text(item.body),
        is_bot=is_bot(item.user),
    )


def event_record(value: EventObject | Given) -> Event | None:
    """An event of the kinds that bear on duplicates; None for another."""
    item = _taken(value, EventObject)
    if item.event not in EVENT_KINDS:
        return None
    if item.created_at is None:
        raise Malformed("created_at: missing")
    return Event(
        kind=item.event,
        actor=account_name(item.actor),
        created_at=stamp(item.created_at),
        target=reference(item.canonical) if item.canonical else None,
        state_reason=item.state_reason if item.event == "closed" else None,
    )


def reference(text: str) -> IssueRef:
    """The issue that a `decoding.Reference` names."""
    home, _, number = text.partition("#")
    return IssueRef(home, _in_range(int(number)))


def _taken(value: Taken | Given, kind: type[Taken]) -> Taken:
    return value if isinstance(value, kind) else convert(value, kind)


def _in_range(number: int) -> int:
    if not 1 <= number <= MOST_NUMBER:
        raise Malformed(f"a number beyond {MOST_NUMBER}")
    return number


def account_name(account: Account | None) -> str | None:
    """The account's name as GraphQL gives it; None where it is gone, lest two such pass for one person."""
    if account is None or account.login == _GHOST:
        return None
    return account.login.removesuffix(_BOT)


def is_bot(account: Account | None) -> bool:
    """Whether an account is a bot's."""
    return account is not None and (account.type == "Bot" or account.login.endswith(_BOT))
