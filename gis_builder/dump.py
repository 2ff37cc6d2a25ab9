"""Trackers saved on disk: folders of GitHub's REST objects, one JSON object a line, gzipped or not.

A dump is a folder that holds, at any depth, folders with these files. Only the issues are required.

| file | one line is |
|---|---|
| `issues.jsonl` or `issues.raw.jsonl` | an issue, or a pull request (it has the key `pull_request`) |
| `comments.jsonl` or `comments.raw.jsonl` | a comment; `issue_url` names its issue |
| `events.jsonl` | `closed`, `reopened`, `marked_as_duplicate` (with `canonical`), `unmarked_as_duplicate` |
| `missing.jsonl` | `{"number", "status": "deleted" or "transferred", "to": "owner/name#M"}` |
| `repo.json` | the repository: `full_name`, `previous_names`, `private`, `archived`, `has_issues`, … |

Each file may end in `.gz`. Where there is no `repo.json`, every line names its own repository by
`repository_url` or `issue_url`, so that one file may hold several repositories.

A folder without such files may hold what other tools saved, see `gis_builder.saved`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from gis_builder.decoding import Malformed, RepoName, convert
from gis_builder.rest_records import comment_record, event_record, issue_record
from gis_builder.saved import KINDS, is_saved, read_saved, saved_files
from pairkit.errors import DataError
from pairkit.lines import read_objects

Object = dict[str, Any]

_REPOSITORY = re.compile(r"/repos/([^/]+/[^/]+)$")
_ISSUE = re.compile(r"/repos/([^/]+/[^/]+)/issues/(\d+)$")
_REFERENCE = re.compile(r"[^/\s#]+/[^/\s#]+#\d+")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_MOST_NUMBER = 2**31 - 1  # GraphQL's Int
_MOST_ID = 2**63 - 1


class Row(NamedTuple):
    """One checked line of a dump and the issue that it belongs to."""

    repo: str  # owner/name
    number: int
    value: Object


@dataclass(frozen=True)
class Dump:
    """One folder of a dump. Its readers stream, so a file may be larger than memory."""

    folder: Path
    repo: str | None = None  # None: each line names its own repository
    info: Mapping[str, Any] = field(default_factory=dict)  # repo.json, empty where there is none

    @property
    def passed_over(self) -> tuple[Path, ...]:
        """Files of the folder that hold nothing of a tracker's issues."""
        return ()

    @property
    def has_events(self) -> bool:
        """Whether the timeline was saved; where it was not, see `closing_event`."""
        return _file(self.folder, "events") is not None

    def issues(self) -> Iterator[Row]:
        """Every issue and pull request, in the file's order.

        Raises:
            DataError: a line can't be read or lacks something, with file and row; so in all readers.
        """
        return self._rows("issues", _check_issue)

    def comments(self) -> Iterator[Row]:
        """Every comment, in the file's order."""
        return self._rows("comments", _check_comment)

    def events(self) -> Iterator[Row]:
        """Every event that was saved, in the file's order."""
        return self._rows("events", _check_event)

    def missing(self) -> Iterator[Row]:
        """Numbers that were deleted or transferred away."""
        return self._rows("missing", _check_missing)

    def _rows(self, stem: str, check: Callable[[Object], tuple[str | None, int]]) -> Iterator[Row]:
        path = _file(self.folder, stem)
        if path is None:
            return
        for row, value in read_objects(path):
            try:
                repo, number = check(value)
                yield Row(_same_repo(self.repo, repo), number, value)
            except Malformed as error:
                raise DataError(str(error), path=path, row=row) from None


class SavedDump(Dump):
    """A folder, or a file, of JSON that other tools saved."""

    @cached_property
    def has_events(self) -> bool:
        """Whether any event was saved."""
        return any(True for _ in self.events())

    @cached_property
    def passed_over(self) -> tuple[Path, ...]:
        """The files that hold something else, such as a backup's labels; none where no file is known."""
        files = saved_files(self.folder)
        others = tuple(path for path in files if not is_saved(path))
        return others if len(others) < len(files) else ()

    def _rows(self, stem: str, check: Callable[[Object], tuple[str | None, int]]) -> Iterator[Row]:
        for path in saved_files(self.folder):
            if path in self.passed_over:
                continue
            for row, kind, value in read_saved(path):
                if kind != stem:
                    continue
                try:
                    repo, number = check(value)
                    yield Row(_same_repo(None, repo), number, value)
                except Malformed as error:
                    raise DataError(str(error), path=path, row=row) from None


def find_dumps(root: Path) -> list[Dump]:
    """The folders at and below `root` that hold a tracker, in order of path; else what other tools saved.

    Raises:
        DataError: `root` does not exist or holds no tracker, or a `repo.json` is malformed.
    """
    if root.is_file():
        return [SavedDump(root)]
    if not root.is_dir():
        raise DataError(
            "no such file or folder; expected one with a saved tracker, see gis import --help", path=root
        )
    folders = {path.parent for path in root.rglob("*") if _is_tracker_file(path)}
    if not folders and saved_files(root):
        return [SavedDump(root)]
    if not folders:
        raise DataError("holds no tracker; expected issues.jsonl, or what gis import --help lists", path=root)
    return [_open(folder) for folder in sorted(folders)]


def closing_event(issue: Object) -> Object | None:
    """The `closed` event that an issue's own fields imply, for dumps without a timeline."""
    if issue["state"] != "closed" or not issue.get("closed_at"):
        return None
    return {
        "event": "closed",
        "actor": issue.get("closed_by"),
        "created_at": issue["closed_at"],
        "state_reason": issue.get("state_reason"),
    }


def _open(folder: Path) -> Dump:
    path = folder / "repo.json"
    if not path.exists():
        return Dump(folder)
    try:
        info = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"not readable as JSON ({error})", path=path) from error
    name = info.get("full_name") if isinstance(info, dict) else None
    if not isinstance(name, str) or name.count("/") != 1:
        raise DataError('expected an object with "full_name": "owner/name"', path=path)
    return Dump(folder, name, info)


def _is_tracker_file(path: Path) -> bool:
    return path.name == "repo.json" or path.name in _names("issues")


def _names(stem: str) -> tuple[str, ...]:
    return tuple(f"{stem}{ending}" for ending in (".jsonl", ".jsonl.gz", ".raw.jsonl", ".raw.jsonl.gz"))


def _file(folder: Path, stem: str) -> Path | None:
    found = [folder / name for name in _names(stem) if (folder / name).exists()]
    if len(found) > 1:
        raise DataError(f"holds {found[0].name} and {found[1].name}; keep one of them", path=folder)
    return found[0] if found else None


def _same_repo(expected: str | None, found: str | None) -> str:
    if expected is None and found is None:
        raise Malformed("names no repository, and the folder has no repo.json")
    if expected is not None and found is not None and expected.lower() != found.lower():
        raise Malformed(f"belongs to {found}, but repo.json says {expected}")
    return convert(expected or found, RepoName)


def _check_issue(value: Object) -> tuple[str | None, int]:
    number = _need_number(value)
    _need_text(value, "title")
    _need_body(value)
    if value.get("state") not in {"open", "closed"}:
        raise Malformed(f"state is {value.get('state')!r}; expected open or closed")
    for key in ("created_at", "updated_at"):
        _need_time(value, key)
    if value.get("closed_at") is not None:
        _need_time(value, "closed_at")
    for key in ("user", "closed_by"):
        _need_account(value, key)
    _need_labels(value)
    url = value.get("repository_url")
    match = _REPOSITORY.search(url) if isinstance(url, str) else None
    issue_record("", value)
    return (match[1] if match else None), number


def _check_comment(value: Object) -> tuple[str | None, int]:
    _need_number(value, "id", _MOST_ID)
    _need_body(value)
    _need_time(value, "created_at")
    _need_account(value, "user")
    comment_record(value)
    return _issue_of(value)


def _check_event(value: Object) -> tuple[str | None, int]:
    if value.get("event") not in KINDS:
        raise Malformed(f"event is {value.get('event')!r}; expected one of {', '.join(KINDS)}")
    _need_time(value, "created_at")
    _need_account(value, "actor")
    if value.get("canonical") is not None:
        _need_reference(value, "canonical")
    event_record(value)
    return _issue_of(value)


def _check_missing(value: Object) -> tuple[str | None, int]:
    number, status = _need_number(value), value.get("status")
    if status not in {"deleted", "transferred"}:
        raise Malformed(f"status is {status!r}; expected deleted or transferred")
    if status == "transferred":
        _need_reference(value, "to")
    return None, number


def _issue_of(value: Object) -> tuple[str, int]:
    url = value.get("issue_url")
    match = _ISSUE.search(url) if isinstance(url, str) else None
    if match is None:
        raise Malformed(f"issue_url is {url!r}; expected …/repos/owner/name/issues/N")
    return match[1], int(match[2])


def _need_number(value: Object, key: str = "number", most: int = _MOST_NUMBER) -> int:
    number = value.get(key)
    if type(number) is not int or not 1 <= number <= most:
        raise Malformed(f"{key} is {number!r}; expected a whole number from 1 to {most}")
    return number


def _need_text(value: Object, key: str) -> None:
    if not isinstance(value.get(key), str):
        raise Malformed(f"{key} is {value.get(key)!r}; expected text")


def _need_body(value: Object) -> None:
    if not isinstance(value.get("body"), str | None):
        raise Malformed(f"body is {value['body']!r}; expected text or null")


def _need_time(value: Object, key: str) -> None:
    text = value.get(key)
    if not isinstance(text, str) or not _is_time(text):
        raise Malformed(f"{key} is {text!r}; expected a time such as 2015-01-31T23:59:59Z")


def _is_time(text: str) -> bool:
    try:
        return bool(_TIME.fullmatch(text) and datetime.fromisoformat(text))
    except ValueError:  # the 31st of June
        return False


def _need_account(value: Object, key: str) -> None:
    account = value.get(key)
    login = account.get("login") if isinstance(account, dict) else None
    if account is not None and not (isinstance(login, str) and login.isprintable()):
        raise Malformed(f'{key} is {account!r}; expected null or an object with "login"')


def _need_labels(value: Object) -> None:
    labels = value.get("labels") or []
    named = isinstance(labels, list) and all(
        isinstance(label, dict) and isinstance(label.get("name"), str) for label in labels
    )
    if not named:
        raise Malformed('labels: expected a list of objects with "name"')


def _need_reference(value: Object, key: str) -> None:
    text = value.get(key)
    if not isinstance(text, str) or not _REFERENCE.fullmatch(text):
        raise Malformed(f"{key} is {text!r}; expected owner/name#number")
