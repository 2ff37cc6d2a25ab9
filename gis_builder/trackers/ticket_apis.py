"""Jira's, GitLab's and Bugzilla's JSON as plain cells: what a ticket, comment or link has for each role."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, TypeAlias

from gis_builder.store.decoding import whole_text

Cells: TypeAlias = dict[str, list[Any]]  # see `ticket_files.ROLES`
Record: TypeAlias = tuple[str, Cells]  # "ticket", "comment" or "link"

_JIRA = {"title": "summary", "body": "description", "created_at": "created", "closed_at": "resolutiondate"}
_JIRA |= {"updated_at": "updated", "state": "status", "author": "reporter"}
_JIRA |= {role: role for role in ("resolution", "labels")}
_GITLAB = {"id": "iid", "body": "description", "url": "web_url"}
_GITLAB |= {role: role for role in ("title", "state", "author", "labels")}
_GITLAB |= {role: role for role in ("created_at", "closed_at", "updated_at")}
_GITLAB_PAGE = re.compile(r"https?://[^/]+/(.{1,400}?)(?:/-)?/(?:issues|work_items)/[0-9]+")
_GITLAB_MARK = re.compile(r"marked this issue as a duplicate of ([\w./-]{0,200})#([0-9]{1,9})")
_GITLAB_API = re.compile(r"projects/[0-9]+/issues/[0-9]+$")
_BUGZILLA = {"id": "id", "title": "summary", "body": "description", "created_at": "creation_time"}
_BUGZILLA |= {"closed_at": "cf_last_resolved", "updated_at": "last_change_time", "state": "status"}
_BUGZILLA |= {"resolution": "resolution", "author": "creator", "labels": "component"}
_BUGZILLA |= {"duplicate_of": "dupe_of"}
_COMMENT = {"body": ("body", "text"), "author": ("author", "creator"), "id": ("id",)}
_COMMENT |= {"created_at": ("created_at", "created", "creation_time", "time")}
_NAMES = ("username", "name", "displayName")  # of a person, or of what else has a name
_BLOCKS = {"paragraph", "heading", "codeBlock", "listItem", "hardBreak", "tableRow"}  # of Jira's texts


def text_of(cell: Any) -> str:
    """A cell as text: of an object its name, of a tree of Jira its words, and of anything else nothing."""
    if isinstance(cell, dict):
        name = next((cell[name] for name in _NAMES if isinstance(cell.get(name), str)), "")
        return whole_text(name) or "".join(_words(cell)).strip()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, date):
        return cell.isoformat()
    return whole_text(str(cell)) if isinstance(cell, str | int | float) else ""


def _words(tree: Any) -> Iterator[str]:
    """The words of a text as Jira has it since version 3 of its API."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack += reversed(node)
        elif isinstance(node, dict):
            shown = (_at(node, "text"), _at(node, "attrs", "text"), _at(node, "attrs", "url"))
            yield next((whole_text(text) for text in shown if isinstance(text, str)), "")
            stack += ["\n"] if _at(node, "type") in _BLOCKS else []
            stack.append(_at(node, "content"))
        elif node == "\n":
            yield node


def records_in(value: Mapping[str, Any]) -> Iterator[Record] | None:
    """The records in a value of Jira, GitLab or Bugzilla; None for another value."""
    issues, bugs = value.get("issues"), value.get("bugs")
    if "fields" in value and "key" in value:
        return _jira(value)
    if isinstance(issues, list) and any(_at(one, "fields") for one in issues):
        return (record for one in issues for record in _jira(one))
    if "iid" in value and "web_url" in value:
        return _gitlab(value)
    if "noteable_iid" in value and "body" in value:
        return _note(value, _gitlab_name(value, "noteable_iid"))
    if isinstance(bugs, list):
        return (record for bug in bugs for record in _bug(bug))
    if isinstance(bugs, dict):
        return (_bug_comment(one) for thread in bugs.values() for one in _list(thread, "comments"))
    return _bug(value) if "summary" in value and "creation_time" in value else None


def _at(value: Any, *path: str) -> Any:
    """What a value has at a path; None where there is nothing."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _list(value: Any, *path: str) -> list[Any]:
    found = _at(value, *path)
    return found if isinstance(found, list) else []


def _comment(value: Any) -> Cells:
    found = {role: [_at(value, name) for name in names] for role, names in _COMMENT.items()}
    return {role: list(filter(None, cells)) or [None] for role, cells in found.items()}


def _jira(issue: Any) -> Iterator[Record]:
    key, root = text_of(_at(issue, "key")), text_of(_at(issue, "self")).partition("/rest/")[0]
    targets: dict[str, list[Any]] = {"duplicate_of": [], "duplicated_by": []}
    for link in _list(issue, "fields", "issuelinks"):
        way = "outward" if _at(link, "outwardIssue") else "inward"
        verb = text_of(_at(link, "type", way)).lower()
        if "duplicat" in (verb or text_of(_at(link, "type")).lower()):
            is_target = "duplicated by" not in verb if verb else way == "outward"
            targets["duplicate_of" if is_target else "duplicated_by"].append(_at(link, f"{way}Issue", "key"))
    own: Cells = {
        "id": [key],
        "url": [f"{root}/browse/{key}" if root else ""],
        "repo": [f"{root.partition('://')[2].partition('/')[0]}/{key.rpartition('-')[0]}"],
        "comments": [_comment(one) for one in _list(issue, "fields", "comment", "comments")],
    }
    yield "ticket", {role: [_at(issue, "fields", name)] for role, name in _JIRA.items()} | own | targets


def _gitlab(issue: Any) -> Iterator[Record]:
    home = _GITLAB_PAGE.match(text_of(_at(issue, "web_url")))
    owner, _, name = home[1].rpartition("/") if home else ("", "", "")
    marked = _GITLAB_API.search(text_of(_at(issue, "_links", "closed_as_duplicate_of")))
    alias = _gitlab_name(issue, "iid")
    own: Cells = {
        "repo": [f"{owner.replace('/', '.')}/{name}"],
        "aliases": [alias, _at(issue, "references", "full")],
        "duplicate_of": [marked[0]] if marked else [],
    }
    yield "ticket", {role: [_at(issue, name)] for role, name in _GITLAB.items()} | own
    for note in _list(issue, "notes"):
        yield from _note(note, alias)


def _gitlab_name(value: Any, number: str) -> str:
    """An issue's name in addresses of the API."""
    return f"projects/{text_of(_at(value, 'project_id'))}/issues/{text_of(_at(value, number))}"


def _note(note: Any, alias: str) -> Iterator[Record]:
    if not _at(note, "system"):
        yield "comment", {"ticket": [alias]} | _comment(note)
    elif marked := _GITLAB_MARK.match(text_of(_at(note, "body"))):
        home = f"{marked[1]}#" if marked[1] else f"{alias.rpartition('/')[0]}/"
        yield "link", {"id": [alias], "duplicate_of": [home + marked[2]]}


def _bug(bug: Any) -> Iterator[Record]:
    own = {"repo": [f"bugzilla/{text_of(_at(bug, 'product'))}"]}
    yield "ticket", {role: [_at(bug, name)] for role, name in _BUGZILLA.items()} | own


def _bug_comment(one: Any) -> Record:
    return "comment", {"ticket": [_at(one, "bug_id")], "place": [_at(one, "count")]} | _comment(one)
