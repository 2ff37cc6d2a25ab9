"""What the emulator holds, as the GraphQL schema names it: plain dicts, which the executor walks fastest."""

from __future__ import annotations

import zlib
from typing import Any

from gis_builder._emulator.tracker import Account, Comment, Event, Issue, Repository

Node = dict[str, Any]
_TYPE_OF_EVENT = {
    "closed": "ClosedEvent",
    "reopened": "ReopenedEvent",
    "marked_as_duplicate": "MarkedAsDuplicateEvent",
    "unmarked_as_duplicate": "UnmarkedAsDuplicateEvent",
}
ITEM_TYPE_OF_EVENT = {
    "closed": "CLOSED_EVENT",
    "reopened": "REOPENED_EVENT",
    "marked_as_duplicate": "MARKED_AS_DUPLICATE_EVENT",
    "unmarked_as_duplicate": "UNMARKED_AS_DUPLICATE_EVENT",
}


def actor_node(account: Account | None) -> Node | None:
    """An account; a bot's login lacks the `[bot]` that REST shows."""
    if account is None:
        return None
    login = account.login.removesuffix("[bot]") if account.kind == "Bot" else account.login
    return {
        "__typename": account.kind,
        "id": f"U_{login}",
        "login": login,
        "url": f"https://github.com/{login}",
    }


def repository_node(repository: Repository) -> Node:
    """A repository; `_repository` is for the resolvers of its further fields."""
    owner, _, name = repository.name.partition("/")
    tracker = repository.tracker
    first = next(iter(tracker.issues.values()), None)
    return {
        "__typename": "Repository",
        "_repository": repository,
        "id": repository_node_id(repository),
        "databaseId": repository.id,
        "name": name,
        "nameWithOwner": repository.name,
        "owner": actor_node(Account(owner, "Organization")),
        "description": tracker.info.get("description"),
        "url": f"https://github.com/{repository.name}",
        "createdAt": tracker.info.get("created_at")
        or (first.created_at if first else "2010-01-01T00:00:00Z"),
        "hasIssuesEnabled": repository.has_issues,
        "isArchived": tracker.flag("archived"),
        "isDisabled": tracker.flag("disabled"),
        "isEmpty": tracker.flag("empty"),
        "isFork": tracker.flag("fork"),
        "isPrivate": False,
    }


def issue_node(repository: Repository, issue: Issue) -> Node:
    """An issue or a pull request; `_repository` and `_issue` are for the resolvers of its further fields."""
    unique_id = repository.unique_id(issue.id)
    state = "MERGED" if issue.is_merged else issue.state.upper()
    return {
        "__typename": "PullRequest" if issue.is_pull else "Issue",
        "_repository": repository,
        "_issue": issue,
        "id": issue_node_id(repository, issue),
        "databaseId": unique_id,
        "fullDatabaseId": str(unique_id),
        "number": issue.number,
        "title": issue.title,
        "body": issue.body or "",
        "url": repository.url(issue.number, is_pull=issue.is_pull),
        "state": state,
        "closed": issue.state == "closed",
        "merged": issue.is_merged,
        "createdAt": issue.created_at,
        "updatedAt": issue.updated_at,
        "closedAt": issue.closed_at,
        "author": actor_node(issue.author),
        "authorAssociation": issue.association,
    }


def comment_node(repository: Repository, issue: Issue, comment: Comment) -> Node:
    """A comment."""
    unique_id = repository.unique_id(comment.id)
    return {
        "__typename": "IssueComment",
        "id": f"IC_{repository.id}_{issue.number}_{unique_id}",
        "databaseId": unique_id,
        "fullDatabaseId": str(unique_id),
        "author": actor_node(comment.author),
        "authorAssociation": comment.association,
        "createdAt": comment.created_at,
        "updatedAt": comment.updated_at,
        "body": comment.body or "",
        "url": f"{repository.url(issue.number, is_pull=issue.is_pull)}#issuecomment-{unique_id}",
    }


def event_node(repository: Repository, issue: Issue, event: Event) -> Node:
    """An event; `_canonical` is for the resolvers that follow it."""
    reason = event.state_reason.upper() if event.state_reason else None
    is_duplicate = event.kind == "closed" and event.state_reason == "duplicate"
    canonical = issue.canonical if is_duplicate else event.canonical
    return {
        "__typename": _TYPE_OF_EVENT[event.kind],
        "_repository": repository,
        "_issue": issue,
        "_canonical": canonical,
        "id": event_node_id(repository, issue, event),
        "actor": actor_node(event.actor),
        "createdAt": event.created_at,
        "stateReason": "REOPENED" if event.kind == "reopened" else reason,
    }


def label_node(name: str) -> Node:
    """A label; the dump keeps its name only."""
    return {
        "__typename": "Label",
        "id": f"LA_{zlib.crc32(name.encode()):08x}",
        "name": name,
        "color": "ededed",
        "description": None,
    }


def repository_node_id(repository: Repository) -> str:
    """The global id of a repository."""
    return f"R_{repository.id}"


def issue_node_id(repository: Repository, issue: Issue) -> str:
    """The global id of an issue or pull request."""
    return f"{'PR' if issue.is_pull else 'I'}_{repository.id}_{issue.number}"


def event_node_id(repository: Repository, issue: Issue, event: Event) -> str:
    """The global id of an event."""
    return f"EV_{repository.id}_{issue.number}_{issue.events.index(event)}"
