"""What a GraphQL query costs, by GitHub's published rule.

Each connection takes one request for each of its parents, where a parent connection is taken to be as full
as its `first` or `last` allows. A hundred requests make a point; a query costs at least one. The node count
adds up what all connections could return.

A worked example: `search(first: 100)` with `comments(last: 30)`, `timelineItems(last: 20)` and
`labels(first: 10)` on each hit. 1 request for the search and 100 for each of three connections make 301
requests, 3 points, and 100 + 3,000 + 2,000 + 1,000 = 6,100 nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLInterfaceType,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
    ValueNode,
    get_named_type,
    value_from_ast_untyped,
)

MAX_NODES = 500_000
_REQUESTS_A_POINT = 100


@dataclass(frozen=True)
class Price:
    """What a query would cost."""

    requests: int = 0
    nodes: int = 0
    largest_page: int = 0  # the largest `first` or `last` in it

    @property
    def points(self) -> int:
        """Points, at least 1; a half is rounded up."""
        return max(1, (self.requests + _REQUESTS_A_POINT // 2) // _REQUESTS_A_POINT)


def price(
    schema: GraphQLSchema,
    document: DocumentNode,
    operation: OperationDefinitionNode,
    variables: Mapping[str, Any],
) -> Price:
    """The price of one operation of a valid document."""
    values = {
        definition.variable.name.value: value_from_ast_untyped(definition.default_value)
        for definition in operation.variable_definitions or ()
        if definition.default_value is not None
    }
    pricer = _Pricer(schema, document, {**values, **variables})
    pricer.walk(operation.selection_set, schema.query_type, 1)
    return Price(pricer.requests, pricer.nodes, pricer.largest_page)


class _Pricer:
    def __init__(self, schema: GraphQLSchema, document: DocumentNode, variables: Mapping[str, Any]) -> None:
        self._schema = schema
        self._variables = variables
        self._fragments = {
            definition.name.value: definition
            for definition in document.definitions
            if isinstance(definition, FragmentDefinitionNode)
        }
        self.requests = self.nodes = self.largest_page = 0

    def walk(self, selection: SelectionSetNode | None, parent: GraphQLNamedType | None, parents: int) -> None:
        """Add up what is selected on `parents` objects of the type `parent`."""
        for member in selection.selections if selection else ():
            if self._is_left_out(member):
                continue
            if isinstance(member, FieldNode):
                self._field(member, parent, parents)
            elif isinstance(member, InlineFragmentNode):
                condition = member.type_condition
                inner = self._schema.get_type(condition.name.value) if condition else parent
                self.walk(member.selection_set, inner, parents)
            elif isinstance(member, FragmentSpreadNode):
                fragment = self._fragments[member.name.value]
                inner = self._schema.get_type(fragment.type_condition.name.value)
                self.walk(fragment.selection_set, inner, parents)

    def _field(self, field: FieldNode, parent: GraphQLNamedType | None, parents: int) -> None:
        if field.selection_set is None or not isinstance(parent, GraphQLObjectType | GraphQLInterfaceType):
            return
        definition = parent.fields.get(field.name.value)
        if definition is None:  # __schema and __type
            return
        returned = get_named_type(definition.type)
        arguments = {node.name.value: self._value(node.value) for node in field.arguments or ()}
        if returned.name.endswith("Connection"):
            size = _size(arguments)
            self.largest_page = max(self.largest_page, size)
            self.requests += parents
            self.nodes += parents * size
            parents *= size
        elif field.name.value == "nodes" and isinstance(arguments.get("ids"), list):
            parents *= len(arguments["ids"])
        self.walk(field.selection_set, returned, parents)

    def _value(self, node: ValueNode) -> Any:
        return value_from_ast_untyped(node, dict(self._variables))

    def _is_left_out(self, member: Any) -> bool:
        """Whether @skip or @include takes the selection out."""
        for directive in member.directives or ():
            unless = {"skip": True, "include": False}.get(directive.name.value)
            if unless is not None and self._value(directive.arguments[0].value) is unless:
                return True
        return False


def _size(arguments: Mapping[str, Any]) -> int:
    """The page size, within what will be accepted: a size that is refused later costs nothing now."""
    size = next((arguments[key] for key in ("first", "last") if arguments.get(key) is not None), 0)
    return max(0, size) if isinstance(size, int) else 0
