"""The schema: the definitions in `schema.graphql`. Fields find their values in the nodes, see `nodes`."""

from __future__ import annotations

from importlib.resources import files

from graphql import (
    DocumentNode,
    GraphQLObjectType,
    GraphQLScalarType,
    GraphQLSchema,
    ObjectTypeExtensionNode,
    build_ast_schema,
    parse,
)

# GitHub's ids of comments outgrew 32 bits in 2024, and its `databaseId` goes on showing them although the
# type is Int; graphql-core's own Int would turn them into errors.
_DATABASE_ID = GraphQLScalarType("WideInt", serialize=int)
_DATABASE_ID.name = "Int"  # what introspection and messages show; the constructor refuses the name


def schema_text() -> str:
    """The definitions, in GraphQL's schema language."""
    return files(__package__).joinpath("schema.graphql").read_text(encoding="utf-8")


def build_schema(*, without_duplicate_of: bool = False) -> GraphQLSchema:
    """Build the schema.

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
    for type_ in schema.type_map.values():
        if isinstance(type_, GraphQLObjectType) and "databaseId" in type_.fields:
            type_.fields["databaseId"].type = _DATABASE_ID
    return schema
