from __future__ import annotations

import pytest
from graphql import (
    GraphQLObjectType,
    GraphQLSchema,
)
from graphql import build_schema as build_from_text
from graphql.utilities import find_breaking_changes

from tests.support.github.graphql_api import SCHEMA_TEXT, build_schema


@pytest.fixture(scope="module")
def ours() -> GraphQLSchema:
    return build_from_text(SCHEMA_TEXT)


def test_what_is_asked_of_us_can_be_asked_of_github(ours: GraphQLSchema, official: GraphQLSchema) -> None:
    assert find_breaking_changes(ours, official) == []


def test_the_fields_of_2025_can_be_hidden() -> None:
    for hidden in (False, True):
        schema = build_schema(without_duplicate_of=hidden)
        for name in ("Issue", "ClosedEvent"):
            type_ = schema.type_map[name]
            assert isinstance(type_, GraphQLObjectType)
            assert ("duplicateOf" in type_.fields) is not hidden
