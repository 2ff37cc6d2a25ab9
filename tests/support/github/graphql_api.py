"""Parses, validates, prices and executes a GraphQL request.

The price follows GitHub's documentation. Each connection costs one request per parent node, where a parent
connection counts with its full `first` or `last`. A hundred requests are a point; a query costs at least one
point. The node count is the sum of what all connections could return.

Example: `search(first: 100)` with `comments(last: 30)`, `timelineItems(last: 20)` and
`labels(first: 10)` on each hit. 1 request for the search and 100 for each of three connections make 301
requests, 3 points, and 100 + 3,000 + 2,000 + 1,000 = 6,100 nodes.
"""

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLInterfaceType,
    GraphQLObjectType,
    InlineFragmentNode,
    ObjectTypeExtensionNode,
    build_ast_schema,
    execute_sync,
    get_named_type,
    get_operation_ast,
    parse,
    validate,
    value_from_ast_untyped,
)

from tests.support.github.resolvers import ROOT, GraphQLRefusal

MAX_NODES = 500_000
SCHEMA_TEXT = Path(__file__).with_name("schema.graphql").read_text()
_REQUESTS_A_POINT = 100
_UNKNOWN_FIELD = re.compile(r"Cannot query field '(\w+)' on type '(\w+)'")


class Refused(Exception):  # noqa: N818 - it becomes a whole answer
    """The request is not executed; the response has only errors."""

    def __init__(self, *errors, status=200):
        self.errors, self.status = errors, status
        super().__init__(errors[0]["message"])


@dataclass(frozen=True)
class Price:
    """The cost of a query."""

    requests: int = 0
    nodes: int = 0
    largest_page: int = 0  # the largest `first` or `last` in it

    @property
    def points(self):
        """Points, at least 1; a half is rounded up."""
        return max(1, (self.requests + _REQUESTS_A_POINT // 2) // _REQUESTS_A_POINT)


@dataclass(frozen=True)
class Prepared:
    """A valid request with its price."""

    document: DocumentNode
    variables: dict[str, Any]
    price: Price


def build_schema(*, without_duplicate_of=False):
    """The current schema, or GitHub's schema before May 2025."""
    document = parse(SCHEMA_TEXT)
    if without_duplicate_of:
        older = [
            one
            for one in document.definitions
            if not isinstance(one, ObjectTypeExtensionNode)
        ]
        document = DocumentNode(definitions=tuple(older))
    return build_ast_schema(document)


class GraphQLApi:
    """Parses, validates and executes against one schema."""

    def __init__(self, schema):
        self._schema = schema
        self._parsed = lru_cache(256)(self._parse)

    def prepare(self, body):
        """Parse and price the body of a POST."""
        query, variables = _read(body)
        document = self._parsed(query)
        if isinstance(document, list):
            raise Refused(*map(_format, document))
        operation = get_operation_ast(document)
        if operation is None:
            raise Refused({"message": "An operation name is required"})
        cost = price(self._schema, document, operation, variables)
        if cost.nodes > MAX_NODES:
            words = f"This query requests up to {cost.nodes:,} possible nodes which exceeds the maximum limit"
            raise Refused(
                {
                    "type": "MAX_NODE_LIMIT_EXCEEDED",
                    "message": f"{words} of {MAX_NODES:,}.",
                }
            )
        return Prepared(document, variables, cost)

    def execute(self, prepared, context):
        """The response: `data`, and `errors` of fields that could not be resolved."""
        result = execute_sync(
            self._schema,
            prepared.document,
            root_value=ROOT,
            context_value=context,
            variable_values=prepared.variables,
        )
        for error in result.errors or ():
            if error.original_error is not None and not isinstance(
                error.original_error, GraphQLRefusal
            ):
                raise error.original_error  # a bug of this server must not look like a response
        answer = {"data": result.data}
        if result.errors:
            answer["errors"] = [_format(error) for error in result.errors]
        return answer

    def _parse(self, query):
        try:
            document = parse(query)
        except GraphQLError as error:
            return [error]
        return validate(self._schema, document) or document


def price(schema, document, operation, variables):
    """The price of one operation of a valid document."""
    fragments = {
        one.name.value: one
        for one in document.definitions
        if isinstance(one, FragmentDefinitionNode)
    }
    requests = nodes = largest_page = 0

    def walk(selection, parent, parents):
        nonlocal requests, nodes, largest_page
        for member in selection.selections if selection else ():
            if isinstance(member, InlineFragmentNode):
                condition = member.type_condition
                inner = schema.get_type(condition.name.value) if condition else parent
                walk(member.selection_set, inner, parents)
            elif isinstance(member, FragmentSpreadNode):
                fragment = fragments[member.name.value]
                walk(
                    fragment.selection_set,
                    schema.get_type(fragment.type_condition.name.value),
                    parents,
                )
            elif isinstance(member, FieldNode) and isinstance(
                parent, GraphQLObjectType | GraphQLInterfaceType
            ):
                definition = parent.fields.get(member.name.value)
                if definition is None:  # __schema and __type
                    continue
                returned, within = get_named_type(definition.type), parents
                if returned.name.endswith("Connection"):
                    size = _size(member, variables)
                    largest_page = max(largest_page, size)
                    requests += parents
                    nodes += parents * size
                    within = parents * size
                walk(member.selection_set, returned, within)

    walk(operation.selection_set, schema.query_type, 1)
    return Price(requests, nodes, largest_page)


def _size(field, variables):
    """The page size; an invalid one, which is refused later, costs nothing."""
    given = {
        one.name.value: value_from_ast_untyped(one.value, dict(variables))
        for one in field.arguments or ()
    }
    size = given.get("first", given.get("last", 0))
    return max(0, size) if isinstance(size, int) else 0


def _read(body):
    try:
        request = json.loads(body)
    except ValueError:
        raise Refused({"message": "Problems parsing JSON"}, status=400) from None
    query = request.get("query") if isinstance(request, dict) else None
    if not isinstance(query, str):
        raise Refused(
            {"message": "A query attribute must be specified and must be a string."}
        )
    return query, request.get("variables") or {}


def _format(error):
    """An error in GitHub's shape."""
    formatted = {"message": error.message}
    if isinstance(error.original_error, GraphQLRefusal):
        formatted["type"] = error.original_error.kind
    if error.path:
        formatted["path"] = list(error.path)
    if unknown := _UNKNOWN_FIELD.match(error.message):
        formatted["message"] = (
            f"Field '{unknown[1]}' doesn't exist on type '{unknown[2]}'"
        )
        names = {"typeName": unknown[2], "fieldName": unknown[1]}
        formatted["extensions"] = {"code": "undefinedField", **names}
    return formatted
