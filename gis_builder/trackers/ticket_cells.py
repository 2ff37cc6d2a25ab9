"""Tickets from the rows of tables and the JSON objects of other trackers than GitHub.

The first part declares what is recognised: names of columns and keys, wrappers, lists of links and of
comments, and objects that are not tickets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from gis_builder.store.decoding import Malformed, whole_text
from gis_builder.store.issue_records import Comment, Issue
from pairkit.base.printable import one_line

# Names of each role's columns and keys, in lower case and without punctuation. The first that exists is used,
# and if it is empty, the next. `comments` are Jira's: time, author and text, separated by semicolons; `links`
# are of several kinds, such as "Duplicates #12".
_NAMES = """
id: issue key, key, id readable, identifier, bug id, ticket id, ticket num, task id, iid, issue id,
    number, nr, ticket, id, id1, #
title: title, summary, subject, short description, task name
body: body, description, text, repro steps, task content, content, description text, note, notes
created_at: created at, created, creation time, opened, time, opened at, created on, created date,
    created time, date created, date submitted, sys created on, creation date, timestamp
closed_at: closed at, closed, resolved, resolutiondate, cf last resolved, solved at, closed on, closed
    date, resolved at, closed time, resolved time, completed at, completed, canceled, resolved date,
    date closed
updated_at: updated at, updated, changed, last change time, updated on, changed date, mod date, date
    last updated, sys updated on, last update time, last modified, changetime
state: state, status
resolution: resolution, close code, resolution code
priority: priority, importance
author: author username, author, reporter, creator, requester, reported by, created by, opened by,
    caller, user
labels: labels, tags, component, keywords
url: web url, url, web link
repo: repo, repository, project key, product
duplicate_of: duplicate of, dupe of, merged into, id2, outward issue link duplicate, duplicate of link
duplicated_by: duplicated by, is duplicated by, has duplicate, inward issue link duplicate
comments: comment
links: related issues, linked issues
"""
_LINES = _NAMES.strip().replace("\n    ", " ").splitlines()
ROLES = {role: tuple(names.split(", ")) for role, _, names in (line.partition(": ") for line in _LINES)}
TICKET, LINK = ("id", "title", "created_at"), ("id", "duplicate_of")  # required roles

# Keys of the list of tickets in an answer of an API or in an export.
_WRAPPER = re.compile(
    "issues?|bugs?|tickets?|items|data|records?|results?|values?|entries|nodes|rows", re.IGNORECASE
)
_COMMENTS = ("comment.comments", "comments", "journals", "notes", "discussion_thread.posts")


class _LinkRule(NamedTuple):
    """Where a tracker keeps formal links; paths within an item of `items`."""

    items: str
    target: str
    relation: str = ""  # its words; without a path every item is a duplicate mark
    when: tuple[str, str] = ("", "")  # a condition: path and value
    source: str = ""  # by default the ticket itself


_LINK_RULES = (
    _LinkRule("issuelinks", "outwardIssue.key", "type.outward"),  # Jira
    _LinkRule("issuelinks", "inwardIssue.key", "type.inward"),
    _LinkRule("links", "issues.idReadable", "linkType.sourceToTarget", ("direction", "OUTWARD")),  # YouTrack
    _LinkRule("links", "issues.idReadable", "linkType.targetToSource", ("direction", "INWARD")),
    _LinkRule("relations", "issue_to_id", "relation_type", source="issue_id"),  # Redmine
    _LinkRule("relations", "url", "rel"),  # Azure DevOps
    _LinkRule("relationships", "issue.id", "type.name"),  # Mantis
    _LinkRule("_links", "closed_as_duplicate_of"),  # GitLab's API
    _LinkRule("notes", "note", "note", ("system", "True")),  # GitLab's project export
)
_HAS_DUPLICATE = re.compile(r"duplicated\b|has.duplicate|duplicate of this|duplicate-forward", re.IGNORECASE)
_IS_DUPLICATE = re.compile(r"duplicates|duplicate.of|duplicate-reverse", re.IGNORECASE)

# Objects with id, title and time that are not tickets, or lack something, by a key that tickets lack.
_OTHER_KINDS = {
    **dict.fromkeys(("source_branch", "merge_status", "merged_at"), "a merge request, not a ticket"),
    **dict.fromkeys(("expired", "due_on"), "a milestone, not a ticket"),
    "tag_name": "a release, not a ticket",
    "start_date_is_fixed": "an epic, not a ticket",
    **dict.fromkeys(("idBoard", "cards"), "of Trello, whose cards have no time of creation"),
    "phid": "of Phabricator, which is not supported; convert it to CSV",
    "bug_link": "a task of Launchpad; save the bugs at its bug_link",
    **dict.fromkeys(
        ("author_association", "node_id", "pull_request", "stateReason", "state_reason"),
        "a row of GitHub's issues; save them as JSON, such as with the GitHub CLI",
    ),
}

_CLOSED = re.compile(
    r"(?:closed?|resolved|done|complet(?:ed?)?|solved|verified|fixed|duplicated?|rejected|cancell?ed|merged"
    r"|geschlossen|erledigt|gelöst|ferm[ée]e?|résolue?|cerrad[oa]|resuelt[oa]|fechad[oa]|resolvid[oa]|chius[oa]"
    r"|risolt[oa]|zamkni[ęe]t[ye]|gesloten|opgelost|kapalı|закрыта?о?|реш[её]но?|已关闭|已解决|完了|解決済み?|종료|완료)"
    r"(?:[-_ :(].*)?"
)
_UNRESOLVED = ("", "none", "unresolved", "open", "reopened")
_DUPLICATE = re.compile(r"(?:closed[-_ ]*)?\(?dup(?:e|licated?)?\)?", re.IGNORECASE)
_ID = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,200}")
_OR_SKIP = "or give --skip-broken"
_GITLAB_API = re.compile(r"projects/([0-9]+)/issues/([0-9]+)$")
_PERSON = ("username", "name", "displayName", "display_name", "display_value", "login", "key", "identifier")
_BLOCKS = {"paragraph", "heading", "codeBlock", "listItem", "hardBreak"}  # of Jira's rich text

Columns: TypeAlias = Mapping[str, str]
Cells: TypeAlias = dict[str, list[Any]]  # by role
TimeOf: TypeAlias = Callable[[str], str]  # a time as a stamp


class Ticket(NamedTuple):
    """A ticket or, without `issue`, a row of links; with its tracker's ids."""

    id: str
    links: tuple[tuple[str, str], ...]  # duplicate and original, as the tracker writes them
    issue: Issue | None = None  # without repository and number
    url: str = ""
    repo: str = ""  # owner/name, a name or empty
    priority: str = ""
    comments: tuple[Comment, ...] = ()


def objects_in(value: Any, depth: int = 4) -> list[Any]:
    """The objects in a wrapper such as `{"issues": [...]}`, or the value itself."""
    if not isinstance(value, dict) or not depth or "title" in roles_of(tuple(flat(value))):
        return [value]
    key = next(
        (key for key, own in value.items() if _WRAPPER.fullmatch(key) and isinstance(own, list | dict)), None
    )
    if key is None or "key" in value:
        return [value]
    items = value[key] if isinstance(value[key], list) else [value[key]]
    found = [one for item in items for one in objects_in(item, depth - 1)]
    comments: dict[str, list[Any]] = {}  # Bitbucket's are beside the issues
    for comment in value["comments"] if isinstance(value.get("comments"), list) else ():
        comments.setdefault(cell_text(_dict(comment).get("issue")), []).append(comment)
    own = [comments.get(cell_text(_dict(one).get("id"))) for one in found]
    return [one | {"comments": more} if more else one for one, more in zip(found, own, strict=True)]


def flat(value: Mapping[str, Any]) -> dict[str, Any]:
    """An object with the fields of nested objects, and without nulls."""
    custom = {
        cell_text(item.get("name")): item.get("value") for item in map(_dict, _at(value, "customFields"))
    }
    merged = {**custom, **value, **_dict(value.get("fields")), **_dict(value.get("attributes"))}
    if "fields" in value and "key" in value:  # Jira
        key, root = cell_text(value["key"]), cell_text(value.get("self")).partition("/rest/")[0]
        merged |= {"repo": key.rpartition("-")[0], "web url": root and f"{root}/browse/{key}"}
    comments = _at(merged, "comments")
    if "creation_time" in merged:  # Bugzilla's first comment is the description, and `url` is not its page
        merged = {"description": _dict(next(iter(comments), None)).get("text")} | merged
        merged |= {"url": "", "comments": comments[1:]}
    return {name: own for name, own in merged.items() if own is not None}


def cells_of(value: Any, columns: Columns, *, are_links: bool) -> Cells:
    """The values of each role in a row of a table or in a JSON object."""
    if not isinstance(value, dict | tuple):
        raise Malformed(f"{type(value).__name__}, expected a JSON object")
    names, values = (tuple(value), tuple(value.values())) if isinstance(value, dict) else value
    if (other := other_kind(names)) and not columns:
        raise Malformed(f"is {other}; import only tickets, or give their columns with --columns")
    indices = roles_of(names, tuple(columns.items()))
    is_link = are_links or ("title" not in indices and "duplicate_of" in indices)
    for role in LINK if is_link else TICKET:
        if role not in indices:
            flag = "--link-columns" if are_links else "--columns"
            what = f"no column {columns[role]!r} for {role}" if role in columns else f"no column for {role}"
            present = one_line(", ".join(names), 400) or "(none)"
            raise Malformed(f"{what}; the columns are {present}: rename one, or give {flag} {role}=NAME")
    return {role: [values[n] for n in indices[role]] for role in (LINK if is_link else indices)}


def other_kind(names: Iterable[str]) -> str:
    """What an object with these keys is instead of a ticket; empty if unknown."""
    return next((_OTHER_KINDS[name] for name in names if name in _OTHER_KINDS), "")


@lru_cache(100)
def roles_of(names: tuple[str, ...], columns: tuple[tuple[str, str], ...] = ()) -> dict[str, list[int]]:
    """The indices of each role's columns; `columns` maps roles to names."""
    normalised = [_normalised(name) for name in names]
    mapping, by_role = dict(columns), {}
    for role, known in ROLES.items():
        if role in mapping:
            indices = [index for index, name in enumerate(names) if name.strip() == mapping[role]]
        else:
            indices = [index for name in known for index, own in enumerate(normalised) if own == name]
        if indices:
            by_role[role] = indices[:1] if role in TICKET else indices
    return by_role


def _normalised(name: str) -> str:
    """A name such as `System.CreatedDate` or `Created At (UTC)` as in `ROLES`."""
    last = re.sub(r"^[\w.]+\.(?=\w)|\(UTC\)$", "", name.strip())
    words = re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", last))
    return " ".join(words).lower() or last


def read_ticket(cells: Cells, value: Any, time_of: TimeOf) -> Ticket:
    """The ticket, or only its links, in the cells of a row or object."""
    own_id = _id(cells)
    links = [(own_id, text) for text in _texts(cells, "duplicate_of")]
    links += [(text, own_id) for text in _texts(cells, "duplicated_by")]
    for part in _several(cells, "links"):
        links += _directed(part, own_id, part)
    if isinstance(value, dict):
        formal = [*_formal_links(value, own_id)]
        # GitLab's id in the database: an export has only the number, in a system note.
        links += formal or [(own_id, f"duplicated_to_id={n}") for n in _at(value, "duplicated_to_id")]
    link = Ticket(own_id, tuple(dict.fromkeys(links)))
    if "title" not in cells:
        return link
    title, state, resolution = (one_text(cells, role) for role in ("title", "state", "resolution"))
    if not title:
        raise Malformed(f"title: empty; fill it in, {_OR_SKIP}")
    created_at, closed_at = _required_time(cells, time_of), _time(cells, "closed_at", time_of)
    updated_at = _time(cells, "updated_at", time_of) or closed_at or created_at
    is_resolved = resolution.strip("-").lower() not in _UNRESOLVED
    has_word = any(map(str.isalpha, state))  # ServiceNow and Freshdesk number their states
    is_closed = is_resolved or bool(_CLOSED.fullmatch(state.lower()) if has_word else closed_at)
    is_duplicate = any(map(_DUPLICATE.fullmatch, (state, resolution)))
    issue = Issue(
        repo="",
        number=0,
        title=title,
        body=one_text(cells, "body"),
        state="closed" if is_closed else "open",
        state_reason=("duplicate" if is_duplicate else "completed") if is_closed else None,
        author=one_text(cells, "author") or None,
        author_association="NONE",
        created_at=created_at,
        updated_at=updated_at,
        closed_at=(closed_at or updated_at) if is_closed else None,
        closed_by=None,
        labels=_several(cells, "labels"),
    )
    url, repo, priority = (one_text(cells, role) for role in ("url", "repo", "priority"))
    return Ticket(own_id, link.links, issue, url, repo, priority, tuple(_comments(cells, value, time_of)))


def _comments(cells: Cells, value: Any, time_of: TimeOf) -> Iterator[Comment]:
    if isinstance(value, dict):
        items = next((found for path in _COMMENTS if (found := _at(value, path))), [])
    else:
        parts = (text.split(";", 2) for text in _texts(cells, "comments"))
        items = [dict(zip(("created", "author", "text"), part, strict=False)) for part in parts]
    for number, item in enumerate(map(_dict, items), 1):
        own = {
            role: [[*item.values()][n] for n in indices] for role, indices in roles_of(tuple(item)).items()
        }
        body = one_text(own, "body")
        if (body or "created_at" not in own) and item.get("system") is not True:
            try:
                when = _required_time(own, time_of)
            except Malformed:
                if isinstance(value, dict):
                    raise
                continue  # another column of remarks
            yield Comment(number, one_text(own, "author") or None, "NONE", when, body)


def _formal_links(value: Mapping[str, Any], own_id: str) -> Iterator[tuple[str, str]]:
    for rule in _LINK_RULES:
        for item in _at(value, rule.items):
            path, wanted = rule.when
            if path and [str(one) for one in _at(item, path)] != [wanted]:
                continue
            words = " ".join(map(cell_text, _at(item, rule.relation))) if rule.relation else "duplicate of"
            source = next(map(cell_text, _at(item, rule.source)), own_id) if rule.source else own_id
            for target in map(cell_text, _at(item, rule.target)):
                marked = _GITLAB_API.search(target)
                is_own = marked is not None and marked[1] == cell_text(value.get("project_id"))
                yield from _directed(words, source, marked[2] if marked and is_own else target)


def _directed(words: str, source: str, target: str) -> list[tuple[str, str]]:
    """The link in the direction that its words have; empty if they are not about duplicates."""
    if not target:
        return []
    if _HAS_DUPLICATE.search(words):
        return [(target, source)]
    return [(source, target)] if _IS_DUPLICATE.search(words) else []


def _at(value: Any, path: str) -> list[Any]:
    """The values at a dotted path, through lists and without nulls."""
    found = [value]
    for name in path.split("."):
        inner = [item.get(name) for item in found if isinstance(item, dict)]
        every = [one for item in inner for one in (item if isinstance(item, list) else [item])]
        found = [one for one in every if one is not None]
    return found


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _id(cells: Cells) -> str:
    text = plain_id(one_text(cells, "id"))
    if not _ID.fullmatch(text):
        raise Malformed(f"id: expected one line of 1 to 200 characters; fix it, {_OR_SKIP}")
    return text


def plain_id(text: str) -> str:
    """Remove the `#`, and the `.0` that tools add if a column has empty cells."""
    text = text.removeprefix("#")
    return text.removesuffix(".0") if text.removesuffix(".0").isdecimal() else text


def _texts(cells: Cells, role: str) -> list[str]:
    """The texts of a role's cells, which may be lists."""
    values = [one for cell in cells.get(role, ()) for one in (cell if isinstance(cell, list) else [cell])]
    return [text for text in map(str.strip, map(cell_text, values)) if text]


def _several(cells: Cells, role: str) -> tuple[str, ...]:
    """The parts of a role's texts, which may have separators."""
    parts = (part.strip() for text in _texts(cells, role) for part in re.split(r"[,;|\n]", text))
    return tuple(dict.fromkeys(part for part in parts if part))


def one_text(cells: Cells, role: str) -> str:
    """The first text of a role's cells."""
    return next((text for cell in cells.get(role, ()) if (text := cell_text(cell).strip())), "")


def cell_text(cell: Any) -> str:
    """A cell as text: the name of a person, the words of Jira's rich text; empty for unknown types."""
    if isinstance(cell, dict):
        name = next((cell[name] for name in _PERSON if isinstance(cell.get(name), str)), "")
        return whole_text(name) or "".join(_rich_text(cell)).strip()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, date):
        return cell.isoformat()
    is_plain = isinstance(cell, str | int | float) and not isinstance(cell, bool)
    return whole_text(str(cell)) if is_plain else ""


def _rich_text(tree: Any) -> Iterator[str]:
    """The words of a text in the tree format of version 3 of Jira's API."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack += reversed(node)
        elif isinstance(node, dict):
            attrs = _dict(node.get("attrs"))
            texts = (node.get("text"), attrs.get("text"), attrs.get("url"))
            yield whole_text(next((text for text in texts if text and isinstance(text, str)), ""))
            stack += ["\n" if cell_text(node.get("type")) in _BLOCKS else "", node.get("content")]
        elif node == "\n":
            yield node


def _time(cells: Cells, role: str, time_of: TimeOf) -> str | None:
    text = one_text(cells, role)
    try:
        return time_of(text) if text else None
    except Malformed as error:
        raise Malformed(f"{role}: {error}") from None


def _required_time(cells: Cells, time_of: TimeOf) -> str:
    time = _time(cells, "created_at", time_of)
    if time is None:
        raise Malformed(f"created_at: empty; fill it in, {_OR_SKIP}")
    return time
