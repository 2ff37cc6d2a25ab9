"""How the fields of the schema find their values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from graphql import GraphQLResolveInfo

from gis_builder._emulator.connections import connection
from gis_builder._emulator.cost import Price
from gis_builder._emulator.errors import GraphQLRefusal, NothingToSearch, SearchRefusal
from gis_builder._emulator.limits import Standing
from gis_builder._emulator.listing import Choice, Listing
from gis_builder._emulator.nodes import (
    ITEM_TYPE_OF_EVENT,
    Node,
    comment_node,
    event_node,
    issue_node,
    label_node,
    repository_node,
)
from gis_builder._emulator.search import REACHABLE, Hit, Search
from gis_builder._emulator.tracker import Catalogue, Comment, Event, Issue, Repository

_NUMBERS_IN_ID = {"R": 1, "I": 2, "PR": 2, "IC": 3}  # repository, number of the issue, id of the comment
_SORT_OF_FIELD = {"CREATED_AT": "created", "UPDATED_AT": "updated", "COMMENTS": "comments"}


@dataclass(frozen=True)
class Context:
    """What the resolvers of one request know besides the fields' arguments."""

    catalogue: Catalogue
    search: Search
    listing: Listing
    login: str
    sees_repositories: bool  # False: the token may read none of them
    follows_transfers: bool
    price: Price
    standing: Standing  # towards the token's limit, this query included


def resolve_rate_limit(_source: None, info: GraphQLResolveInfo[Context], **_arguments: bool) -> Node:
    """What the query costs and what is left."""
    context: Context = info.context
    reset = datetime.fromtimestamp(context.standing.reset, UTC)
    return {
        "cost": context.price.points,
        "nodeCount": context.price.nodes,
        "limit": context.standing.limit,
        "used": context.standing.used,
        "remaining": context.standing.remaining,
        "resetAt": f"{reset:%Y-%m-%dT%H:%M:%SZ}",
    }


def resolve_viewer(_source: None, info: GraphQLResolveInfo[Context]) -> Node:
    """Whose token it is."""
    login = info.context.login
    return {"__typename": "User", "id": f"U_{login}", "login": login, "url": f"https://github.com/{login}"}


def resolve_repository(
    _source: None,
    info: GraphQLResolveInfo[Context],
    owner: str,
    name: str,
    *,
    followRenames: bool = True,  # noqa: N803
) -> Node:
    """A repository by its name, former names included unless told otherwise."""
    context: Context = info.context
    found = context.catalogue.find(f"{owner}/{name}", follow_renames=followRenames)
    if found is None or not context.sees_repositories:
        raise GraphQLRefusal(
            "NOT_FOUND", f"Could not resolve to a Repository with the name '{owner}/{name}'."
        )
    return repository_node(found)


def resolve_search(
    _source: None,
    info: GraphQLResolveInfo[Context],
    query: str,
    type: str,  # noqa: A002 - GitHub's name
    **page: Any,
) -> Node:
    """Issue search; the other kinds of search find nothing here."""
    context: Context = info.context
    hits: list[Hit] = []
    if type == "ISSUE" and context.sees_repositories:
        try:
            hits = context.search.run(query)
        except NothingToSearch:
            hits = []
        except SearchRefusal as refusal:
            raise GraphQLRefusal("INVALID", str(refusal)) from refusal
    found = connection(info, hits, lambda hit: issue_node(*hit), page, reachable=REACHABLE)
    return {**found, "issueCount": len(hits)}


def resolve_node(_source: None, info: GraphQLResolveInfo[Context], id: str) -> Node:  # noqa: A002 - GitHub's name
    """A repository, issue, pull request or comment by its global id."""
    node = _node(info.context, id)
    if node is None:
        raise GraphQLRefusal("NOT_FOUND", f"Could not resolve to a node with the global id of '{id}'")
    return node


def resolve_nodes(
    _source: None, info: GraphQLResolveInfo[Context], ids: list[str]
) -> list[Node | GraphQLRefusal]:
    """Several nodes by id; an unknown one is null with an error, the others answer."""
    return [
        _node(info.context, id_)
        or GraphQLRefusal("NOT_FOUND", f"Could not resolve to a node with the global id of '{id_}'")
        for id_ in ids
    ]


def resolve_issue(source: Node, info: GraphQLResolveInfo[Context], number: int) -> Node:
    """An issue by its number."""
    return _by_number(source, info, number, "an Issue", lambda issue: not issue.is_pull)


def resolve_pull_request(source: Node, info: GraphQLResolveInfo[Context], number: int) -> Node:
    """A pull request by its number."""
    return _by_number(source, info, number, "a PullRequest", lambda issue: issue.is_pull)


def resolve_issue_or_pull_request(source: Node, info: GraphQLResolveInfo[Context], number: int) -> Node:
    """Whatever has this number."""
    return _by_number(source, info, number, "an issue or pull request", lambda _issue: True)


def resolve_issues(source: Node, info: GraphQLResolveInfo[Context], **arguments: Any) -> Node:
    """The issues of a repository."""
    repository: Repository = source["_repository"]
    filters = arguments.get("filterBy") or {}
    order = arguments.get("orderBy") or {}
    creator = filters.get("createdBy")
    choice = Choice(
        kinds=frozenset({"issue"}),
        states=_lower(arguments.get("states") or filters.get("states")),
        any_label=_lower(arguments.get("labels") or filters.get("labels")),
        since=filters.get("since"),
        creator=creator.lower() if creator else None,
        sort=_SORT_OF_FIELD[order.get("field", "CREATED_AT")],
        descending=order.get("direction") == "DESC",
    )
    issues = info.context.listing.issues(repository.tracker, choice) if repository.has_issues else []
    return connection(info, issues, lambda issue: issue_node(repository, issue), arguments)


def resolve_pull_requests(source: Node, info: GraphQLResolveInfo[Context], **arguments: Any) -> Node:
    """The pull requests of a repository."""
    repository: Repository = source["_repository"]
    order = arguments.get("orderBy") or {}
    choice = Choice(
        kinds=frozenset({"pull"}),
        states=_lower(arguments.get("states")),
        any_label=_lower(arguments.get("labels")),
        sort=_SORT_OF_FIELD[order.get("field", "CREATED_AT")],
        descending=order.get("direction") == "DESC",
    )
    pulls = info.context.listing.issues(repository.tracker, choice)
    return connection(info, pulls, lambda pull: issue_node(repository, pull), arguments)


def resolve_repository_labels(
    source: Node, info: GraphQLResolveInfo[Context], *, query: str | None = None, **page: Any
) -> Node:
    """The labels in use, those whose name contains `query`."""
    labels = source["_repository"].tracker.labels
    found = [label for label in labels if query is None or query.lower() in label.lower()]
    return connection(info, found, label_node, page)


def resolve_labels(source: Node, info: GraphQLResolveInfo[Context], **page: Any) -> Node:
    """The labels of an issue."""
    return connection(info, source["_issue"].labels, label_node, page)


def resolve_comments(source: Node, info: GraphQLResolveInfo[Context], **page: Any) -> Node:
    """The comments of an issue, oldest first."""
    repository, issue = source["_repository"], source["_issue"]
    return connection(info, issue.comments, lambda comment: comment_node(repository, issue, comment), page)


def resolve_timeline(
    source: Node,
    info: GraphQLResolveInfo[Context],
    *,
    itemTypes: list[str] | None = None,  # noqa: N803 - GitHub's name
    since: str | None = None,
    skip: int | None = None,
    **page: Any,
) -> Node:
    """What happened to an issue, oldest first."""
    repository: Repository = source["_repository"]
    issue: Issue = source["_issue"]
    items: list[Event | Comment] = [
        event for event in issue.events if itemTypes is None or ITEM_TYPE_OF_EVENT[event.kind] in itemTypes
    ]
    if itemTypes is None or "ISSUE_COMMENT" in itemTypes:
        items = sorted([*items, *issue.comments], key=lambda item: item.created_at)
    kept = [item for item in items if since is None or item.created_at >= since][skip or 0 :]

    def render(item: Event | Comment) -> Node:
        if isinstance(item, Event):
            return event_node(repository, issue, item)
        return comment_node(repository, issue, item)

    return connection(info, kept, render, page)


def resolve_state_reason(
    source: Node,
    _info: GraphQLResolveInfo[Context],
    *,
    enableDuplicate: bool | None = False,  # noqa: N803
) -> str | None:
    """Why an issue is in its state. Who did not ask for duplicates is told NOT_PLANNED."""
    reason: str | None = source["_issue"].state_reason
    if reason == "duplicate" and not enableDuplicate:
        return "NOT_PLANNED"
    return reason.upper() if reason else None


def resolve_own_repository(source: Node, _info: GraphQLResolveInfo[Context]) -> Node:
    """The repository that an issue is in."""
    return repository_node(source["_repository"])


def resolve_canonical(source: Node, info: GraphQLResolveInfo[Context]) -> Node | None:
    """What an event names as the canonical issue; null where it is gone or can't be seen."""
    return _follow(source, info, source["_canonical"])


def resolve_duplicate(source: Node, _info: GraphQLResolveInfo[Context]) -> Node:
    """The issue that an event marked."""
    return issue_node(source["_repository"], source["_issue"])


def resolve_is_cross_repository(source: Node, _info: GraphQLResolveInfo[Context]) -> bool:
    """Whether the canonical issue is in another repository."""
    name = (source["_canonical"] or "").partition("#")[0]
    return name.lower() not in {"", source["_repository"].tracker.name.lower()}


def resolve_duplicate_of(source: Node, info: GraphQLResolveInfo[Context]) -> Node | None:
    """What a closed issue is marked as a duplicate of; null where that is a pull request."""
    found = _follow(source, info, source["_issue"].canonical)
    return found if found and found["__typename"] == "Issue" else None


def _by_number(
    source: Node, info: GraphQLResolveInfo[Context], number: int, what: str, wanted: Callable[[Issue], bool]
) -> Node:
    repository: Repository = source["_repository"]
    found = repository.issue(number)
    if found is not None and wanted(found):
        return issue_node(repository, found)
    gone = repository.tracker.missing.get(number)
    if gone is not None and gone.to is not None and info.context.follows_transfers:
        target = info.context.catalogue.follow(gone.to, repository)
        if target is not None and wanted(target[1]):
            return issue_node(*target)
    raise GraphQLRefusal("NOT_FOUND", f"Could not resolve to {what} with the number of {number}.")


def _follow(source: Node, info: GraphQLResolveInfo[Context], reference: str | None) -> Node | None:
    target = info.context.catalogue.follow(reference, source["_repository"]) if reference else None
    return issue_node(*target) if target else None


def _node(context: Context, node_id: str) -> Node | None:
    kind, *parts = node_id.split("_")
    if not context.sees_repositories or not all(part.isdecimal() for part in parts):
        return None
    numbers = [int(part) for part in parts]
    if len(numbers) != _NUMBERS_IN_ID.get(kind):
        return None
    repository = context.catalogue.find_id(numbers[0])
    if repository is None or kind == "R":
        return repository_node(repository) if repository else None
    issue = repository.issue(numbers[1])
    if issue is None:
        return None
    if kind == "IC":
        comments = (c for c in issue.comments if repository.unique_id(c.id) == numbers[2])
        return next((comment_node(repository, issue, comment) for comment in comments), None)
    return issue_node(repository, issue) if kind == ("PR" if issue.is_pull else "I") else None


def _lower(values: list[str] | None) -> frozenset[str] | None:
    return frozenset(value.lower() for value in values) if values else None
