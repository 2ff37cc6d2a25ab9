"""Converts GitHub's REST objects, from the API or a dump, to records."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from gis_builder.store import Comment, Event, Issue, IssueRef
from gis_builder.store.decoding import (
    EVENT_KINDS,
    Count,
    Id,
    Login,
    Malformed,
    Node,
    Number,
    Reference,
    Time,
    Word,
    stamp,
    stamp_or_none,
    whole_text,
)

_GHOST = "ghost"  # REST's author of texts by deleted accounts, Gitea's "Ghost"; GraphQL returns null
_BOT = "[bot]"  # REST's suffix of a bot's login; GraphQL omits it
Url = Annotated[str, Meta(max_length=2000)]


class Account(Node):
    """A user or bot."""

    login: Login
    type: str | None = None


class Label(Node):
    """A label."""

    name: str


class _PullLinks(Node):
    """The links of a pull request. In 2012 every issue had them, but only pull requests had values."""

    url: Url | None = None
    html_url: Url | None = ""  # not null: Gitea's pull requests can lack both links


class IssueObject(Node):
    """An issue; a pull request if `pull_request` has a value."""

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
    comments: Count | list[object] | None = None  # only checked
    pull_request: _PullLinks | None = None
    repository_url: Url | None = None

    @property
    def is_pull(self) -> bool:
        """Whether it is a pull request."""
        links = self.pull_request
        return links is not None and (
            links.url is not None or links.html_url is not None
        )


class CommentObject(Node):
    """A comment of an issue or pull request."""

    id: Id
    created_at: Time
    body: str | None = None
    user: Account | None = None
    author_association: Word | None = None
    issue_url: Url | None = None  # empty for a pull request of Gitea
    pull_request_url: Url | None = None


class EventObject(Node):
    """An event. Kinds that we ignore may lack every other field."""

    event: str | None = None
    created_at: Time | None = None
    actor: Account | None = None
    state_reason: Word | None = None
    canonical: Reference | None = None  # only in dumps
    issue_url: Url | None = None


def issue_record(repo: str, item: IssueObject) -> Issue:
    """Convert an issue or pull request; lists of issues lack `closed_by`, which the closing event has."""
    labels = {whole_text(label.name) for label in item.labels or ()}
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
        # A reopened issue still names the account that once closed it.
        closed_by=account_name(item.closed_by) if item.closed_at else None,
        is_pull=item.is_pull,
        is_bot=is_bot(item.user),
        labels=tuple(sorted(labels)),
    )


def comment_record(item: CommentObject) -> Comment:
    """Convert a comment."""
    return Comment(
        id=item.id,
        author=account_name(item.user),
        author_association=item.author_association or "NONE",
        created_at=stamp(item.created_at),
        body=whole_text(item.body),
        is_bot=is_bot(item.user),
    )


def event_record(item: EventObject) -> Event:
    """Convert an event of a kind that can concern duplicates."""
    if item.event not in EVENT_KINDS:
        raise Malformed(f"event: expected one of {', '.join(EVENT_KINDS)}")
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
    """Parse a `Reference`."""
    repo, _, number = text.partition("#")
    return IssueRef(repo, int(number))


def account_name(account: Account | None) -> str | None:
    """The login as in GraphQL; None for deleted accounts, so that two of them don't count as one person."""
    if account is None or account.login.lower() == _GHOST:
        return None
    return account.login.removesuffix(_BOT)


def is_bot(account: Account | None) -> bool:
    """Whether an account is a bot."""
    return account is not None and (
        account.type == "Bot" or account.login.endswith(_BOT)
    )
