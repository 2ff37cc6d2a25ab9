"""Reads tickets of other trackers than GitHub: rows of tables, and JSON of Jira, GitLab and Bugzilla.

Each row is a ticket or, in a table without titles, a link: `id` is a duplicate of `duplicate_of`. The names
in `ROLES` match columns of tables and keys of JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from gis_builder.store.decoding import Malformed, stamp, whole_text
from gis_builder.store.records import Comment, Issue
from gis_builder.trackers.saved import is_known, values
from pairkit.app.errors import DataError
from pairkit.app.printable import one_line
from pairkit.dataset.separated import records
from pairkit.dataset.tables import SHEETS, first_row, format_of, read_table
from pairkit.system.lines import read_objects

# Names of each role's columns and keys, in lower case and without punctuation. The first that exists is used.
ROLES: dict[str, tuple[str, ...]] = {
    "id": ("issue key", "key", "bug id", "ticket id", "iid", "issue id", "number", "nr", "id", "id1"),
    "title": ("title", "summary", "subject"),
    "body": ("body", "description", "text"),
    "created_at": ("created at", "created", "creation time", "opened", "time"),
    "closed_at": ("closed at", "closed", "resolved", "resolutiondate", "cf last resolved", "solved at"),
    "updated_at": ("updated at", "updated", "changed", "last change time"),
    "state": ("state", "status"),
    "resolution": ("resolution",),
    "author": ("author username", "author", "reporter", "creator", "requester"),
    "labels": ("labels", "tags", "component"),
    "url": ("web url", "url"),
    "repo": ("repo", "repository", "project key", "product"),
    "duplicate_of": ("duplicate of", "dupe of", "merged into", "id2", "outward issue link duplicate"),
}
_SEVERAL = ("labels", "duplicate_of")  # Jira repeats these columns, one value in each
_TICKET, _LINK = ("id", "title", "created_at"), ("id", "duplicate_of")  # required roles
_KINDS = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson", ".json", *SHEETS)
_CLOSED = re.compile(r"closed?|resolved|done|solved|verified|fixed|duplicated?|rejected|cancell?ed|merged")
_UNRESOLVED = ("", "none", "unresolved")
_DUPLICATE = re.compile(r"dup(?:e|licated?)?", re.IGNORECASE)
_DUPLICATES = re.compile(r"duplicates|duplicate of", re.IGNORECASE)  # the link of a duplicate in Jira
_ID = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,200}")
# In addition to ISO 8601: Jira's formats, and German ones.
_TIMES = ("%d/%b/%y %H:%M", "%d/%b/%y %I:%M %p", "%d.%m.%Y %H:%M", "%d.%m.%Y")
_OR_SKIP = "or give --skip-broken (skip_broken=True)"
_OF_GITHUB = {"author_association", "node_id", "pull_request", "stateReason", "state_reason"}
_GITLAB_API = re.compile(r"projects/([0-9]+)/issues/([0-9]+)$")
_PERSON = ("username", "name", "displayName")
_BLOCKS = {"paragraph", "heading", "codeBlock", "listItem", "hardBreak"}  # of Jira's rich text


class Ticket(NamedTuple):
    """A ticket or a link, with its tracker's ids."""

    id: str
    duplicate_of: tuple[str, ...]
    issue: Issue | None = None  # without repository and number; None for a link
    url: str = ""
    repo: str = ""  # owner/name, a name or empty
    comments: tuple[Comment, ...] = ()


Columns: TypeAlias = Mapping[str, str]
Broken: TypeAlias = Callable[[DataError], None]
Cells: TypeAlias = dict[str, list[Any]]  # by role


def file_kind(path: Path) -> str:
    """The suffix of a file that may contain tickets, without `.gz`; empty for other files."""
    kind = format_of(path)
    return kind if kind in _KINDS else ""


def contains_tickets(path: Path, columns: Columns) -> bool:
    """Whether the first row or value of a file is a ticket or a link."""
    _, first = next(_rows(path, lambda _: None), (0, None))
    if isinstance(first, dict) and (is_known(first) or first.keys() & _OF_GITHUB):
        return False
    if isinstance(first, dict) and "/repos/" in _text(first.get("url")):  # such as GitHub's milestones
        return False
    try:
        return bool(_records(first, columns, are_links=False))
    except Malformed:
        return False


def read_parts(path: Path, columns: Columns, broken: Broken, *, are_links: bool = False) -> Iterator[Ticket]:
    """Read the tickets and links of a file; `broken` gets the errors and may raise them."""
    try:
        for row, value in _rows(path, broken):
            try:
                records = _records(value, columns, are_links=are_links)
            except Malformed as error:
                is_table = isinstance(value, tuple)
                broken(DataError(str(error), path=path, row=None if is_table else row))
                if is_table:  # the error is a missing column, so it holds for all rows
                    return
                continue
            for cells in records:
                try:
                    yield _ticket(cells)
                except Malformed as error:
                    broken(DataError(str(error), path=path, row=row))
    except DataError as error:
        broken(error)


def _rows(path: Path, broken: Broken) -> Iterator[tuple[int, Any]]:
    """Yield numbered rows: JSON objects as they are, rows of tables as column names and cells."""
    kind = file_kind(path)
    if kind == ".json":
        yield from values(path)
    elif kind in (".jsonl", ".ndjson"):
        yield from read_objects(path, broken)
    elif kind in (".csv", ".tsv"):
        found = records(path, broken)
        names = tuple(next(found, (1, []))[1])
        rows = ((row, cells + [""] * (len(names) - len(cells))) for row, cells in found if cells)
        yield from ((row, (names, cells)) for row, cells in rows)
    else:
        frame = read_table(path)
        names = tuple(frame.columns)
        yield from ((row, (names, cells)) for row, cells in enumerate(frame.iter_rows(), first_row(path)))


def _records(value: Any, columns: Columns, *, are_links: bool) -> list[Cells]:
    """The records in a row of a table or in a JSON object."""
    if isinstance(value, dict):
        if not are_links and (tickets := _of_api(value)) is not None:
            return tickets
        value = tuple(value), tuple(value.values())
    if not isinstance(value, tuple):
        raise Malformed(f"{type(value).__name__}, expected a JSON object")
    names, cells = value
    indices = _columns_by_role(names, tuple(columns.items()))
    is_link = are_links or ("title" not in indices and "duplicate_of" in indices)
    for role in _LINK if is_link else _TICKET:
        if role not in indices:
            what = f"no column {columns[role]!r} for {role}" if role in columns else f"no column for {role}"
            present = one_line(", ".join(names), 400) or "(none)"
            raise Malformed(
                f"{what}; the columns are {present}: rename one, or give --columns {role}=NAME (columns=)"
            )
    roles = _LINK if is_link else indices
    return [{role: [cells[n] for n in indices[role]] for role in roles}]


@lru_cache(100)
def _columns_by_role(
    names: tuple[str, ...], columns: tuple[tuple[str, str], ...] = ()
) -> dict[str, list[int]]:
    """The indices of each role's columns; `columns` maps roles to names."""
    normalised = [" ".join(re.findall(r"[^\W_]+", name.lower().removesuffix("(utc)"))) for name in names]
    mapping, by_role = dict(columns), {}
    for role, known in ROLES.items():
        if role in mapping:
            indices = [index for index, name in enumerate(names) if name.strip() == mapping[role]]
        else:
            indices = [index for name in known for index, own in enumerate(normalised) if own == name]
        if indices:
            by_role[role] = indices if role in _SEVERAL else indices[:1]
    return by_role


def _of_api(value: Mapping[str, Any]) -> list[Cells] | None:
    """The tickets in a JSON object of Jira, GitLab or Bugzilla; None for other objects."""
    issues, bugs = value.get("issues"), value.get("bugs")
    if isinstance(issues, list) and any(_at(issue, "fields") for issue in issues):
        return [_jira(_dict(issue)) for issue in issues]
    if "fields" in value and "key" in value:
        return [_jira(value)]
    if "iid" in value and "web_url" in value:
        marked = _GITLAB_API.search(_text(_at(value, "_links", "closed_as_duplicate_of")))
        is_own = marked and marked[1] == _text(value.get("project_id"))
        return [_cells({**value, "duplicate of": marked[2] if marked and is_own else ""})]
    return [_bug(_dict(bug)) for bug in bugs] if isinstance(bugs, list) else None


def _jira(issue: Mapping[str, Any]) -> Cells:
    fields, key = _dict(issue.get("fields")), _text(issue.get("key"))
    root = _text(issue.get("self")).partition("/rest/")[0]
    own: dict[str, Any] = {"issue key": key, "web url": root and f"{root}/browse/{key}"}
    own |= {"repo": key.rpartition("-")[0], "duplicate of": []}
    for link in _list(fields, "issuelinks"):
        for direction in ("inward", "outward"):
            if _DUPLICATES.search(_text(_at(link, "type", direction))):
                own["duplicate of"].append(_at(link, f"{direction}Issue", "key"))
    return _cells({**fields, **own}, _list(fields, "comment", "comments"))


def _bug(bug: Mapping[str, Any]) -> Cells:
    """A bug of Bugzilla: its first comment is the description, and `url` is not its page."""
    first, *comments = _list(bug, "comments") or [None]
    return _cells({"description": _at(first, "text"), **bug, "url": ""}, comments)


def _cells(value: Mapping[str, Any], comments: Iterable[Any] = ()) -> Cells:
    """The values of each role in a JSON ticket."""
    own = tuple(value.values())
    cells = {role: [own[n] for n in indices] for role, indices in _columns_by_role(tuple(value)).items()}
    return {"title": [None]} | cells | {"comments": [_cells(_dict(comment)) for comment in comments]}


def _at(value: Any, *path: str) -> Any:
    """The value at a path of keys, or None."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _list(value: Any, *path: str) -> list[Any]:
    items = _at(value, *path)
    return items if isinstance(items, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _ticket(cells: Cells) -> Ticket:
    link = Ticket(_id(cells), _ids(cells, "duplicate_of"))
    if "title" not in cells:
        return link
    title, state, resolution = (_one(cells, role) for role in ("title", "state", "resolution"))
    if not title:
        raise Malformed(f"title: empty; fill it in, {_OR_SKIP}")
    created_at, closed_at = _required_time(cells, "created_at"), _time(cells, "closed_at")
    updated_at = _time(cells, "updated_at") or closed_at or created_at
    is_resolved = resolution.strip("-").lower() not in _UNRESOLVED
    is_closed = is_resolved or bool(_CLOSED.fullmatch(state.lower()) if state else closed_at)
    is_duplicate = any(map(_DUPLICATE.fullmatch, (state, resolution)))
    issue = Issue(
        repo="",
        number=0,
        title=title,
        body=_one(cells, "body"),
        state="closed" if is_closed else "open",
        state_reason=("duplicate" if is_duplicate else "completed") if is_closed else None,
        author=_one(cells, "author") or None,
        author_association="NONE",
        created_at=created_at,
        updated_at=updated_at,
        closed_at=(closed_at or updated_at) if is_closed else None,
        closed_by=None,
        labels=_several(cells, "labels"),
    )
    comments = tuple(_comment(own, number) for number, own in enumerate(cells.get("comments", ()), 1))
    return link._replace(issue=issue, url=_one(cells, "url"), repo=_one(cells, "repo"), comments=comments)


def _comment(cells: Cells, number: int) -> Comment:
    when = _required_time(cells, "created_at")
    return Comment(number, _one(cells, "author") or None, "NONE", when, _one(cells, "body"))


def _id(cells: Cells) -> str:
    text = _plain_id(_one(cells, "id"))
    if not _ID.fullmatch(text):
        raise Malformed(f"id: expected one line of 1 to 200 characters; fix it, {_OR_SKIP}")
    return text


def _ids(cells: Cells, role: str) -> tuple[str, ...]:
    """The ids in cells; of a URL, the last part."""
    texts = _several(cells, role)
    ids = (re.split(r"[/=]", text.rstrip("/"))[-1] if "://" in text else text for text in texts)
    return tuple(map(_plain_id, ids))


def _plain_id(text: str) -> str:
    """Remove the `#`, and the `.0` that tools add if a column has empty cells."""
    text = text.removeprefix("#")
    return text.removesuffix(".0") if text.removesuffix(".0").isdecimal() else text


def _several(cells: Cells, role: str) -> tuple[str, ...]:
    """All values of a role's cells, which may be lists or texts with separators."""
    values = [one for cell in cells.get(role, ()) for one in (cell if isinstance(cell, list) else [cell])]
    parts = (part.strip() for value in values for part in re.split(r"[,;|\n]", _text(value)))
    return tuple(dict.fromkeys(part for part in parts if part))


def _one(cells: Cells, role: str) -> str:
    return _text(cells.get(role, [None])[0]).strip()


def _text(cell: Any) -> str:
    """A cell as text: the name of a person, the words of Jira's rich text; empty for unknown types."""
    if isinstance(cell, dict):
        name = next((cell[name] for name in _PERSON if isinstance(cell.get(name), str)), "")
        return whole_text(name) or "".join(_rich_text(cell)).strip()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, date):
        return cell.isoformat()
    return whole_text(str(cell)) if isinstance(cell, str | int | float) else ""


def _rich_text(tree: Any) -> Iterator[str]:
    """The words of a text in the tree format of version 3 of Jira's API."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack += reversed(node)
        elif isinstance(node, dict):
            texts = (node.get("text"), _at(node, "attrs", "text"), _at(node, "attrs", "url"))
            yield whole_text(next((text for text in texts if text and isinstance(text, str)), ""))
            stack += ["\n" if _text(node.get("type")) in _BLOCKS else "", node.get("content")]
        elif node == "\n":
            yield node


def _time(cells: Cells, role: str) -> str | None:
    """Parse a time; without a zone it is UTC."""
    text = _one(cells, role).removesuffix("UTC").strip()
    for form in ("", *_TIMES) if text else ():
        try:
            moment = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
        except ValueError:
            continue
        return stamp(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    if text:
        raise Malformed(f"{role}: unknown time format; expected 2024-01-31 23:59; fix it, {_OR_SKIP}")
    return None


def _required_time(cells: Cells, role: str) -> str:
    time = _time(cells, role)
    if time is None:
        raise Malformed(f"{role}: empty; fill it in, {_OR_SKIP}")
    return time
