"""Reads trackers saved on disk: folders of GitHub's REST objects in JSON lines (docs/formats/dump.md).

Without `repo.json`, each line names its own repository. Folders without such files are read as JSON that
other tools saved.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Generic, Literal, NamedTuple, TypeVar

from msgspec.json import Decoder

from gis_builder.store import Comment, Event, Issue
from gis_builder.store.decoding import (
    Malformed,
    Node,
    Number,
    Reference,
    RepoName,
    Time,
    convert,
    decode,
    parse_time,
    stamp,
    stamp_or_none,
)
from gis_builder.trackers import rest_records
from gis_builder.trackers.saved import (
    ADDRESS,
    GIVE_REPO,
    LINES,
    Object,
    is_saved,
    named_repo,
    parts_of,
    read_saved,
    saved_files,
)
from pairkit.base.errors import DataError
from pairkit.base.system.text_lines import read_objects, read_text
from pairkit.dataset.reading.tables import format_of

R = TypeVar("R")

_TIMES = ("created_at", "updated_at", "closed_at")
_ACCOUNTS = ("user", "actor", "closed_by")
NO_ISSUES = "no issues, comments or events"  # in a file
_MAX_NAMED = 3  # damaged rows in a message
_MAX_REPO_BYTES = 1 << 20  # of a repo.json


class MissingObject(Node):
    """An issue that was deleted or transferred."""

    number: Number
    status: Literal["deleted", "transferred"]
    to: Reference | None = None


class RepoFile(Node):
    """A repo.json: GitHub's object, and the former names of the repository."""

    full_name: RepoName
    private: bool = False
    has_issues: bool = True
    created_at: Time | None = None
    previous_names: list[RepoName] | None = None


_REPO_FILE = Decoder(RepoFile)


class BrokenRows:
    """Handles damaged files and rows: raises the first error, or counts all of them if `skip`."""

    def __init__(self, *, skip: bool) -> None:
        self._skip = skip
        self._seen: set[int] = set()  # hashes of messages; a file is read several times
        self._first: list[str] = []

    def __call__(self, error: DataError) -> None:
        """Raise the error or count it."""
        if not self._skip:
            raise error
        self._seen.add(hash(str(error)))
        if len(self._first) < len(self._seen) <= _MAX_NAMED:
            self._first.append(str(error))

    @property
    def notes(self) -> list[str]:
        """A line on what was skipped."""
        if not self._seen:
            return []
        first = "; ".join(self._first)
        return [f"{len(self._seen):,} damaged rows or files were skipped: {first}"]


class Row(NamedTuple, Generic[R]):
    """A validated line of a dump and its issue."""

    repo: str  # owner/name; empty if the line names none
    number: int
    record: R  # an issue has an empty `repo`
    value: Object | None = None  # the line as it was read


Check = Callable[[Object], Row[R]]  # validates an object


@dataclass(frozen=True)
class Dump:
    """One folder of a dump. Its files are streamed, so they may be larger than memory."""

    why_unread = "not read beside folders of issues.jsonl"
    folder: Path
    info: RepoFile | None  # repo.json
    fallback: str | None  # repository of lines that name none
    broken: BrokenRows
    others: Sequence[Path] = field(default=(), kw_only=True)  # files of other content

    @property
    def passed_over(self) -> Sequence[Path]:
        """Files of the folder that are not read."""
        return self.others

    @property
    def has_events(self) -> bool:
        """Whether events were saved; if not, see `closing_events`."""
        return _file(self.folder, "events") is not None

    def issues(self) -> Iterator[Row[Issue]]:
        """Read every issue and pull request, in file order."""
        return self._rows("issues", _check_issue)

    def comments(self) -> Iterator[Row[Comment]]:
        """Read every comment, in file order; without a file of comments, those in the issues."""
        return self._rows("comments", _check_comment)

    def events(self) -> Iterator[Row[Event]]:
        """Read every saved event that can concern duplicates, in file order."""
        return self._rows("events", _check_event)

    def missing(self) -> Iterator[Row[MissingObject]]:
        """Read the deleted and transferred issues."""
        return self._rows("missing", _check_missing)

    def _rows(self, stem: str, check: Check[R]) -> Iterator[Row[R]]:
        source = stem
        path = _file(self.folder, stem)
        if path is None and stem == "comments":
            source = "issues"
            path = _file(self.folder, source)
        if path is None:
            return
        repo = self.info.full_name if self.info else self.fallback
        objects = (
            (row, part)
            for row, value in read_objects(path, self.broken)
            for kind, part in parts_of(value, repo, source)
            if kind == stem
        )
        yield from self._checked(path, objects, check)

    def _checked(
        self, path: Path, values: Iterator[tuple[int, Object]], check: Check[R]
    ) -> Iterator[Row[R]]:
        expected = self.info.full_name if self.info else None
        try:
            for row, value in values:
                try:
                    checked = check(_normalised(value))
                    repo = _repo_of(expected, checked.repo, self.fallback)
                    yield checked._replace(repo=repo, value=value)
                except Malformed as error:
                    self.broken(DataError(str(error), path=path, row=row))
        except DataError as error:
            self.broken(error)


@dataclass(frozen=True)
class SavedDump(Dump):
    """A folder or file of JSON that other tools saved."""

    why_unread = NO_ISSUES
    # Files with tickets of other trackers, which are not read here
    tickets: frozenset[Path] = frozenset()

    @cached_property
    def has_events(self) -> bool:
        """Whether any event was saved."""
        return next(self.events(), None) is not None

    @property
    def passed_over(self) -> Sequence[Path]:
        """The files with other content, such as the labels of a backup; see `_is_known`."""
        unknown = [path for path, is_known in self._is_known.items() if not is_known]
        return [*self.others, *unknown]

    def missing(self) -> Iterator[Row[MissingObject]]:
        """Yield nothing: these layouts don't have deleted issues, so no file is parsed again."""
        return iter(())

    @cached_property
    def _is_known(self) -> dict[Path, bool]:
        """Whether each file has a known layout. If none has, all are read, to report what is wrong."""
        known = {}
        for path in saved_files(self.folder):
            if path not in self.tickets:
                try:
                    known[path] = is_saved(path, self.fallback, self.broken)
                except DataError as error:
                    self.broken(error)
        if self.tickets or any(known.values()):
            return known
        return dict.fromkeys(known, True)

    @property
    def _files(self) -> list[Path]:
        return [path for path, is_known in self._is_known.items() if is_known]

    def _rows(self, stem: str, check: Check[R]) -> Iterator[Row[R]]:
        for path in self._files:
            saved = read_saved(path, self.fallback, self.broken)
            rows = ((row, value) for row, kind, value in saved if kind == stem)
            yield from self._checked(path, rows, check)


def find_dumps(
    root: Path, repo: str | None, broken: BrokenRows, others: Sequence[Path] = ()
) -> list[Dump]:
    """Find folders of dumps, else JSON of other tools; `repo` is the repository of objects without one.

    `others` are files of other kinds in `root`, which are reported.
    """
    if not root.exists():
        raise DataError(
            "no such file or folder; expected a saved tracker, see `gis import --help`",
            path=root,
        )
    folders = {path.parent for path in root.rglob("*") if is_tracker_file(path)}
    if not folders:
        if not saved_files(root):
            raise DataError(
                "contains no tracker; expected issues.jsonl or a layout listed in `gis import --help`",
                path=root,
            )
        tables = [path for path in others if format_of(path) != ".json"]
        return [SavedDump(root, None, repo, broken, others=tables)]
    dumps = []
    beside = [
        path
        for path in others
        if format_of(path) not in LINES and path.name != "repo.json"
    ]
    for folder in sorted(folders):
        try:
            info = _read_repo_file(folder)
            dumps.append(Dump(folder, info, repo, broken, others=beside))
            beside = []  # reported once
        except DataError as error:
            broken(error)
    return dumps


def closing_events(issue: Issue) -> tuple[Event, ...]:
    """The closing that an issue's own fields imply, if any, for dumps without events."""
    when = issue.closed_at
    if issue.state != "closed" or not when:
        return ()
    return (Event("closed", issue.closed_by, when, state_reason=issue.state_reason),)


def _read_repo_file(folder: Path) -> RepoFile | None:
    path = folder / "repo.json"
    if not os.path.lexists(path):  # a broken link is an error, like any unreadable file
        return None
    body = read_text(
        path, _MAX_REPO_BYTES, remedy="keep only the repository's own keys"
    )
    try:
        info = decode(body.encode(), _REPO_FILE)
        stamp_or_none(info.created_at)  # raises if the year is impossible
    except Malformed as error:
        raise DataError(
            f'{error}; expected a JSON object of a repository with "full_name": "owner/name"',
            path=path,
        ) from None
    return info


def is_tracker_file(path: Path) -> bool:
    """Whether a file marks its folder as part of a dump."""
    return path.name == "repo.json" or path.name in _names("issues")


def _names(stem: str) -> tuple[str, ...]:
    endings = (".jsonl", ".jsonl.gz", ".raw.jsonl", ".raw.jsonl.gz")
    return tuple(f"{stem}{ending}" for ending in endings)


def _file(folder: Path, stem: str) -> Path | None:
    paths = [folder / name for name in _names(stem)]
    files = [path for path in paths if os.path.lexists(path)]
    if len(files) > 1:
        raise DataError(
            f"contains both {files[0].name} and {files[1].name}; keep one of them",
            path=folder,
        )
    return files[0] if files else None


def _repo_of(expected: str | None, named: str, fallback: str | None) -> str:
    repo = expected or named or fallback
    if not repo:
        raise Malformed(f"no repository, and the folder has no repo.json; {GIVE_REPO}")
    if expected and named and expected.lower() != named.lower():
        raise Malformed(f"belongs to {named}, but repo.json has {expected}")
    return convert(repo, RepoName)


def _normalised(value: Object) -> Object:
    """The object, with times in milliseconds (pandas) as text, and logins or ids of accounts as objects."""
    changed: Object = {}
    for name in _TIMES:
        time = value.get(name)
        if isinstance(time, int | float):
            changed[name] = stamp(parse_time(str(time)))
    for name in _ACCOUNTS:
        login = value.get(name)
        if isinstance(login, int | str):
            changed[name] = {"login": str(login)} if login else None
    return value | changed if changed else value


def _check_issue(value: Object) -> Row[Issue]:
    item = convert(value, rest_records.IssueObject)
    repo = named_repo(value) or ""
    return Row(repo, item.number, rest_records.issue_record("", item))


def _check_comment(value: Object) -> Row[Comment]:
    item = convert(value, rest_records.CommentObject)
    repo, number = _issue_of(item.issue_url or item.pull_request_url)
    return Row(repo, number, rest_records.comment_record(item))


def _check_event(value: Object) -> Row[Event]:
    item = convert(value, rest_records.EventObject)
    if not item.issue_url:
        raise Malformed(
            "names no issue, as in the timeline of one issue; save the events of all issues with"
            " `gh api --paginate repos/OWNER/NAME/issues/events`"
        )
    repo, number = _issue_of(item.issue_url)
    return Row(repo, number, rest_records.event_record(item))


def _check_missing(value: Object) -> Row[MissingObject]:
    item = convert(value, MissingObject)
    if item.status == "transferred" and item.to is None:
        raise Malformed("to: missing; expected owner/name#number")
    return Row("", item.number, item)


def _issue_of(url: str | None) -> tuple[str, int]:
    match = ADDRESS.search(url or "")
    if match is None:
        raise Malformed("issue_url: expected …/repos/owner/name/issues/N")
    return match[1], convert(int(match[2]), Number)
