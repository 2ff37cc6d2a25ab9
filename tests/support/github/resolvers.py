"""Resolvers of the GraphQL schema: plain dicts, which the executor reads fastest.

A field is a value, or a function that the executor calls with the field's arguments.
"""

import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial

from graphql import FieldNode

from tests.support.github.limits import Quota
from tests.support.github.search import REACHABLE, Search, SearchRefusal
from tests.support.github.trackers import Catalogue

MAX_PAGE = 100
_COUNTS = {"totalCount", "issueCount"}  # need no first or last
_TYPES = {
    "closed": "ClosedEvent",
    "reopened": "ReopenedEvent",
    "marked_as_duplicate": "MarkedAsDuplicateEvent",
    "unmarked_as_duplicate": "UnmarkedAsDuplicateEvent",
}


class GraphQLRefusal(Exception):  # noqa: N818 - it becomes one entry of an answer's `errors`
    """One field can't be resolved; `kind` is GitHub's `type` of the error."""

    def __init__(self, kind, message):
        self.kind = kind
        super().__init__(message)


@dataclass(frozen=True)
class Context:
    """What resolvers need besides the arguments of a field."""

    catalogue: Catalogue
    search: Search
    sees_repositories: bool  # False if the token has no access
    points: int
    nodes: int
    quota: Quota  # after this query


def connection(
    info,
    items,
    render,
    *,
    reachable=None,
    first=None,
    last=None,
    after=None,
    before=None,
):
    """A Relay connection over the first `reachable` items."""
    _check_size(info, first, last)
    total = len(items) if reachable is None else min(len(items), reachable)
    low = 0 if after is None else min(total, _position(after) + 1)
    high = total if before is None else max(low, min(total, _position(before)))
    start, stop = (
        (low, min(high, low + (first or 0)))
        if last is None
        else (max(low, high - last), high)
    )
    return {
        "totalCount": len(items),
        "pageInfo": {
            "hasNextPage": stop < total,
            "hasPreviousPage": start > 0,
            "startCursor": encode_cursor(start) if stop > start else None,
            "endCursor": encode_cursor(stop - 1) if stop > start else None,
        },
        "nodes": [render(item) for item in items[start:stop]],
    }


def encode_cursor(position):
    """The cursor of the item at `position`, as opaque as GitHub's."""
    return base64.b64encode(f"cursor:v2:{position}".encode()).decode()


def _position(cursor):
    try:
        return int(
            base64.b64decode(cursor, validate=True).decode().removeprefix("cursor:v2:")
        )
    except (binascii.Error, ValueError):
        words = f"`{cursor}` does not appear to be a valid cursor."
        raise GraphQLRefusal("INVALID_CURSOR_ARGUMENTS", words) from None


def _check_size(info, first, last):
    name = info.field_name
    for argument, size in (("first", first), ("last", last)):
        if size is not None and not 0 <= size <= MAX_PAGE:
            raise GraphQLRefusal(
                "EXCESSIVE_PAGINATION",
                f"Requesting {size} records on the `{name}` connection exceeds the `{argument}` limit of "
                f"{MAX_PAGE} records.",
            )
    if first is None and last is None and not _asked(info) <= _COUNTS:
        raise GraphQLRefusal(
            "MISSING_PAGINATION_BOUNDARIES",
            f"You must provide a `first` or `last` value to properly paginate the `{name}` connection.",
        )


def _asked(info):
    chosen = [node.selection_set for node in info.field_nodes if node.selection_set]
    return {
        member.name.value if isinstance(member, FieldNode) else "…"
        for one in chosen
        for member in one.selections
    }


def _actor(account):
    """An account; a bot's login lacks the `[bot]` that REST shows."""
    if account is None:
        return None
    login = (
        account.login.removesuffix("[bot]") if account.kind == "Bot" else account.login
    )
    return {"__typename": account.kind, "login": login}


def _repository_node(repository):
    first = next(iter(repository.issues.values()), None)
    born = first.created_at if first else "2010-01-01T00:00:00Z"
    return {
        "__typename": "Repository",
        "nameWithOwner": repository.name,
        "createdAt": repository.info.get("created_at") or born,
        "hasIssuesEnabled": repository.has_issues,
        "isPrivate": False,
        "issueOrPullRequest": partial(_by_number, repository),
        "issues": partial(_issues, repository),
        "pullRequests": partial(_pull_requests, repository),
        "labels": partial(_labels, repository),
    }


def _issue_node(repository, issue):
    return {
        "__typename": "PullRequest" if issue.is_pull else "Issue",
        "number": issue.number,
        "title": issue.title,
        "body": issue.body or "",
        "state": issue.state.upper(),
        "closed": issue.state == "closed",
        "createdAt": issue.created_at,
        "updatedAt": issue.updated_at,
        "closedAt": issue.closed_at,
        "author": _actor(issue.author),
        "authorAssociation": issue.association,
        "repository": lambda _info: _repository_node(repository),
        "labels": lambda info, **page: connection(
            info, issue.labels, _label_node, **page
        ),
        "comments": lambda info, **page: connection(
            info, issue.comments, _comment_node, **page
        ),
        "timelineItems": partial(_timeline, issue),
        "stateReason": partial(_state_reason, issue),
        "duplicateOf": partial(_duplicate_of, issue),
    }


def _comment_node(comment):
    return {
        "fullDatabaseId": str(comment.id),
        "author": _actor(comment.author),
        "authorAssociation": comment.association,
        "createdAt": comment.created_at,
        "body": comment.body or "",
    }


def _label_node(name):
    return {"name": name}


def _event_node(issue, event):
    is_duplicate = event.kind == "closed" and event.state_reason == "duplicate"
    target = partial(_follow, issue.canonical if is_duplicate else event.canonical)
    return {
        "__typename": _TYPES[event.kind],
        "actor": _actor(event.actor),
        "createdAt": event.created_at,
        "stateReason": event.state_reason.upper() if event.state_reason else None,
        "canonical": target,
        "duplicateOf": target,
    }


def _issues(
    repository,
    info,
    *,
    filterBy=None,  # noqa: N803 - GitHub's names, here and below
    orderBy=None,  # noqa: N803
    **page,
):
    since = (filterBy or {}).get("since", "")
    listed = _listed(repository, is_pull=False, **_order(orderBy))
    found = [issue for issue in listed if issue.updated_at >= since]
    return connection(
        info,
        found if repository.has_issues else [],
        partial(_issue_node, repository),
        **page,
    )


def _pull_requests(
    repository,
    info,
    *,
    orderBy=None,  # noqa: N803
    **page,
):
    found = _listed(repository, is_pull=True, **_order(orderBy))
    return connection(info, found, partial(_issue_node, repository), **page)


def _order(order):
    order = order or {}
    return {
        "by_update": order.get("field") == "UPDATED_AT",
        "descending": order.get("direction") == "DESC",
    }


@lru_cache(32)
def _listed(repository, *, is_pull, by_update, descending):
    return sorted(
        (issue for issue in repository.issues.values() if issue.is_pull is is_pull),
        key=lambda issue: (
            issue.updated_at if by_update else issue.created_at,
            issue.number,
        ),
        reverse=descending,
    )


def _labels(repository, info, *, query="", **page):
    """The labels in use, those whose name contains `query`."""
    used = {label for issue in repository.issues.values() for label in issue.labels}
    return connection(
        info, sorted(n for n in used if query.lower() in n.lower()), _label_node, **page
    )


def _timeline(issue, info, *, itemTypes, **page):  # noqa: N803
    events = [
        event for event in issue.events if f"{event.kind.upper()}_EVENT" in itemTypes
    ]
    return connection(info, events, partial(_event_node, issue), **page)


def _state_reason(issue, _info, *, enableDuplicate=False):  # noqa: N803
    """The state reason; NOT_PLANNED for a duplicate unless `enableDuplicate` is set."""
    if issue.state_reason == "duplicate" and not enableDuplicate:
        return "NOT_PLANNED"
    return issue.state_reason.upper() if issue.state_reason else None


def _duplicate_of(issue, info):
    """The issue that a closed issue is marked as a duplicate of; null for a pull request."""
    found = _follow(issue.canonical, info)
    return found if found and found["__typename"] == "Issue" else None


def _follow(reference, info):
    target = info.context.catalogue.follow(reference) if reference else None
    return _issue_node(*target) if target else None


def _by_number(repository, info, number):
    """The issue with this number; for a transferred issue, the one in its new repository."""
    target = info.context.catalogue.follow(f"{repository.name}#{number}")
    if target is None:
        words = f"Could not resolve to an issue or pull request with the number of {number}."
        raise GraphQLRefusal("NOT_FOUND", words)
    return _issue_node(*target)


def _rate_limit(info):
    context = info.context
    reset = datetime.fromtimestamp(context.quota.reset, UTC)
    return {
        "cost": context.points,
        "nodeCount": context.nodes,
        "limit": context.quota.limit,
        "used": context.quota.used,
        "remaining": context.quota.remaining,
        "resetAt": f"{reset:%Y-%m-%dT%H:%M:%SZ}",
    }


def _repository(info, owner, name, *, followRenames=True):  # noqa: N803
    context = info.context
    found = context.catalogue.find(f"{owner}/{name}", follow_renames=followRenames)
    if found is None or not context.sees_repositories:
        words = f"Could not resolve to a Repository with the name '{owner}/{name}'."
        raise GraphQLRefusal("NOT_FOUND", words)
    return _repository_node(found)


def _search(info, query, type, **page):  # noqa: A002
    context = info.context
    try:
        hits = context.search.run(query) if context.sees_repositories else []
    except SearchRefusal as refusal:
        raise GraphQLRefusal("INVALID", str(refusal)) from refusal
    found = connection(
        info, hits, lambda hit: _issue_node(*hit), reachable=REACHABLE, **page
    )
    return {**found, "issueCount": len(hits)}


ROOT = {
    "rateLimit": _rate_limit,
    "viewer": {"__typename": "User", "login": "test-user"},
    "repository": _repository,
    "search": _search,
}
