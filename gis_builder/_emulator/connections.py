"""Relay connections: cutting a list by first/last/after/before, with GitHub's limits and refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from graphql import (
    FieldNode,
    FragmentSpreadNode,
    GraphQLResolveInfo,
    InlineFragmentNode,
    SelectionSetNode,
)

from gis_builder._emulator.cursors import decode_cursor, encode_cursor
from gis_builder._emulator.errors import GraphQLRefusal

MAX_PAGE = 100
_COUNTS = frozenset({"__typename", "totalCount", "issueCount"})  # may be asked for without first or last

T = TypeVar("T")
Node = dict[str, Any]


class Bounds(NamedTuple):
    """The part `[start, stop)` of a list that a page shows, and the part that its cursors leave."""

    start: int
    stop: int
    low: int  # first position that `after` leaves
    high: int  # one past the last position that `before` leaves


def connection(
    info: GraphQLResolveInfo[Any],
    items: Sequence[T],
    render: Callable[[T], Node],
    arguments: dict[str, Any],
    *,
    reachable: int | None = None,
) -> Node:
    """Resolve a connection field over `items`.

    Args:
        info: Says which parts of the connection are asked for.
        items: The whole list.
        render: Makes a node of an item; called for the items of the page only.
        arguments: The field's `first`, `last`, `after` and `before`, where given.
        reachable: How many items pages can show at all; `totalCount` counts the rest too.

    Raises:
        GraphQLRefusal: no page size, one over 100, or a cursor that is none.
    """
    pageable = len(items) if reachable is None else min(len(items), reachable)
    bounds = _bounds(info, pageable, arguments)
    shown = range(bounds.start, bounds.stop)
    nodes = [render(item) for item in items[bounds.start : bounds.stop]]
    return {
        "totalCount": len(items),
        "filteredCount": bounds.high - bounds.low,
        "pageCount": len(nodes),
        "pageInfo": {
            "hasNextPage": bounds.stop < pageable,
            "hasPreviousPage": bounds.start > 0,
            "startCursor": encode_cursor(shown[0]) if shown else None,
            "endCursor": encode_cursor(shown[-1]) if shown else None,
        },
        "nodes": nodes,
        "edges": lambda _info: [
            {"cursor": encode_cursor(position), "node": node}
            for position, node in zip(shown, nodes, strict=True)
        ],
    }


def _bounds(info: GraphQLResolveInfo[Any], total: int, arguments: dict[str, Any]) -> Bounds:
    first, last = arguments.get("first"), arguments.get("last")
    _check_size(info, first, last)
    after, before = arguments.get("after"), arguments.get("before")
    low = 0 if after is None else min(total, _position(after) + 1)
    high = total if before is None else max(low, min(total, _position(before)))
    if first is None and last is None:
        return Bounds(low, low, low, high)  # only counts are asked for
    if first is not None:
        return Bounds(low, min(high, low + first), low, high)
    return Bounds(max(low, high - (last or 0)), high, low, high)


def _check_size(info: GraphQLResolveInfo[Any], first: int | None, last: int | None) -> None:
    name = info.field_name
    if first is not None and last is not None:
        raise GraphQLRefusal(
            "UNPROCESSABLE",
            f"Passing both `first` and `last` to paginate the `{name}` connection is not supported.",
        )
    for argument, size in (("first", first), ("last", last)):
        if size is not None and size > MAX_PAGE:
            raise GraphQLRefusal(
                "EXCESSIVE_PAGINATION",
                f"Requesting {size} records on the `{name}` connection exceeds the `{argument}` limit of "
                f"{MAX_PAGE} records.",
            )
        if size is not None and size < 0:
            raise GraphQLRefusal(
                "UNPROCESSABLE", f"`{argument}` on the `{name}` connection cannot be less than zero."
            )
    if first is None and last is None and not _asks_for_counts_only(info):
        raise GraphQLRefusal(
            "MISSING_PAGINATION_BOUNDARIES",
            f"You must provide a `first` or `last` value to properly paginate the `{name}` connection.",
        )


def _position(cursor: str) -> int:
    position = decode_cursor(cursor)
    if position is None:
        raise GraphQLRefusal("INVALID_CURSOR_ARGUMENTS", f"`{cursor}` does not appear to be a valid cursor.")
    return position


def _asks_for_counts_only(info: GraphQLResolveInfo[Any]) -> bool:
    asked: set[str] = set()
    for node in info.field_nodes:
        _collect(info, node.selection_set, asked)
    return asked <= _COUNTS


def _collect(info: GraphQLResolveInfo[Any], selection: SelectionSetNode | None, into: set[str]) -> None:
    members: Iterable[Any] = selection.selections if selection else ()
    for member in members:
        if isinstance(member, FieldNode):
            into.add(member.name.value)
        elif isinstance(member, InlineFragmentNode):
            _collect(info, member.selection_set, into)
        elif isinstance(member, FragmentSpreadNode):
            _collect(info, info.fragments[member.name.value].selection_set, into)
