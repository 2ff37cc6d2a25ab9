"""The executable schema: the definitions in `schema.graphql`, each field tied to its resolver."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, cast

from graphql import (
    DocumentNode,
    GraphQLObjectType,
    GraphQLScalarType,
    GraphQLSchema,
    ObjectTypeExtensionNode,
    build_ast_schema,
    parse,
)

from gis_builder._emulator import resolvers

_RESOLVERS: dict[str, dict[str, Any]] = {
    "Query": {
        "rateLimit": resolvers.resolve_rate_limit,
        "viewer": resolvers.resolve_viewer,
        "repository": resolvers.resolve_repository,
        "search": resolvers.resolve_search,
        "node": resolvers.resolve_node,
        "nodes": resolvers.resolve_nodes,
    },
    "Repository": {
        "issue": resolvers.resolve_issue,
        "pullRequest": resolvers.resolve_pull_request,
        "issueOrPullRequest": resolvers.resolve_issue_or_pull_request,
        "issues": resolvers.resolve_issues,
        "pullRequests": resolvers.resolve_pull_requests,
        "labels": resolvers.resolve_repository_labels,
    },
    "Issue": {
        "labels": resolvers.resolve_labels,
        "comments": resolvers.resolve_comments,
        "timelineItems": resolvers.resolve_timeline,
        "stateReason": resolvers.resolve_state_reason,
        "repository": resolvers.resolve_own_repository,
        "duplicateOf": resolvers.resolve_duplicate_of,
    },
    "PullRequest": {
        "labels": resolvers.resolve_labels,
        "comments": resolvers.resolve_comments,
        "repository": resolvers.resolve_own_repository,
    },
    "ClosedEvent": {"duplicateOf": resolvers.resolve_canonical},
    "MarkedAsDuplicateEvent": {
        "canonical": resolvers.resolve_canonical,
        "duplicate": resolvers.resolve_duplicate,
        "isCrossRepository": resolvers.resolve_is_cross_repository,
    },
    "UnmarkedAsDuplicateEvent": {
        "canonical": resolvers.resolve_canonical,
        "duplicate": resolvers.resolve_duplicate,
        "isCrossRepository": resolvers.resolve_is_cross_repository,
    },
}

# GitHub's ids of comments outgrew 32 bits in 2024, and its `databaseId` goes on showing them although the
# type is Int; graphql-core's own Int would turn them into errors.
_DATABASE_ID = GraphQLScalarType("WideInt", serialize=int)
_DATABASE_ID.name = "Int"  # what introspection and messages show; the constructor refuses the name


def schema_text() -> str:
    """The definitions, in GraphQL's schema language."""
    return files(__package__).joinpath("schema.graphql").read_text(encoding="utf-8")


def build_schema(*, without_duplicate_of: bool = False) -> GraphQLSchema:
    """Build the executable schema.

    Args:
        without_duplicate_of: Leave out `Issue.duplicateOf` and `ClosedEvent.duplicateOf`, as on servers older
            than May 2025.
    """
    document = parse(schema_text())
    if without_duplicate_of:
        document = DocumentNode(
            definitions=tuple(
                definition
                for definition in document.definitions
                if not isinstance(definition, ObjectTypeExtensionNode)
            )
        )
    schema = build_ast_schema(document)
    for type_name, by_field in _RESOLVERS.items():
        fields = cast(GraphQLObjectType, schema.type_map[type_name]).fields
        for field_name, resolver in by_field.items():
            if field_name in fields:
                fields[field_name].resolve = resolver
    for type_ in schema.type_map.values():
        if isinstance(type_, GraphQLObjectType) and "databaseId" in type_.fields:
            type_.fields["databaseId"].type = _DATABASE_ID
    return schema
