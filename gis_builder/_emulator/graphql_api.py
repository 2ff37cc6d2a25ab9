"""One GraphQL request: parsed, checked and priced first, executed afterwards."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    GraphQLError,
    GraphQLSchema,
    OperationDefinitionNode,
    SelectionSetNode,
    execute_sync,
    get_operation_ast,
    parse,
    validate,
    value_from_ast_untyped,
)

from gis_builder._emulator.cost import MAX_NODES, Price, price
from gis_builder._emulator.errors import GraphQLRefusal
from gis_builder._emulator.resolvers import ROOT, Context

_UNKNOWN_FIELD = re.compile(r"Cannot query field '(\w+)' on type '(\w+)'")
_REMEMBERED = 256  # texts of queries


class Refused(Exception):  # noqa: N818 - it becomes a whole answer
    """The request is answered with errors only, without being executed."""

    def __init__(self, errors: list[dict[str, Any]], *, status: int = 200) -> None:
        self.errors = errors
        self.status = status
        super().__init__(errors[0]["message"])


@dataclass(frozen=True)
class Prepared:
    """A request that may be executed."""

    document: DocumentNode
    operation: OperationDefinitionNode
    variables: dict[str, Any]
    price: Price
    is_dry_run: bool  # only the price is asked for


class GraphQLApi:
    """Parses, validates and executes against one schema."""

    def __init__(self, schema: GraphQLSchema) -> None:
        self._schema = schema
        self._parsed = lru_cache(_REMEMBERED)(self._parse)

    def prepare(self, body: bytes) -> Prepared:
        """Read the body of a POST.

        Raises:
            Refused: it holds no query, or the query is invalid or asks for more than 500,000 nodes.
        """
        query, variables, operation_name = _read(body)
        parsed = self._parsed(query)
        if isinstance(parsed, list):
            raise Refused([_format(error) for error in parsed])
        operation = get_operation_ast(parsed, operation_name)
        if operation is None:
            raise Refused([{"message": f"No operation named {operation_name!r}"}])
        cost = price(self._schema, parsed, operation, variables)
        if cost.nodes > MAX_NODES:
            raise Refused([_too_many_nodes(cost)])
        return Prepared(parsed, operation, variables, cost, _is_dry_run(operation, variables))

    def execute(self, prepared: Prepared, context: Context) -> dict[str, Any]:
        """The answer's JSON: `data`, and `errors` where a field could not be resolved."""
        document = _price_only(prepared.operation) if prepared.is_dry_run else prepared.document
        name = prepared.operation.name
        result = execute_sync(
            self._schema,
            document,
            root_value=ROOT,
            context_value=context,
            variable_values=prepared.variables,
            operation_name=name.value if name else None,
        )
        for error in result.errors or ():
            if error.original_error is not None and not isinstance(error.original_error, GraphQLRefusal):
                raise error.original_error  # a fault of the emulator must not look like an answer
        answer: dict[str, Any] = {"data": result.data}
        if result.errors:
            answer["errors"] = [_format(error) for error in result.errors]
        return answer

    def _parse(self, query: str) -> DocumentNode | list[GraphQLError]:
        try:
            document = parse(query)
        except GraphQLError as error:
            return [error]
        return validate(self._schema, document) or document


def _read(body: bytes) -> tuple[str, dict[str, Any], str | None]:
    try:
        request = json.loads(body)
    except ValueError:
        raise Refused([{"message": "Problems parsing JSON"}], status=400) from None
    query = request.get("query") if isinstance(request, dict) else None
    if not isinstance(query, str):
        raise Refused([{"message": "A query attribute must be specified and must be a string."}])
    variables = request.get("variables") or {}
    if not isinstance(variables, dict):
        raise Refused([{"message": "Variables must be an object."}])
    return query, variables, request.get("operationName")


def _format(error: GraphQLError) -> dict[str, Any]:
    """An error in GitHub's shape."""
    formatted: dict[str, Any] = {}
    refusal = error.original_error
    if isinstance(refusal, GraphQLRefusal):
        formatted["type"] = refusal.kind
    if error.path:
        formatted["path"] = list(error.path)
    unknown = _UNKNOWN_FIELD.match(error.message)
    if unknown:
        formatted["extensions"] = {
            "code": "undefinedField",
            "typeName": unknown[2],
            "fieldName": unknown[1],
        }
    formatted["locations"] = [{"line": at.line, "column": at.column} for at in error.locations or ()]
    formatted["message"] = (
        f"Field '{unknown[1]}' doesn't exist on type '{unknown[2]}'" if unknown else error.message
    )
    return formatted


def _too_many_nodes(cost: Price) -> dict[str, Any]:
    return {
        "type": "MAX_NODE_LIMIT_EXCEEDED",
        "message": f"This query requests up to {cost.nodes:,} possible nodes which exceeds the maximum limit "
        f"of {MAX_NODES:,}.",
    }


def _rate_limit_fields(operation: OperationDefinitionNode) -> list[FieldNode]:
    return [
        member
        for member in operation.selection_set.selections
        if isinstance(member, FieldNode) and member.name.value == "rateLimit"
    ]


def _is_dry_run(operation: OperationDefinitionNode, variables: dict[str, Any]) -> bool:
    arguments = [argument for field in _rate_limit_fields(operation) for argument in field.arguments or ()]
    return any(value_from_ast_untyped(argument.value, variables) is True for argument in arguments)


def _price_only(operation: OperationDefinitionNode) -> DocumentNode:
    fields = SelectionSetNode(selections=tuple(_rate_limit_fields(operation)))
    only = OperationDefinitionNode(
        operation=operation.operation,
        name=operation.name,
        variable_definitions=operation.variable_definitions,
        directives=(),
        selection_set=fields,
    )
    return DocumentNode(definitions=(only,))
