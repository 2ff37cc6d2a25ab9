"""What the emulator holds, as the GraphQL schema names it: plain dicts, which the executor walks fastest.

A field is a value, or a function that the executor calls with the field's arguments.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection
from functools import partial
from typing import Any, TypeAlias

from graphql import GraphQLResolveInfo

from gis_builder._emulator.connections import Node, connection
from gis_builder._emulator.errors import GraphQLRefusal
from gis_builder._emulator.listing import Choice
from gis_builder._emulator.tracker import Account, Comment, Event, Issue, Repository

Info: TypeAlias = GraphQLResolveInfo[Any]

_TYPE_OF_EVENT = {
    "closed": "ClosedEvent",
    "reopened": "ReopenedEvent",
    "marked_as_duplicate": "MarkedAsDuplicateEvent",
    "unmarked_as_duplicate": "UnmarkedAsDuplicateEvent",
}
_ITEM_TYPE_OF_EVENT = {
    "closed": "CLOSED_EVENT",
    "reopened": "REOPENED_EVENT",
    "marked_as_duplicate": "MARKED_AS_DUPLICATE_EVENT",
    "unmarked_as_duplicate": "UNMARKED_AS_DUPLICATE_EVENT",
}
_SORT_OF_FIELD = {"CREATED_AT": "created", "UPDATED_AT": "updated", "COMMENTS": "comments"}


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
    """A repository."""
    owner, _, name = repository.name.partition("/")
    tracker = repository.tracker
    first = next(iter(tracker.issues.values()), None)
    return {
        "__typename": "Repository",
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
        "issue": partial(_by_number, repository, "an Issue", {False}),
        "pullRequest": partial(_by_number, repository, "a PullRequest", {True}),
        "issueOrPullRequest": partial(_by_number, repository, "an issue or pull request", {False, True}),
        "issues": partial(_issues, repository),
        "pullRequests": partial(_pull_requests, repository),
        "labels": partial(_used_labels, repository),
    }


def issue_node(repository: Repository, issue: Issue) -> Node:
    """An issue or a pull request."""
    unique_id = repository.unique_id(issue.id)
    state = "MERGED" if issue.is_merged else issue.state.upper()
    return {
        "__typename": "PullRequest" if issue.is_pull else "Issue",
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
        "repository": lambda _info: repository_node(repository),
        "labels": lambda info, **page: connection(info, issue.labels, label_node, page),
        "comments": partial(_comments, repository, issue),
        "timelineItems": partial(_timeline, repository, issue),
        "stateReason": partial(_state_reason, issue),
        "duplicateOf": partial(_duplicate_of, repository, issue),
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
    """An event."""
    reason = event.state_reason.upper() if event.state_reason else None
    is_duplicate = event.kind == "closed" and event.state_reason == "duplicate"
    canonical = issue.canonical if is_duplicate else event.canonical
    home = (canonical or "").partition("#")[0].lower()
    return {
        "__typename": _TYPE_OF_EVENT[event.kind],
        "id": event_node_id(repository, issue, event),
        "actor": actor_node(event.actor),
        "createdAt": event.created_at,
        "stateReason": "REOPENED" if event.kind == "reopened" else reason,
        "canonical": partial(_follow, repository, canonical),
        "duplicateOf": partial(_follow, repository, canonical),
        "duplicate": lambda _info: issue_node(repository, issue),
        "isCrossRepository": home not in {"", repository.tracker.name.lower()},
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


def _issues(repository: Repository, info: Info, **arguments: Any) -> Node:
    """The issues of a repository."""
    filters = arguments.get("filterBy") or {}
    creator = filters.get("createdBy")
    choice = Choice(
        kinds=frozenset({"issue"}),
        states=_lower(arguments.get("states") or filters.get("states")),
        any_label=_lower(arguments.get("labels") or filters.get("labels")),
        since=filters.get("since"),
        creator=creator.lower() if creator else None,
        **_order(arguments),
    )
    issues = info.context.listing.issues(repository.tracker, choice) if repository.has_issues else []
    return connection(info, issues, partial(issue_node, repository), arguments)


def _pull_requests(repository: Repository, info: Info, **arguments: Any) -> Node:
    """The pull requests of a repository."""
    choice = Choice(
        kinds=frozenset({"pull"}),
        states=_lower(arguments.get("states")),
        any_label=_lower(arguments.get("labels")),
        **_order(arguments),
    )
    pulls = info.context.listing.issues(repository.tracker, choice)
    return connection(info, pulls, partial(issue_node, repository), arguments)


def _order(arguments: dict[str, Any]) -> dict[str, Any]:
    order = arguments.get("orderBy") or {}
    sort = _SORT_OF_FIELD[order.get("field", "CREATED_AT")]
    return {"sort": sort, "descending": order.get("direction") == "DESC"}


def _used_labels(repository: Repository, info: Info, *, query: str | None = None, **page: Any) -> Node:
    """The labels in use, those whose name contains `query`."""
    labels = repository.tracker.labels
    found = [label for label in labels if query is None or query.lower() in label.lower()]
    return connection(info, found, label_node, page)


def _comments(repository: Repository, issue: Issue, info: Info, **page: Any) -> Node:
    """The comments of an issue, oldest first."""
    return connection(info, issue.comments, partial(comment_node, repository, issue), page)


def _timeline(
    repository: Repository,
    issue: Issue,
    info: Info,
    *,
    itemTypes: list[str] | None = None,  # noqa: N803 - GitHub's name
    since: str | None = None,
    skip: int | None = None,
    **page: Any,
) -> Node:
    """What happened to an issue, oldest first."""
    items: list[Event | Comment] = [
        event for event in issue.events if itemTypes is None or _ITEM_TYPE_OF_EVENT[event.kind] in itemTypes
    ]
    if itemTypes is None or "ISSUE_COMMENT" in itemTypes:
        items = sorted([*items, *issue.comments], key=lambda item: item.created_at)
    kept = [item for item in items if since is None or item.created_at >= since][skip or 0 :]

    def render(item: Event | Comment) -> Node:
        if isinstance(item, Event):
            return event_node(repository, issue, item)
        return comment_node(repository, issue, item)

    return connection(info, kept, render, page)


def _state_reason(issue: Issue, _info: Info, *, enableDuplicate: bool | None = False) -> str | None:  # noqa: N803
    """Why an issue is in its state. Who did not ask for duplicates is told NOT_PLANNED."""
    reason = issue.state_reason
    if reason == "duplicate" and not enableDuplicate:
        return "NOT_PLANNED"
    return reason.upper() if reason else None


def _duplicate_of(repository: Repository, issue: Issue, info: Info) -> Node | None:
    """What a closed issue is marked as a duplicate of; null where that is a pull request."""
    found = _follow(repository, issue.canonical, info)
    return found if found and found["__typename"] == "Issue" else None


def _follow(repository: Repository, reference: str | None, info: Info) -> Node | None:
    """What a reference in a text of `repository` means; null where it is gone or can't be seen."""
    target = info.context.catalogue.follow(reference, repository) if reference else None
    return issue_node(*target) if target else None


def _by_number(repository: Repository, what: str, is_pull: Collection[bool], info: Info, number: int) -> Node:
    """What has this number, if it is one of the kinds that are asked for."""
    found = repository.issue(number)
    if found is not None and found.is_pull in is_pull:
        return issue_node(repository, found)
    gone = repository.tracker.missing.get(number)
    if gone is not None and gone.to is not None and info.context.follows_transfers:
        target = info.context.catalogue.follow(gone.to, repository)
        if target is not None and target[1].is_pull in is_pull:
            return issue_node(*target)
    raise GraphQLRefusal("NOT_FOUND", f"Could not resolve to {what} with the number of {number}.")


def _lower(values: list[str] | None) -> frozenset[str] | None:
    return frozenset(value.lower() for value in values) if values else None
