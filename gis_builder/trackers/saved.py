"""Reads JSON that other tools saved, as rows of REST objects (docs/formats/dump.md lists the layouts).

Every JSON file of a folder is read, and the layout of each value is recognised from its keys. If the first
value of a file has an unknown layout, such as the labels of a backup, the file is skipped and reported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from gis_builder.store.decoding import EVENT_KINDS, replace_surrogates
from gis_builder.trackers.ticket_cells import (
    connected,
    objects_in,
    other_kind,
    without_nulls,
)
from pairkit.base.errors import DataError
from pairkit.base.printable import one_line
from pairkit.base.system.text_lines import read_objects, read_whole
from pairkit.dataset.reading.tables import format_of

Object = dict[str, Any]
OnBroken = Callable[[DataError], None]  # gets the errors of rows, and may raise them
LINES = (".jsonl", ".ndjson")
Part = tuple[str, Object]  # "issues", "comments" or "events", and the REST object

ADDRESS = re.compile(
    r"(?:/repos|//[^/]+)/([^/]+/[^/]+)/(?:issues|pulls?)/([0-9]{1,8})(?:[/#]|$)"
)
_COMMENT = re.compile(r"#issuecomment-([0-9]{1,18})$")
GIVE_REPO = "give --repo owner/name"
_REST_NAMES = {"createdAt": "created_at", "authorAssociation": "author_association"}
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NEVER = "0001-"  # gh's year of a `closedAt` that is null
# The first character of the next value, or a bracket of an array, after blanks and commas.
_NEXT = re.compile(r"[^\s,]")


def saved_files(folder: Path) -> list[Path]:
    """The JSON files in a folder and below it, or the file itself."""
    if folder.is_file():
        return [folder]
    endings = (".json", ".json.gz")
    paths = [path for path in folder.rglob("*.json*") if path.name.endswith(endings)]
    return sorted(path for path in paths if not path.is_dir())


def is_saved(path: Path, repo: str | None, broken: OnBroken) -> bool:
    """Whether the first value of a file has a known layout; an empty file counts as known."""
    _, first = next(values(path, broken), (0, {"event": ""}))
    return any(parts is not None for _, parts in _unwrapped(first, repo))


def is_known(value: object, repo: str | None = None) -> bool:
    """Whether a value has a known layout; `repo` is the repository of values that name none."""
    return _parts(value, repo) is not None


def read_saved(
    path: Path, repo: str | None, broken: OnBroken
) -> Iterator[tuple[int, str, Object]]:
    """Yield row, kind and REST object of a file's values; reports unknown layouts to `broken`."""
    for row, value in values(path, broken):
        for item, parts in _unwrapped(value, repo):
            if parts is None:
                broken(DataError(_fault_of(item, repo), path=path, row=row))
                continue
            for kind, part in parts:
                yield row, kind, part


def _fault_of(value: object, repo: str | None) -> str:
    """Why a value can't be read, and what to do."""
    fault = "unknown layout"
    if repo is None and is_known(value, "owner/name"):
        return f"{fault}; {GIVE_REPO}"
    if isinstance(value, dict) and value:
        fault += f" (keys {one_line(', '.join(value), 100)})"
        if kind := other_kind(list(value)):
            fault = f"is {kind}"
    return f"{fault}; see `gis import --help`"


def parts_of(value: Object, repo: str | None, kind: str) -> Iterator[Part]:
    """The REST objects in a value; one of unknown layout is an object of this kind."""
    for _, parts in _unwrapped(value, repo):
        yield from [(kind, value)] if parts is None else parts


def _unwrapped(
    value: object, repo: str | None
) -> Iterator[tuple[Any, Iterator[Part] | None]]:
    """The value, or the objects of an unknown one, such as a search; each with its parts, see `_parts`."""
    parts = _parts(value, repo)
    if parts is not None or not isinstance(value, dict):
        yield value, parts
        return
    for item in _objects_in(value, repo):
        yield item, _parts(item, repo)


def _objects_in(value: Object, repo: str | None) -> list[Any]:
    """The objects of a search, an answer to a GraphQL query, or an issue with its thread beside it."""
    issue = value.get("issue")
    if isinstance(issue, dict):
        names = ("comments", "events", "timeline")
        return [issue | {name: value[name] for name in names if name in value}]
    objects = objects_in(value)
    if value.get("incomplete_results") or value.get("errors"):
        # First, because it is the cause of other faults in this answer.
        objects.insert(0, {"incomplete_results": True})
    beside = _dicts(value.get("comments")) + _dicts(value.get("events"))
    return objects + [item for item in beside if is_known(item, repo)]


def values(path: Path, broken: OnBroken) -> Iterator[tuple[int, object]]:
    """Parse the values of a file, and of its arrays, one by one; `broken` gets the errors of JSON lines."""
    # Else it is an array that is misnamed as JSON lines.
    if format_of(path) in LINES and next(read_objects(path, lambda _: None), None):
        yield from read_objects(path, broken)
        return
    row = 0
    try:
        text = replace_surrogates(read_whole(path, as_utf8=True)).decode("utf-8-sig")
        for row, value in enumerate(_parsed(text), 1):
            yield row, value
    except (ValueError, RecursionError) as error:
        fault = "not JSON (nested too deep, or a number too large)"
        if isinstance(error, json.JSONDecodeError):
            fault = f"not JSON ({error.msg})"
        elif isinstance(error, UnicodeError):
            fault = "not UTF-8"
        raise DataError(f"{fault}; fix the file", path=path, row=row + 1) from error


def _parsed(text: str) -> Iterator[object]:
    """The values of a text, and of its arrays."""
    depth = 0  # of arrays
    position = 0
    decoder = json.JSONDecoder()
    while depth >= 0 and (match := _NEXT.search(text, position)):
        position = match.end()
        if match[0] == "[":
            depth += 1
        elif match[0] == "]":
            depth -= 1
        else:
            value, position = decoder.raw_decode(text, match.start())
            yield value
    if depth:
        raise json.JSONDecodeError("unbalanced brackets of an array", text, position)


def _parts(value: object, repo: str | None) -> Iterator[Part] | None:
    """The REST objects in a value; None if its layout is unknown. A null counts as absent."""
    if not isinstance(value, dict):
        return None
    value = without_nulls(value)
    home = value.get("repo")
    # An archive of an IETF group has all issues and pull requests of a repository.
    if isinstance(value.get("issues"), list) and isinstance(home, str):
        items = _dicts(value["issues"]) + _dicts(value.get("pulls"))
        return chain.from_iterable(_gh_issue(item, home) for item in items)
    if _is_gh_issue(value):
        return _gh_issue(value, named_repo(value) or repo)
    if "event" in value:
        return _event(value, value.get("issue"), repo)
    if _is_issue(value, repo):
        return _issue(value, repo)
    if value.keys() >= {"body", "issue_url"}:
        return iter([("comments", value)])
    return None


def _is_gh_issue(value: Object) -> bool:
    """Whether an object is an issue of `gh` or GraphQL."""
    if "createdAt" not in value and value.get("state") not in ("OPEN", "CLOSED"):
        return False
    # Linear's issues have an identifier, too, and the numbers of ServiceNow's are texts.
    return isinstance(value.get("number"), int) and "identifier" not in value


def _is_issue(value: Object, repo: str | None) -> bool:
    """Whether an object is a REST issue: it names its repository, or is in a file of issues of `repo`."""
    if not value.keys() >= {"number", "title"}:
        return False
    if named_repo(value):
        return True
    # The address of a milestone is not that of an issue.
    has_address = "url" in value or "html_url" in value
    return bool(repo) and "state" in value and not has_address


def _issue(value: Object, repo: str | None) -> Iterator[Part]:
    """A REST issue, with the comments and events that github-backup and others nest in it."""
    repo = named_repo(value) or repo
    yield "issues", {"repository_url": _home(repo)} | value
    yield from _embedded_comments(value, repo)
    for name in ("event_data", "events", "timeline"):
        for event in _dicts(value.get(name)):
            yield from _event(event, value, repo)


def _embedded_comments(value: Object, repo: str | None) -> Iterator[Part]:
    """The comments in a REST issue: of github-backup, of Perceval, or a list in place of a number."""
    # A text has no time of its own.
    last_time = value.get("closed_at") or value.get("updated_at")
    url = _url(value, repo)
    nested = value.get("comment_data") or value.get("comments_data")
    comments: list[Any] = [*_dicts(nested)]
    if isinstance(value.get("comments"), list):
        comments += value["comments"]
    for number, comment in enumerate(comments, 1):
        fields = comment if isinstance(comment, dict) else {"body": comment}
        defaults = {"id": number, "created_at": last_time, "issue_url": url}
        yield "comments", defaults | without_nulls(fields)


def _event(value: Object, issue: object, repo: str | None) -> Iterator[Part]:
    """An event of a repository, timeline or issue; kinds that don't concern duplicates are dropped."""
    kind = value.get("event")
    if kind == "commented":
        yield "comments", {"issue_url": _url(issue, repo)} | value
    elif kind in EVENT_KINDS or not isinstance(kind, str):
        url = value.get("issue_url") or _url(issue, repo)
        yield "events", value | {"issue_url": url}


def _gh_issue(value: Object, repo: str | None) -> Iterator[Part]:
    """An issue of `gh`, GraphQL or an archive of an IETF group, with its comments and events."""
    issue = _rest_issue(value, repo)
    comments = value.get("comments")
    count = comments.get("totalCount") if isinstance(comments, dict) else None
    yield "issues", issue | {"comments": count}

    issue["comments"] = list(map(_renamed, _dicts(comments)))
    yield from _embedded_comments(issue, repo)
    for node in _dicts(value.get("timelineItems")):  # of an answer to a GraphQL query
        yield from _event(_timeline_event(_renamed(node), repo), value, repo)


def _rest_issue(value: Object, repo: str | None) -> Object:
    """The fields of an issue of `gh` as REST has them."""
    issue = _renamed(value)
    issue["state"] = _lower(value.get("state"))
    issue["state_reason"] = _lower(value.get("stateReason")) or None
    issue["repository_url"] = _home(repo)
    updated_at = value.get("updatedAt") or value.get("createdAt")
    if updated_at:
        issue["updated_at"] = updated_at
    if issue["state"] == "merged" or "/pull/" in _text(value.get("url")):
        issue["state"] = "closed"
        issue["pull_request"] = {}
    labels = connected(value.get("labels"))
    if isinstance(labels, list):
        issue["labels"] = [
            {"name": label} if isinstance(label, str) else label for label in labels
        ]
    return issue


def _timeline_event(node: Object, repo: str | None) -> Object:
    """A REST event from a node of GraphQL: `MarkedAsDuplicateEvent` is `marked_as_duplicate`."""
    name = _text(node.get("__typename")).removesuffix("Event")
    event = node | {"event": _CAPITAL.sub("_", name).lower()}
    event["state_reason"] = _lower(node.get("stateReason"))
    original = node.get("canonical")
    if isinstance(original, dict):
        event["canonical"] = f"{named_repo(original) or repo}#{original.get('number')}"
    return event


def _renamed(value: Object) -> Object:
    """An object of `gh` with REST's keys."""
    renamed = {_REST_NAMES.get(name, name): field for name, field in value.items()}
    renamed.pop("id", None)
    comment = _COMMENT.search(_text(value.get("url")))
    if comment:
        renamed["id"] = int(comment[1])
    renamed["user"] = _account(value.get("author"))
    closed_at = value.get("closedAt")
    if closed_at and not _text(closed_at).startswith(_NEVER):
        renamed["closed_at"] = closed_at
    return renamed


def _account(author: object) -> Object | None:
    """An author from `gh`, or only a login."""
    if isinstance(author, str) and author:
        return {"login": author}
    if not isinstance(author, dict) or not author.get("login"):
        return None
    kind = "Bot" if author.get("is_bot") else "User"
    return {"login": author["login"], "type": kind}


def named_repo(value: Object) -> str | None:
    """The repository that an object or its addresses name."""
    home = value.get("repository")
    if isinstance(home, dict) and isinstance(home.get("nameWithOwner"), str):
        return str(home["nameWithOwner"])
    for key in ("url", "html_url"):
        match = ADDRESS.search(_text(value.get(key)))
        if match:
            return match[1]
    _, _, name = _text(value.get("repository_url")).partition("/repos/")
    return name or None


def _home(repo: str | None) -> str | None:
    return None if repo is None else f"https://api.github.com/repos/{repo}"


def _url(issue: object, repo: str | None) -> str | None:
    """The address of an issue; None without its number."""
    if not isinstance(issue, dict) or not isinstance(issue.get("number"), int):
        return None
    return f"{_home(named_repo(issue) or repo)}/issues/{issue['number']}"


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _dicts(values: object) -> list[Object]:
    values = connected(values)
    if not isinstance(values, list):
        return []
    return [value for value in values if isinstance(value, dict)]
