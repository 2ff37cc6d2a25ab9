"""A line of GH Archive as a typed event; most are about something else, as their beginning tells."""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta
from msgspec.json import Decoder

from gis_builder._decoding import DecimalId, Id, Malformed, Node, Number, RepoName, Time, Word, decode
from gis_builder._rest_records import Account, CommentObject, IssueObject

# How every line of the archive begins.
_BEGINNING = re.compile(rb'\{"id": ?"([0-9]{1,18})", ?"type": ?"([A-Za-z]{1,50})"')

OF_ISSUES = ("IssuesEvent", "IssueCommentEvent")
OF_PULLS = "PullRequestEvent"
OF_MEMBERS = ("PushEvent", "MemberEvent")


class Repo(Node, frozen=True):
    """Where something happened; the id stays when the name changes."""

    id: Id
    name: RepoName


class Head(Node, frozen=True):
    """What tells an event."""

    id: DecimalId
    type: Word


class _OfIssue(Node, frozen=True):
    action: Word
    issue: IssueObject
    comment: CommentObject | None = None


class IssueEvent(Node, frozen=True):
    """An issue was opened, closed, reopened or commented on."""

    id: DecimalId
    repo: Repo
    created_at: Time
    payload: _OfIssue
    actor: Account | None = None


class _Base(Node, frozen=True):
    language: Annotated[str, Meta(max_length=100)] | None = None


class _Branch(Node, frozen=True):
    repo: _Base | None = None


class _Pull(Node, frozen=True):
    base: _Branch | None = None


class _OfPull(Node, frozen=True):
    number: Number
    pull_request: _Pull | None = None

    @property
    def language(self) -> str:
        """What the repository is mostly written in; empty where it is not said."""
        base = self.pull_request and self.pull_request.base
        return (base and base.repo and base.repo.language) or ""


class PullEvent(Node, frozen=True):
    """Something happened to a pull request."""

    id: DecimalId
    repo: Repo
    created_at: Time
    payload: _OfPull


class _OfMember(Node, frozen=True):
    member: Account | None = None


class MemberEvent(Node, frozen=True):
    """Somebody pushed to a repository, or was made a member of it."""

    id: DecimalId
    repo: Repo
    created_at: Time
    actor: Account
    payload: _OfMember


_HEAD = Decoder(Head)
ISSUE_EVENT, PULL_EVENT, MEMBER_EVENT = Decoder(IssueEvent), Decoder(PullEvent), Decoder(MemberEvent)


def head_of(line: bytes) -> tuple[int, str]:
    """The id and the type of an event.

    Raises:
        Malformed: The line is not the whole of an object with both.
    """
    if not line.rstrip().endswith(b"}"):
        raise Malformed("the line is cut off")
    match = _BEGINNING.match(line)
    if match is not None:
        return int(match[1]), match[2].decode()
    head = decode(line, _HEAD)
    return int(head.id), head.type
