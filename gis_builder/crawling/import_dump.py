"""Imports a saved tracker into a store; the result equals a sweep of the same tracker.

Issues are read first, then comments, then events. Files of lines are streamed; files of JSON, which mix
these kinds, are read once for each kind, one in memory at a time. Finally each thread is read from the store
again, to sort its events and to resolve the targets of its duplicate marks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import TypeVar

import polars as pl
from msgspec import Struct, field

from gis_builder.crawling.status import first_names, outcome_lines, without_issues
from gis_builder.crawling.ticket_dump import TicketDump
from gis_builder.crawling.ticket_index import SkippedLink
from gis_builder.store import (
    Absence,
    CrawlTask,
    Event,
    Issue,
    IssueRef,
    Page,
    RepoOutcome,
    RepoRow,
    Store,
    StoredThread,
    Thread,
    TopUp,
    pull_request,
    with_closer,
)
from gis_builder.store.decoding import stamp_or_none
from gis_builder.store.store import TICKETS
from gis_builder.trackers.dump import BrokenRows, Dump, RepoFile, Row, closing_events
from gis_builder.trackers.rest_records import reference
from gis_builder.trackers.ticket_files import UNREADABLE
from pairkit.base.errors import DataError
from pairkit.base.printable import one_line
from pairkit.base.system.files import write_bytes
from pairkit.base.system.machine import batched

_NO_BODY = "no column for body, so texts are only titles; if there is one, give --columns body=NAME"
SKIPPED_LINKS = "skipped_links.csv"  # in the working folder
GITHUB_HOST = "github.com"
_SERVER = re.compile(r"https?://(?:api\.|www\.)?([\w.-]+)")
# Per transaction
_ROWS = 1000
_THREADS = 200
_MAX_TRANSFERS = 8  # of one issue; more are taken for a cycle

T = TypeVar("T")


def saved_server(dumps: Iterable[Dump]) -> str:
    """The server of the first saved issue, such as a GitHub Enterprise; else GitHub's own."""
    saved = (dump for dump in dumps if not isinstance(dump, TicketDump))
    rows = chain.from_iterable(dump.issues() for dump in saved)
    first = next(rows, None)
    issue = (first and first.value) or {}
    addresses = filter(None, map(issue.get, ("html_url", "url", "repository_url")))
    server = _SERVER.match(str(next(addresses, "")))
    return server[1].lower() if server else GITHUB_HOST


def import_dumps(
    dumps: Sequence[Dump],
    folder: Path,
    store: Store,
    say: Callable[[str], None],
    broken: BrokenRows,
) -> list[RepoRow]:
    """Fill a store from saved trackers; issues that it already contains are replaced."""
    for line in passed_over(dumps):
        say(f"{line}; skipped")
    trackers = Trackers(dumps, store)
    _read_issues(trackers)
    _check_found(folder, trackers, broken.notes)
    _read_missing(trackers)
    _read_threads(trackers)
    page = Page(warnings=[("", note) for note in broken.notes])
    rows = []
    for tracker in trackers:
        _finish(tracker, trackers)
        issues = tracker.row().issue_count
        say(f"{tracker.name}: {issues:,} issues, {tracker.comments:,} comments")
        rows.append(tracker.row(tracker.earlier))
        for former in tracker.former_rows():
            # It may be the name of a new repository.
            if former.name.lower() not in trackers.by_name:
                page.repos.append(former)
                page.renamed.append((former.name, tracker.name))
                page.outdated.append(former.name)
        page.tasks.append(CrawlTask(tracker.name, "import", done=True))
        page.outdated.append(tracker.name)
        page.warnings += [(tracker.name, text) for text in tracker.warnings()]
    page.repos += rows
    if {row.name for row in store.repos()} <= set(page.outdated):
        page.outdated.append("")  # no other import gave these warnings
    for dump in dumps:
        if isinstance(dump, TicketDump):
            say(f"{dump.index.link_count:,} duplicate links")
            page.notes[TICKETS] = json.dumps(dump.index.tickets)
            notes = _ticket_notes(dump, store.path.with_name(SKIPPED_LINKS))
            page.warnings += [("", note) for note in notes]
    for repo, text in page.warnings:
        say(f"{repo}: {text}" if repo else text)
    store.save(page)
    return rows


def passed_over(dumps: Iterable[Dump]) -> list[str]:
    """A line for each reason why files are not read."""
    names: dict[str, list[str]] = {}
    for dump in dumps:
        for path in dump.passed_over:
            reason = UNREADABLE.get(path.suffix.lower(), dump.why_unread)
            names.setdefault(reason, []).append(one_line(str(path)))
    return [f"{first_names(files)}: {reason}" for reason, files in names.items()]


def _ticket_notes(dump: TicketDump, path: Path) -> list[str]:
    """Lines on skipped links, which are written to a file, on repeated tickets and missing texts."""
    skipped = dump.index.skipped
    path.unlink(missing_ok=True)
    if skipped:
        rows = pl.DataFrame(skipped, schema=SkippedLink._fields, orient="row")
        write_bytes(path, rows.write_csv().encode())
    notes = dump.index.notes(f"list: {path}")
    bare = [f"{file.path}: {_NO_BODY}" for file in dump.files if file.lacks_body()]
    return notes + bare


def _read_issues(trackers: Trackers) -> None:
    """Store all issues without comments, and the titles of pull requests."""
    for dump in trackers.dumps:
        # Read before the loop, because this may parse a file of JSON, and only one should be in memory.
        has_events = dump.has_events
        for rows in batched(dump.issues(), _ROWS):
            page = Page()
            for row in rows:
                tracker = trackers.get(row.repo)
                issue = replace(row.record, repo=tracker.name)
                tracker.note(issue)
                stated = row.value.get("comments") if row.value else None
                tracker.stated[issue.number] = stated if isinstance(stated, int) else 0
                if issue.is_pull and not tracker.info.private:
                    pull = pull_request(
                        issue.ref,
                        issue.title,
                        issue.state,
                        issue.created_at,
                        issue.updated_at,
                    )
                    page.issues.append(pull)
                elif not issue.is_pull and tracker.has_issues:
                    events = () if has_events else closing_events(issue)
                    page.threads.append(Thread(issue, events=events))
                    page.top_ups.append(TopUp(issue.ref, "comments", "", 0))
            trackers.store.save(page)


def _check_found(folder: Path, trackers: Trackers, warnings: Sequence[str]) -> None:
    rows = [tracker.row() for tracker in trackers]
    if any(row.is_crawlable for row in rows):
        return
    reasons = [*outcome_lines(rows), *warnings]
    listed = f" ({'; '.join(reasons)})" if reasons else ""
    raise DataError(
        f"contains no issue{listed}; save the issues first, see `gis import --help`",
        path=folder,
    )


def _read_missing(trackers: Trackers) -> None:
    page = Page()
    for row in chain.from_iterable(dump.missing() for dump in trackers.dumps):
        tracker = trackers.get(row.repo)
        if row.number in tracker.is_pull or not tracker.has_issues:
            continue
        ref = IssueRef(tracker.name, row.number)
        to = row.record.to or ""
        if row.record.status == "transferred":
            tracker.moved[row.number] = reference(to)
            page.missing[ref] = (Absence.TRANSFERRED, to)
        else:
            page.missing[ref] = (Absence.DELETED, "")
    trackers.store.save(page)


def _read_threads(trackers: Trackers) -> None:
    """Store the comments and events of all issues."""
    all_comments = chain.from_iterable(dump.comments() for dump in trackers.dumps)
    for comments in batched(all_comments, _ROWS):
        trackers.store.save(Page(comments=list(_stored(comments, trackers))))
    all_events = chain.from_iterable(dump.events() for dump in trackers.dumps)
    places = count()  # order of the files; `_finish` sorts by time
    for events in batched(all_events, _ROWS):
        stored = _stored(events, trackers)
        trackers.store.save(
            Page(events=[(ref, next(places), event) for ref, event in stored])
        )


def _stored(rows: Iterable[Row[T]], trackers: Trackers) -> Iterator[tuple[IssueRef, T]]:
    """The comments or events of stored issues, not of pull requests."""
    for row in rows:
        tracker = trackers.get(row.repo)
        tracker.orphans += row.number not in tracker.is_pull
        if tracker.has_issues and tracker.has_issue(row.number):
            yield IssueRef(tracker.name, row.number), row.record


def _finish(tracker: DumpTracker, trackers: Trackers) -> None:
    """Sort each thread's events, resolve their targets, and mark the thread as complete."""
    stored = trackers.store.stored_threads(tracker.name, only_complete=False)
    for threads in batched(map(StoredThread.read, stored), _THREADS):
        # Threads of an earlier crawl that the dump lacks stay unchanged.
        page = Page()
        for thread in threads:
            number = thread.issue.number
            if tracker.has_issue(number):
                tracker.comments += len(thread.comments)
                tracker.incomplete += len(thread.comments) < tracker.stated[number]
                page.threads.append(_resolve_thread(thread, trackers))
        trackers.store.save(page)


def _resolve_thread(thread: Thread, trackers: Trackers) -> Thread:
    issue = thread.issue
    events = sorted(thread.events, key=lambda event: event.created_at)
    original = trackers.follow(_canonical(issue, events))
    resolved = []
    for event in events:
        found = trackers.follow(None)
        if event.kind != "closed":
            found = trackers.follow(event.target)
        elif event.state_reason == "duplicate":
            found = original
        target, is_pull = found
        resolved.append(replace(event, target=target, target_is_pull=is_pull))
    canonical, is_pull = original
    if not is_pull:
        issue = replace(issue, duplicate_of=canonical)
    return Thread(with_closer(issue, events), thread.comments, tuple(resolved))


def _canonical(issue: Issue, events: Iterable[Event]) -> IssueRef | None:
    """The target of a closed issue's last duplicate mark that was not removed."""
    marks = []
    for event in events:
        if event.kind == "marked_as_duplicate" and event.target:
            marks.append(event.target)
        elif event.kind == "unmarked_as_duplicate":
            marks = [mark for mark in marks if event.target and mark != event.target]
    return marks[-1] if marks and issue.state == "closed" else None


class DumpTracker(Struct):
    """The data of one repository that is kept in memory: numbers, without texts."""

    name: str  # as its files write it
    info: RepoFile = field(default_factory=lambda: RepoFile(""))
    earlier: dict[int, bool] = {}  # as `is_pull`, of earlier imports
    is_pull: dict[int, bool] = {}  # by number
    moved: dict[int, IssueRef] = {}  # targets of transfers by number
    stated: dict[int, int] = {}  # comments by number
    comments: int = 0
    incomplete: int = 0  # issues that lack comments
    orphans: int = 0  # comments and events whose issue is not in the dump
    newest_at: str = ""
    as_of: str = ""

    @property
    def has_issues(self) -> bool:
        """Whether its issues may be imported."""
        return self.info.has_issues and not self.info.private

    def has_issue(self, number: int) -> bool:
        """Whether a number is an issue, not a pull request."""
        return self.is_pull.get(number) is False

    def note(self, issue: Issue) -> None:
        """Add an issue or pull request; it replaces an earlier one with the same number."""
        self.is_pull[issue.number] = issue.is_pull
        if not issue.is_pull:
            self.newest_at = max(self.newest_at, issue.created_at)
            self.as_of = max(self.as_of, issue.updated_at)

    def row(self, earlier: Mapping[int, bool] = {}) -> RepoRow:
        """The repository's row, with the fields that a crawl would store, also of earlier issues."""
        if self.info.private:
            detail = "private according to its repo.json"
            return RepoRow(self.name, RepoOutcome.PRIVATE, detail=detail)
        known = {**earlier, **self.is_pull}
        row = RepoRow(
            self.name,
            RepoOutcome.OK,
            full_name=self.name,
            max_number=max(known, default=0),
            issue_count=list(known.values()).count(False),
            created_at=stamp_or_none(self.info.created_at) or "",
            newest_at=self.newest_at,
            as_of=self.as_of,
        )
        return without_issues(row, has_issues=self.has_issues) or row

    def warnings(self) -> list[str]:
        """What is missing in the dump."""
        faults = {
            "issues state comments that are missing; save these, too": self.incomplete,
            "comments and events skipped: the dump lacks their issues": self.orphans,
        }
        return [f"{count:,} {fault}" for fault, count in faults.items() if count]

    def former_rows(self) -> list[RepoRow]:
        """A row for each former name, so that references by that name are resolved."""
        if self.info.private:
            return []
        row = replace(
            self.row(self.earlier),
            outcome=RepoOutcome.RENAMED,
            detail=f"now {self.name}",
            listed=False,
        )
        return [replace(row, name=name) for name in self.info.previous_names or ()]


class Trackers:
    """All trackers of a dump, by present and former name, in any case."""

    def __init__(self, dumps: Sequence[Dump], store: Store) -> None:
        self.dumps = dumps
        self.store = store
        self.by_name: dict[str, DumpTracker] = {}
        self._by_former_name: dict[str, DumpTracker] = {}
        for dump in dumps:
            if dump.info:
                self.get(dump.info.full_name).info = dump.info
        for tracker in self:
            for former in tracker.info.previous_names or ():
                self._by_former_name[former.lower()] = tracker

    def __iter__(self) -> Iterator[DumpTracker]:
        for name in sorted(self.by_name):
            yield self.by_name[name]

    def get(self, name: str) -> DumpTracker:
        """Get or create the tracker with this name."""
        key = name.lower()
        if key not in self.by_name:
            self.by_name[key] = DumpTracker(name, earlier=self.store.pulls(name))
        return self.by_name[key]

    def follow(self, ref: IssueRef | None) -> tuple[IssueRef | None, bool]:
        """Follow transfers and renames: the present reference, and whether it is a pull request."""
        for _ in range(_MAX_TRANSFERS):
            if ref is None:
                break
            name = ref.repo.lower()
            number = ref.number
            tracker = self.by_name.get(name) or self._by_former_name.get(name)
            if tracker is None:  # it may be of an earlier import
                home = self.store.full_name(ref.repo)
                tracker = DumpTracker(home, earlier=self.store.pulls(home))
                self._by_former_name[name] = tracker
            if tracker.info.private:
                break
            ref = tracker.moved.get(number)
            is_pull = tracker.is_pull.get(number, tracker.earlier.get(number))
            if not ref and (is_pull or (is_pull is False and tracker.has_issues)):
                return IssueRef(tracker.name, number), is_pull
        return None, False
