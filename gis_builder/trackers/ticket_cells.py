"""Finds the cells of tickets in rows of tables and JSON objects of trackers other than GitHub.

`ticket_columns.toml` declares the columns and keys of each role, and objects that are not tickets.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from gis_builder.store.decoding import Malformed, whole_text
from pairkit.base.printable import comparable, one_line

_DECLARED = tomllib.loads(
    Path(__file__).with_name("ticket_columns.toml").read_text(encoding="utf-8")
)
ROLES: dict[str, list[str]] = _DECLARED["roles"]
LINK_RULES: list[dict[str, Any]] = _DECLARED["links"]
# The roles that a ticket, and a row of links, must have.
TICKET = ("id", "title", "created_at")
LINK = ("id", "duplicate_of")
LINK_ROLES = (*LINK, "relation")

SEPARATOR = re.compile(r"[,;|\n，、；]")  # of ids or labels in a cell
# Keys of the list of tickets in an answer of an API or in an export.
_WRAPPER = re.compile(
    "(?i)issues?|bugs?|tickets?|items|data|records?|results?|values?|entries|rows"
    "|repository|project|search|nodes?|edges"
)
# Keys whose fields are read; the last has Freshdesk's times.
NESTED = ("fields", "attributes", "stats")
_OTHER_KINDS: dict[str, str] = {
    key: kind for kind, keys in _DECLARED["other_kinds"].items() for key in keys
}

_PERSON = (
    "username",
    "name",
    "displayName",
    "display_name",
    "display_value",
    "login",
    "key",
    "identifier",
)
# Types of nodes in Jira's rich text that are lines of their own, and the tags around some of them.
_BLOCKS = {"paragraph", "heading", "codeBlock", "blockquote", "listItem", "hardBreak"}
_RICH_TAGS = {"codeBlock": "{noformat}", "blockquote": "{quote}"}
_MARKS = {"\n", *_RICH_TAGS.values()}

Columns: TypeAlias = Mapping[str, str]
Cells: TypeAlias = dict[str, list[Any]]  # by role


class SourceRow(NamedTuple):
    """A row of a table, or a JSON object."""

    names: tuple[str, ...]  # of columns or keys
    values: Sequence[Any]
    fields: Mapping[str, Any] = {}  # of an object; empty for a table


def source_row(value: object) -> SourceRow:
    """The row itself, or the fields of a JSON object."""
    if isinstance(value, SourceRow):
        return value
    if not isinstance(value, dict):
        raise Malformed(f"{type(value).__name__}, expected a JSON object")
    fields = flat(value)
    return SourceRow(tuple(fields), tuple(fields.values()), fields)


def objects_in(value: object, depth: int = 5) -> list[object]:
    """The objects in a wrapper such as `{"issues": [...]}`, or the value itself."""
    if (
        not isinstance(value, dict)
        or not depth
        or "title" in roles_of(tuple(flat(value)))
    ):
        return [value]
    wrapped = [inner for key, inner in value.items() if _WRAPPER.fullmatch(key)]
    lists = [inner for inner in wrapped if isinstance(inner, list)]
    dicts = [inner for inner in wrapped if isinstance(inner, dict)]
    if lists or dicts:
        if "key" in value:
            return [value]
        items = lists[0] if lists else dicts[:1]
    elif value and all(isinstance(inner, dict) for inner in value.values()):
        items = list(value.values())  # by number, or by alias of a GraphQL query
    else:
        return [value]
    objects = []
    for item in items:
        objects += objects_in(item, depth - 1)
    if (lists or dicts) and isinstance(value.get("comments"), list):
        return _with_comments(objects, value["comments"])
    return objects


def _with_comments(objects: Iterable[Any], comments: Iterable[object]) -> list[object]:
    """The objects with their comments, which Bitbucket has beside the issues."""
    comments_of: dict[str, list[Any]] = {}
    for comment in comments:
        issue = cell_text(dict_or_empty(comment).get("issue"))
        comments_of.setdefault(issue, []).append(comment)
    comments_of.pop("", None)
    with_comments = []
    for item in objects:
        own = comments_of.get(cell_text(dict_or_empty(item).get("id")))
        with_comments.append(item | {"comments": own} if own else item)
    return with_comments


def flat(value: Mapping[str, object]) -> dict[str, object]:
    """An object with the fields of nested objects, and without nulls."""
    merged = {}
    for item in map(dict_or_empty, values_at(value, "customFields")):
        merged[cell_text(item.get("name"))] = item.get("value")
    merged |= value
    merged = {name: connected(field) for name, field in merged.items()}
    for name in NESTED:
        merged |= dict_or_empty(value.get(name))
    if "fields" in value and "key" in value:  # Jira
        key = cell_text(value["key"])
        root = cell_text(value.get("self")).partition("/rest/")[0]
        merged |= {
            "repo": key.rpartition("-")[0],
            "web url": root and f"{root}/browse/{key}",
        }
    if "creation_time" in merged:
        # Bugzilla's first comment is the description, and `url` is not its page.
        comments = values_at(merged, "comments")
        first = dict_or_empty(comments[0]) if comments else {}
        merged = {"description": first.get("text")} | merged
        merged |= {"url": "", "comments": comments[1:]}
    return without_nulls(merged)


def without_nulls(value: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that aren't null, or NaN, which is pandas' null."""
    return {
        name: field
        for name, field in value.items()
        if field is not None and field == field
    }


def connected(value: object) -> object:
    """The items of a connection of GraphQL; any other value stays."""
    if not isinstance(value, dict):
        return value
    if "edges" in value:
        return values_at(value, "edges.node")
    return value.get("nodes", value)


def cells_of(row: SourceRow, columns: Columns, *, are_links: bool = False) -> Cells:
    """The values of each role in a row of tickets or links."""
    kind = other_kind(row.names)
    if kind and not columns:
        raise Malformed(
            f"is {kind}; import only tickets, or give their columns with --columns"
        )
    cells = cells_by_role(row.names, row.values, columns)
    is_link = are_links or ("title" not in cells and "duplicate_of" in cells)
    missing = [role for role in (LINK if is_link else TICKET) if role not in cells]
    if missing:
        flag = "--link-columns" if are_links else "--columns"
        raise Malformed(_missing_columns(missing, row.names, columns, flag))
    if is_link:
        return {role: cells[role] for role in LINK_ROLES if role in cells}
    return cells


def _missing_columns(
    missing: Sequence[str], names: Iterable[str], columns: Columns, flag: str
) -> str:
    """Which roles have no column, and what to do."""
    fault = f"no column for {', '.join(missing)}"
    wrong = [role for role in missing if role in columns]
    if wrong:
        fault = f"no column {columns[wrong[0]]!r} for {wrong[0]}"
    named = one_line(", ".join(names), 400) or "(none)"
    mapping = ",".join(f"{role}=NAME" for role in missing)
    return f"{fault}; the columns are {named}: rename columns, or give {flag} {mapping}"


def other_kind(names: Iterable[str]) -> str:
    """What an object with these keys is instead of a ticket; empty if unknown."""
    for name in names:
        if name in _OTHER_KINDS:
            return _OTHER_KINDS[name]
    return ""


def cells_by_role(
    names: tuple[str, ...], values: Sequence[object], columns: Columns | None = None
) -> Cells:
    """The values of each role that has a column or key."""
    indices = roles_of(names, tuple((columns or {}).items()))
    return {role: [values[place] for place in indices[role]] for role in indices}


@lru_cache(100)
def roles_of(
    names: tuple[str, ...], columns: tuple[tuple[str, str], ...] = ()
) -> dict[str, list[int]]:
    """The indices of each role's columns; `columns` maps roles to names."""
    mapping = dict(columns)
    stripped: dict[str, list[int]] = {}
    normalised: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        stripped.setdefault(name.strip(), []).append(index)
        normalised.setdefault(_normalised(name), []).append(index)
    by_role = {}
    for role, known in ROLES.items():
        indices = []
        if role in mapping:
            indices = stripped.get(mapping[role], [])
        else:
            for name in known:
                indices = indices + normalised.get(name, [])
        if indices:
            by_role[role] = indices[:1] if role in TICKET else indices
    return by_role


def _normalised(name: str) -> str:
    """A name such as `System.CreatedDate` or `Created At (UTC)` as in `ROLES`."""
    last = re.sub(r"^[\w.]+\.(?=\w)|\(UTC\)$", "", comparable(name).strip())
    parts = re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", last))
    return " ".join(parts).lower() or last


def values_at(value: object, path: str) -> list[object]:
    """The values at a dotted path, through lists and without nulls."""
    values = [value]
    for name in path.split("."):
        items: list[Any] = []
        for parent in values:
            if isinstance(parent, dict):
                field = parent.get(name)
                items += field if isinstance(field, list) else [field]
        values = [item for item in items if item is not None]
    return values


def dict_or_empty(value: object) -> dict[str, object]:
    """The value, or an empty dict in place of another type."""
    return value if isinstance(value, dict) else {}


def plain_id(text: str) -> str:
    """Remove the `#`, and the `.0` that tools add if a column has empty cells."""
    text = text.removeprefix("#")
    return text.removesuffix(".0") if text.removesuffix(".0").isdecimal() else text


def texts_of(cells: Cells, role: str) -> list[str]:
    """The texts of a role's cells, which may be lists."""
    values = []
    for cell in cells.get(role, ()):
        values += cell if isinstance(cell, list) else [cell]
    texts = [cell_text(value).strip() for value in values]
    return [text for text in texts if text]


def one_text(cells: Cells, role: str) -> str:
    """The first text of a role's cells."""
    for cell in cells.get(role, ()):
        text = cell_text(cell).strip()
        if text:
            return text
    return ""


def cell_text(cell: object) -> str:
    """A cell as text: the name of a person, the words of Jira's rich text; empty for unknown types."""
    if isinstance(cell, dict):
        names = [cell[key] for key in _PERSON if isinstance(cell.get(key), str)]
        name = whole_text(names[0]) if names else ""
        return name or "".join(_rich_text(cell)).strip()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, date):
        return cell.isoformat()
    is_plain = isinstance(cell, str | int | float) and not isinstance(cell, bool)
    is_text = is_plain and cell == cell  # not NaN
    return whole_text(str(cell)) if is_text else ""


def _rich_text(tree: object) -> Iterator[str]:
    """The words of a text in the tree format of version 3 of Jira's API."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack += reversed(node)
        elif isinstance(node, dict):
            attrs = dict_or_empty(node.get("attrs"))
            text = ""
            # The node's own text counts before its attributes.
            for named in (attrs.get("url"), attrs.get("text"), node.get("text")):
                if named and isinstance(named, str):
                    text = whole_text(named)
            is_struck = text.strip() != "" and "strike" in values_at(node, "marks.type")
            yield f"~~{text}~~" if is_struck else text
            kind = cell_text(node.get("type"))
            tag = _RICH_TAGS.get(kind, "")
            yield tag
            stack += ["\n" if kind in _BLOCKS else "", tag, node.get("content")]
        elif node in _MARKS:
            yield node
