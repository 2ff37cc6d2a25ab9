"""Trackers saved on disk: folders of GitHub's REST objects, one JSON object a line (docs/formats/dump.md).

Without `repo.json` every line names its own repository. A folder without such files may hold what other
tools saved.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from msgspec.json import Decoder

from gis_builder.store.decoding import (
    EVENT_KINDS,
    Malformed,
    Node,
    Number,
    Reference,
    RepoName,
    convert,
    decode,
    stamp_or_none,
)
from gis_builder.store.records import Comment, Event, Issue
from gis_builder.trackers.rest_records import (
    CommentObject,
    EventObject,
    IssueObject,
    RepoObject,
    comment_record,
    event_record,
    issue_record,
    reference,
)
from gis_builder.trackers.saved import GIVE_REPO, is_saved, read_saved, saved_files
from pairkit.app.errors import DataError
from pairkit.system.lines import read_objects, read_whole

R = TypeVar("R")
Object = dict[str, Any]
# What an object says: its repository where it names one, the issue's number, and its record.
Check = Callable[[Object], tuple[str | None, int, R]]

_REPOSITORY = re.compile(r"/repos/([^/]+/[^/]+)$")
_ISSUE = re.compile(r"/repos/([^/]+/[^/]+)/issues/([0-9]{1,8})$")
_FEW = 3  # damaged rows that are named
_MOST_REPO_BYTES = 1 << 20  # of a repo.json
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OBJECT = Decoder(dict[str, Any])


class MissingObject(Node, frozen=True):
    """A number that is gone."""

    number: Number
    status: Literal["deleted", "transferred"]
    to: Reference | None = None


class RepoFile(RepoObject, frozen=True):
    """A repo.json: GitHub's object, and the names that the repository had before."""

    previous_names: list[RepoName] | None = None
    description: str | None = None


class BrokenRows:
    """What becomes of damaged files and rows: the first ends the import, or all are left out and counted."""

    def __init__(self, *, skip: bool = False) -> None:
        self._skip = skip
        self._seen: set[int] = set()  # a file is read several times
        self._first: list[str] = []

    def __call__(self, error: DataError) -> None:
        """Raise the error, or count it."""
        if not self._skip:
            raise error
        self._seen.add(hash(str(error)))
        if len(self._first) < len(self._seen) <= _FEW:
            self._first.append(str(error))

    @property
    def notes(self) -> list[str]:
        """What was left out, in words."""
        count = len(self._seen)
        return [f"{count:,} damaged rows or files were left out: {'; '.join(self._first)}"] if count else []


class Row(NamedTuple, Generic[R]):
    """One checked line of a dump and the issue that it belongs to."""

    repo: str  # owner/name
    number: int
    value: Object
    record: R  # what the line says; an issue's names no repository yet


@dataclass(frozen=True)
class Dump:
    """One folder of a dump. Its readers stream, so a file may be larger than memory."""

    folder: Path
    repo: str | None = None  # None: each line names its own repository
    info: Mapping[str, Any] = field(default_factory=dict)  # repo.json, empty where there is none
    fallback: str | None = None  # the repository of lines that name none
    broken: BrokenRows = field(default_factory=BrokenRows)

    @property
    def passed_over(self) -> tuple[Path, ...]:
        """Files of the folder that hold nothing of a tracker's issues."""
        return ()

    @property
    def has_events(self) -> bool:
        """Whether the timeline was saved; where it was not, see `closing_event`."""
        return _file(self.folder, "events") is not None

    def issues(self) -> Iterator[Row[Issue]]:
        """Every issue and pull request, in the file's order."""
        return self._rows("issues", _check_issue)

    def comments(self) -> Iterator[Row[Comment]]:
        """Every comment, in the file's order."""
        return self._rows("comments", _check_comment)

    def events(self) -> Iterator[Row[Event]]:
        """Every event that was saved, in the file's order."""
        return self._rows("events", _check_event)

    def missing(self) -> Iterator[Row[MissingObject]]:
        """Numbers that were deleted or transferred away."""
        return self._rows("missing", _check_missing)

    def _rows(self, stem: str, check: Check[R]) -> Iterator[Row[R]]:
        path = _file(self.folder, stem)
        if path is not None:
            yield from self._checked(path, read_objects(path, self.broken), check)

    def _checked(self, path: Path, values: Iterator[tuple[int, Object]], check: Check[R]) -> Iterator[Row[R]]:
        try:
            for row, value in values:
                try:
                    repo, number, record = check(value)
                    yield Row(_same_repo(self.repo, repo, self.fallback), number, value, record)
                except Malformed as error:
                    self.broken(DataError(str(error), path=path, row=row))
        except DataError as error:
            self.broken(error)


@dataclass(frozen=True)
class SavedDump(Dump):
    """A folder, or a file, of JSON that other tools saved."""

    others: frozenset[Path] = frozenset()  # files that hold tickets of other trackers

    @cached_property
    def has_events(self) -> bool:
        """Whether any event was saved."""
        return any(kind == "events" for path in self._files for _, kind, _ in self._read(path))

    @property
    def passed_over(self) -> tuple[Path, ...]:
        """The files that hold something else, such as a backup's labels; none where no file is known."""
        return tuple(path for path, is_ours in self._is_ours.items() if not is_ours)

    def missing(self) -> Iterator[Row[MissingObject]]:
        """None: no such layout tells of numbers that are gone."""
        return iter(())

    @cached_property
    def _is_ours(self) -> dict[Path, bool]:
        """Each file, and whether it is read; where no file is known all are, to say what is wrong."""
        known: dict[Path, bool] = {}
        for path in saved_files(self.folder):
            if path not in self.others:
                try:
                    known[path] = is_saved(path, self.fallback)
                except DataError as error:
                    self.broken(error)
        return known if any(known.values()) or self.others else dict.fromkeys(known, True)

    @property
    def _files(self) -> list[Path]:
        return [path for path, is_ours in self._is_ours.items() if is_ours]

    def _rows(self, stem: str, check: Check[R]) -> Iterator[Row[R]]:
        for path in self._files:
            rows = ((row, value) for row, kind, value in self._read(path) if kind == stem)
            yield from self._checked(path, rows, check)

    def _read(self, path: Path) -> Iterator[tuple[int, str, Object]]:
        try:
            yield from read_saved(path, self.fallback, self.broken)
        except DataError as error:
            self.broken(error)


def find_dumps(root: Path, repo: str | None = None, broken: BrokenRows | None = None) -> list[Dump]:
    """The folders with a tracker, else what other tools saved; `repo` is for what names none."""
    broken = broken or BrokenRows()
    if root.is_file():
        return [SavedDump(root, fallback=repo, broken=broken)]
    if not root.is_dir():
        raise DataError(
            "no such file or folder; expected one with a saved tracker, see gis import --help", path=root
        )
    folders = {path.parent for path in root.rglob("*") if is_tracker_file(path)}
    if not folders and saved_files(root):
        return [SavedDump(root, fallback=repo, broken=broken)]
    if not folders:
        raise DataError("holds no tracker; expected issues.jsonl, or what gis import --help lists", path=root)
    dumps = []
    for folder in sorted(folders):
        try:
            dumps.append(replace(_open(folder), fallback=repo, broken=broken))
        except DataError as error:
            broken(error)
    return dumps


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
    if not os.path.lexists(path):  # a link that leads nowhere is an error, as is all else that can't be read
        return Dump(folder)
    body = read_whole(path, _MOST_REPO_BYTES, remedy="keep the keys of the repository alone")
    try:
        info = decode(body.removeprefix(_BYTE_ORDER_MARK), _OBJECT)
        known = convert(info, RepoFile)
        info |= {
            "created_at": stamp_or_none(known.created_at),
            "previous_names": known.previous_names or [],
        }
    except Malformed as error:
        raise DataError(
            f'{error}; expected a JSON object of a repository with "full_name": "owner/name"', path=path
        ) from None
    return Dump(folder, known.full_name, info)


def is_tracker_file(path: Path) -> bool:
    """Whether a file makes its folder one of a dump."""
    return path.name == "repo.json" or path.name in _names("issues")


def _names(stem: str) -> tuple[str, ...]:
    return tuple(f"{stem}{ending}" for ending in (".jsonl", ".jsonl.gz", ".raw.jsonl", ".raw.jsonl.gz"))


def _file(folder: Path, stem: str) -> Path | None:
    found = [folder / name for name in _names(stem) if os.path.lexists(folder / name)]
    if len(found) > 1:
        raise DataError(f"holds {found[0].name} and {found[1].name}; keep one of them", path=folder)
    return found[0] if found else None


def _same_repo(expected: str | None, found: str | None, fallback: str | None) -> str:
    if not (expected or found or fallback):
        raise Malformed(f"names no repository, and the folder has no repo.json; {GIVE_REPO}")
    if expected is not None and found is not None and expected.lower() != found.lower():
        raise Malformed(f"belongs to {found}, but repo.json says {expected}")
    return convert(expected or found or fallback, RepoName)


def _check_issue(value: Object) -> tuple[str | None, int, Issue]:
    item = convert(value, IssueObject)
    record = issue_record("", item)
    match = _REPOSITORY.search(item.repository_url or "")
    return (match[1] if match else None), item.number, record


def _check_comment(value: Object) -> tuple[str | None, int, Comment]:
    item = convert(value, CommentObject)
    record = comment_record(item)
    return *_issue_of(item.issue_url), record


def _check_event(value: Object) -> tuple[str | None, int, Event]:
    item = convert(value, EventObject)
    record = event_record(item)
    if record is None:
        raise Malformed(f"event: expected one of {', '.join(EVENT_KINDS)}")
    return *_issue_of(item.issue_url), record


def _check_missing(value: Object) -> tuple[str | None, int, MissingObject]:
    item = convert(value, MissingObject)
    if item.to is not None:
        reference(item.to)
    elif item.status == "transferred":
        raise Malformed("to: missing; expected owner/name#number")
    return None, item.number, item


def _issue_of(url: str | None) -> tuple[str, int]:
    match = _ISSUE.search(url or "")
    if match is None:
        raise Malformed("issue_url: expected …/repos/owner/name/issues/N")
    return match[1], convert(int(match[2]), Number)
