"""The texts of all queries, with names, numbers and cursors as quoted literals.

Costs: GitHub counts one request for each parent of each connection. A query costs the sum divided by 100,
rounded, and at least one point. Scalars and lookups by number are free.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Generic, TypeVar

from msgspec.json import Decoder

from gis_builder.crawling.github import nodes
from gis_builder.settings import CrawlSettings
from gis_builder.store import CrawlTask, IssueRef, TopUp

T = TypeVar("T")

_EVENT_TYPES = ", itemTypes: [CLOSED_EVENT, REOPENED_EVENT, MARKED_AS_DUPLICATE_EVENT, UNMARKED_AS_DUPLICATE_EVENT]"

_RATE = "rateLimit { cost }"
_TARGET = (
    "{ __typename ... on Issue { number repository { nameWithOwner } } "
    "... on PullRequest { number repository { nameWithOwner } } }"
)
_PULL = "... on PullRequest { number title closed createdAt updatedAt repository { nameWithOwner } }"
_BACKWARDS = "totalCount pageInfo { hasPreviousPage startCursor }"

_REPOSITORY = Decoder(nodes.RepositoryNode)
_LISTING = Decoder(nodes.ListingRepository)
_SEARCH_PAGE = Decoder(nodes.SearchPage)
_ISSUES = Decoder(nodes.IssuesByAlias)
_PARTS = Decoder(dict[str, nodes.Parts | None])


@dataclass(frozen=True)
class GraphQuery(Generic[T]):
    """A query, and the decoder for the value of each alias."""

    text: str
    answer: Decoder[T]


# Queries which newer fields the server has.
INTROSPECTION = GraphQuery(
    '{ issue: __type(name: "Issue") { fields { name args { name } } } '
    f'closed: __type(name: "ClosedEvent") {{ fields {{ name }} }} {_RATE} }}',
    Decoder(nodes.TypeNode),
)


@dataclass(frozen=True)
class Server:
    """The optional fields of a server."""

    duplicate_of: bool = False  # Issue.duplicateOf
    closed_duplicate_of: bool = False  # ClosedEvent.duplicateOf
    enable_duplicate: bool = False  # Issue.stateReason(enableDuplicate:)

    @classmethod
    def of_schema(cls, types: Mapping[str, nodes.TypeNode | None]) -> Server:
        """Read the reply to `INTROSPECTION`."""
        fields = {
            alias: {
                field.name: field.args or [] for field in (kind and kind.fields) or ()
            }
            for alias, kind in types.items()
        }
        issue = fields.get("issue", {})
        closed = fields.get("closed", {})
        return cls(
            duplicate_of="duplicateOf" in issue,
            closed_duplicate_of="duplicateOf" in closed,
            enable_duplicate="enableDuplicate"
            in [arg.name for arg in issue.get("stateReason", [])],
        )


class Queries:
    """Builds the queries for one server and its settings."""

    def __init__(self, settings: CrawlSettings, server: Server) -> None:
        self._settings = settings
        self._issue = _issue_fields(server)
        self._nested = {
            "comments": "fullDatabaseId author { __typename login } authorAssociation createdAt body",
            "events": _event_fields(server),
            "labels": "name",
        }

    def repositories(self, names: Sequence[str]) -> GraphQuery[nodes.RepositoryNode]:
        """Query the metadata of repositories: 4 connections each."""
        label = _quote(self._settings.label_query)
        parts = [
            f"r{index}: {_repository(name)} {{ nameWithOwner isPrivate hasIssuesEnabled createdAt "
            "newest: issues(first: 1, orderBy: {field: CREATED_AT, direction: DESC}) "
            "{ totalCount nodes { number createdAt } } "
            "fresh: issues(first: 1, orderBy: {field: UPDATED_AT, direction: DESC}) { nodes { updatedAt } } "
            "pulls: pullRequests(first: 1, orderBy: {field: CREATED_AT, direction: DESC}) "
            "{ nodes { number } } "
            f"labels(first: 20, query: {label}) {{ nodes {{ name }} }} }}"
            for index, name in enumerate(names)
        ]
        return GraphQuery(_query(parts), _REPOSITORY)

    def searches(self, tasks: Iterable[CrawlTask]) -> GraphQuery[nodes.SearchPage]:
        """Query several searches at once, only for numbers: 1 connection each."""
        parts = [
            f"s{index}: search(type: ISSUE, first: 100, query: {_quote(task.key)}{_after(task.cursor)}) "
            "{ issueCount pageInfo { hasNextPage endCursor } nodes { ... on Issue { number } } }"
            for index, task in enumerate(tasks)
        ]
        return GraphQuery(_query(parts), _SEARCH_PAGE)

    def issues(
        self, refs: Sequence[IssueRef], *, with_thread: bool
    ) -> GraphQuery[nodes.IssuesByAlias]:
        """Query issues of any repositories by number: 3 connections each with threads, else none."""
        # A fragment, because repeating the fields for each issue would make the query large.
        nested = f" {self._inline()}" if with_thread else ""
        fields = f"__typename ... on Issue {{ {self._issue}{nested} }} {_PULL}"
        parts = []
        for index, (repo, group) in enumerate(groupby(refs, key=lambda ref: ref.repo)):
            inner = " ".join(
                f"i{n}: issueOrPullRequest(number: {n}) {{ ...Found }}"
                for _, n in group
            )
            parts.append(f"r{index}: {_repository(repo)} {{ nameWithOwner {inner} }}")
        text = f"{_query(parts)} fragment Found on IssueOrPullRequest {{ {fields} }}"
        return GraphQuery(text, _ISSUES)

    def listing(
        self, repo: str, count: int, after: str | None, *, since: str | None = None
    ) -> GraphQuery[nodes.ListingRepository]:
        """List the repository's issues with threads, oldest first, or by time of update from `since` on."""
        order = "CREATED_AT" if since is None else "UPDATED_AT"
        updated = "" if since is None else f", filterBy: {{since: {_quote(since)}}}"
        text = _query(
            [
                f"r0: {_repository(repo)} {{ nameWithOwner issues(first: {count}{_after(after)}{updated}, "
                f"orderBy: {{field: {order}, direction: ASC}}) {{ totalCount "
                f"pageInfo {{ hasNextPage endCursor }} nodes {{ {self._issue} {self._inline()} }} }} }}"
            ]
        )
        return GraphQuery(text, _LISTING)

    def top_ups(
        self, repo: str, top_ups: Iterable[TopUp]
    ) -> GraphQuery[dict[str, nodes.Parts | None]]:
        """Query the items before the stored ones: 1 connection each, with aliases `t0` and so on."""
        inner = " ".join(
            f"t{index}: issueOrPullRequest(number: {top_up.ref.number}) "
            f"{{ ... on Issue {{ {self._connection(top_up.part, 100, top_up.before)} }} }}"
            for index, top_up in enumerate(top_ups)
        )
        return GraphQuery(_query([f"r0: {_repository(repo)} {{ {inner} }}"]), _PARTS)

    def _inline(self) -> str:
        settings = self._settings
        return " ".join(
            self._connection(part, getattr(settings, f"{part}_inline"))
            for part in self._nested
        )

    def _connection(self, part: str, last: int, before: str = "") -> str:
        """The last page of a nested connection, which has closings and their comments."""
        name = part
        types = ""
        if part == "events":
            name = "timelineItems"
            types = _EVENT_TYPES
        cursor = f", before: {_quote(before)}" if before else ""
        return f"{part}: {name}(last: {last}{cursor}{types}) {{ {_BACKWARDS} nodes {{ {self._nested[part]} }} }}"


def _issue_fields(server: Server) -> str:
    reason = "stateReason"
    if server.enable_duplicate:
        reason = "stateReason(enableDuplicate: true)"
    target = ""
    if server.duplicate_of:
        target = "duplicateOf { number repository { nameWithOwner } }"
    return (
        f"number title body state {reason} author {{ __typename login }} authorAssociation "
        f"createdAt updatedAt closedAt repository {{ nameWithOwner }} {target}"
    )


def _event_fields(server: Server) -> str:
    closing = f" duplicateOf {_TARGET}" if server.closed_duplicate_of else ""
    plain = "createdAt actor { login }"
    return (
        f"__typename ... on ClosedEvent {{ {plain} stateReason{closing} }} "
        f"... on ReopenedEvent {{ {plain} }} "
        f"... on MarkedAsDuplicateEvent {{ {plain} canonical {_TARGET} }} "
        f"... on UnmarkedAsDuplicateEvent {{ {plain} canonical {_TARGET} }}"
    )


def _query(parts: Iterable[str]) -> str:
    return f"{{ {' '.join(parts)} {_RATE} }}"


def _repository(full_name: str) -> str:
    owner, _, name = full_name.partition("/")
    return (
        f"repository(owner: {_quote(owner)}, name: {_quote(name)}, followRenames: true)"
    )


def _after(cursor: str | None) -> str:
    return f", after: {_quote(cursor)}" if cursor else ""


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # JSON strings are GraphQL strings
