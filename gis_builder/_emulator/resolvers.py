"""The fields that a query begins with, and what answers them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from gis_builder._emulator.connections import Node, connection
from gis_builder._emulator.cost import Price
from gis_builder._emulator.errors import GraphQLRefusal, NothingToSearch, SearchRefusal
from gis_builder._emulator.limits import Standing
from gis_builder._emulator.listing import Listing
from gis_builder._emulator.nodes import Info, comment_node, issue_node, repository_node
from gis_builder._emulator.search import REACHABLE, Hit, Search
from gis_builder._emulator.tracker import Catalogue

_NUMBERS_IN_ID = {"R": 1, "I": 2, "PR": 2, "IC": 3}  # repository, number of the issue, id of the comment


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


def _rate_limit(info: Info, **_arguments: bool) -> Node:
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


def _viewer(info: Info) -> Node:
    """Whose token it is."""
    login = info.context.login
    return {"__typename": "User", "id": f"U_{login}", "login": login, "url": f"https://github.com/{login}"}


def _repository(
    info: Info,
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


def _search(
    info: Info,
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


def _node_of(info: Info, id: str) -> Node:  # noqa: A002 - GitHub's name
    """A repository, issue, pull request or comment by its global id."""
    node = _node(info.context, id)
    if node is None:
        raise GraphQLRefusal("NOT_FOUND", f"Could not resolve to a node with the global id of '{id}'")
    return node


def _nodes(info: Info, ids: list[str]) -> list[Node | GraphQLRefusal]:
    """Several nodes by id; an unknown one is null with an error, the others answer."""
    return [
        _node(info.context, id_)
        or GraphQLRefusal("NOT_FOUND", f"Could not resolve to a node with the global id of '{id_}'")
        for id_ in ids
    ]


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


ROOT = {
    "rateLimit": _rate_limit,
    "viewer": _viewer,
    "repository": _repository,
    "search": _search,
    "node": _node_of,
    "nodes": _nodes,
}
