from __future__ import annotations

from pathlib import Path

import pytest
from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLUnionType,
)
from graphql import build_schema as build_from_text
from graphql.utilities import find_breaking_changes

from tests.support.github.graphql_api import SCHEMA_TEXT, build_schema

OFFICIAL = Path(__file__).parents[3] / "shared" / "github"


@pytest.fixture(scope="module")
def official() -> GraphQLSchema:
    files = [OFFICIAL / "schema.graphql", OFFICIAL / "schema-extensions.graphql"]
    if not all(file.exists() for file in files):
        pytest.skip("GitHub's public schema is not at ../shared/github")
    # The published text repeats two fields of EnterpriseOwnerInfo, so it can't be validated as it stands.
    return build_from_text("\n".join(file.read_text("utf-8") for file in files), assume_valid_sdl=True)


@pytest.fixture(scope="module")
def ours() -> GraphQLSchema:
    return build_from_text(SCHEMA_TEXT)


def test_what_is_asked_of_us_can_be_asked_of_github(ours: GraphQLSchema, official: GraphQLSchema) -> None:
    assert find_breaking_changes(ours, official) == []


def own_types(schema: GraphQLSchema) -> list[GraphQLNamedType]:
    return [type_ for name, type_ in schema.type_map.items() if not name.startswith("__")]


def test_types_arguments_and_nullability_are_githubs(ours: GraphQLSchema, official: GraphQLSchema) -> None:
    differences = []
    for type_ in own_types(ours):
        theirs = official.type_map[type_.name]
        assert type(theirs) is type(type_)
        if isinstance(type_, GraphQLObjectType | GraphQLInterfaceType):
            for name, field in type_.fields.items():
                other = theirs.fields[name]  # type: ignore[attr-defined]
                if str(other.type) != str(field.type):
                    differences.append(f"{type_}.{name}: {field.type}, not {other.type}")
                for argument, value in field.args.items():
                    if str(other.args[argument].type) != str(value.type):
                        differences.append(f"{type_}.{name}({argument}): {value.type}")
                    if other.args[argument].default_value != value.default_value:
                        differences.append(f"{type_}.{name}({argument}) = {value.default_value}")
        elif isinstance(type_, GraphQLInputObjectType):
            for name, member in type_.fields.items():
                if str(theirs.fields[name].type) != str(member.type):  # type: ignore[attr-defined]
                    differences.append(f"{type_}.{name}: {member.type}")
        elif isinstance(type_, GraphQLEnumType):
            assert type_.values.keys() <= theirs.values.keys()  # type: ignore[attr-defined]
        elif isinstance(type_, GraphQLUnionType):
            assert {t.name for t in type_.types} <= {t.name for t in theirs.types}  # type: ignore[attr-defined]
    assert differences == []


def test_the_fields_of_2025_can_be_hidden() -> None:
    for hidden in (False, True):
        schema = build_schema(without_duplicate_of=hidden)
        for name in ("Issue", "ClosedEvent"):
            type_ = schema.type_map[name]
            assert isinstance(type_, GraphQLObjectType)
            assert ("duplicateOf" in type_.fields) is not hidden
