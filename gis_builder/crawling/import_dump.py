"""A saved tracker into a store, without a server: the threads that a sweep of the same tracker would bring.

Files of lines are read once, a bounded part of them in memory; files of JSON, which mix all kinds, again for
each kind, one file in memory at a time: first all issues, then comments and events, then each thread
once more to put it in order and to find what its marks point at.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from gis_builder.store import Absence, CrawlTask, Page, RepoOutcome, RepoRow, Store, TopUp
from gis_builder.store.records import Event, Issue, IssueRef, Thread
from gis_builder.store.store import TICKETS
from gis_builder.trackers.dump import BrokenRows, Dump, Row, closing_event
from gis_builder.trackers.rest_records import event_record, reference, title_only
from gis_builder.trackers.tickets import PLAIN, ImportOptions, TicketDump, find_trackers
from pairkit.app.errors import DataError
from pairkit.app.printable import one_line

_ROWS = 1000  # of a file to one transaction
_THREADS = 200

_MOST_MOVES = 8  # of one issue; a ring of transfers leads nowhere

T = TypeVar("T")


def import_dump(
    folder: Path, store: Store, say: Callable[[str], None], options: ImportOptions = PLAIN
) -> list[RepoRow]:
    """Fill a store from saved trackers; what it holds of the same issues is replaced."""
    broken = BrokenRows(skip=options.skip_broken)
    tickets = store.tickets()
    dumps = find_trackers(folder, options, tickets, broken)
    for path in (path for dump in dumps for path in dump.passed_over):
        say(f"{one_line(str(path))}: holds no issues, comments or events; skipped")
    trackers = Trackers(dumps)
    _read_issues(dumps, trackers, store)
    _check_found(folder, trackers, broken.notes)
    _read_missing(dumps, trackers, store)
    _read_comments(dumps, trackers, store)
    _read_events(dumps, trackers, store)
    for tracker in trackers:
        _finish(tracker, trackers, store)
        say(f"{tracker.name}: {tracker.row().issue_count:,} issues, {tracker.comments:,} comments")
    left_out = broken.notes
    for dump in dumps:
        if isinstance(dump, TicketDump):
            say(f"{sum(map(len, dump.index.marks.values())):,} duplicate links")
            left_out += dump.index.notes
            tickets |= dump.index.tickets
    for words in left_out:
        say(words)
    rows = [tracker.row() for tracker in trackers]
    former = [row for tracker in trackers for row in tracker.former_rows()]
    whole = [CrawlTask(tracker.name, "import", done=True) for tracker in trackers]
    store.save(
        Page(
            repos=[*former, *rows],
            warnings=[*_warnings(trackers), *(("", words) for words in left_out)],
            tasks=whole,
            notes={TICKETS: json.dumps(tickets)} if tickets else {},
        )
    )
    return rows


def _read_issues(dumps: Sequence[Dump], trackers: Trackers, store: Store) -> None:
    """Store all issues without their threads, and pull requests by title."""
    for dump in dumps:
        has_events = dump.has_events  # asked first: a file of JSON is held while it is read
        for rows in _batches(dump.issues(), _ROWS):
            page = Page()
            for row in rows:
                tracker = trackers.get(row.repo)
                issue = replace(row.record, repo=tracker.name)
                tracker.note(issue)
                if issue.is_pull and not tracker.is_private:
                    page.issues.append(title_only(issue))
                elif not issue.is_pull and tracker.has_issues:
                    events = () if has_events else _implied(row)
                    page.threads.append(Thread(issue, events=events))
                    page.top_ups.append(TopUp(issue.ref, "comments", "", 0))
            store.save(page)


def _check_found(folder: Path, trackers: Trackers, left_out: Sequence[str]) -> None:
    rows = [tracker.row() for tracker in trackers]
    if not any(row.is_crawlable for row in rows):
        reasons = "; ".join([*(f"{row.name}: {row.detail or row.outcome}" for row in rows[:5]), *left_out])
        words = f" ({reasons})" if reasons else ""
        raise DataError(f"holds no issue{words}; save the issues first, see gis import --help", path=folder)


def _implied(row: Row[Issue]) -> tuple[Event, ...]:
    """The closing event implied by an issue's own fields."""
    value = closing_event(row.value)
    event = event_record(value) if value else None
    return (event,) if event else ()


def _read_missing(dumps: Sequence[Dump], trackers: Trackers, store: Store) -> None:
    page = Page()
    for row in (row for dump in dumps for row in dump.missing()):
        tracker = trackers.get(row.repo)
        if row.number in tracker.is_pull or not tracker.has_issues:
            continue
        to = row.record.to or ""
        if row.record.status == "transferred":
            tracker.moved[row.number] = reference(to)
            page.missing[IssueRef(tracker.name, row.number)] = (Absence.TRANSFERRED, to)
        else:
            page.missing[IssueRef(tracker.name, row.number)] = (Absence.DELETED, "")
    store.save(page)


def _read_comments(dumps: Sequence[Dump], trackers: Trackers, store: Store) -> None:
    for rows in _batches((row for dump in dumps for row in dump.comments()), _ROWS):
        page = Page()
        for row in rows:
            if tracker := _home(row, trackers):
                page.comments.append((IssueRef(tracker.name, row.number), row.record))
        store.save(page)


def _read_events(dumps: Sequence[Dump], trackers: Trackers, store: Store) -> None:
    place = 0  # in the order of the files, until `_finish` sorts them by time
    for rows in _batches((row for dump in dumps for row in dump.events()), _ROWS):
        page = Page()
        for row in rows:
            if tracker := _home(row, trackers):
                page.events.append((IssueRef(tracker.name, row.number), place, row.record))
                place += 1
        store.save(page)


def _home(row: Row[Any], trackers: Trackers) -> DumpTracker | None:
    """The tracker of a comment or event whose issue is stored; those of pull requests are not wanted."""
    tracker = trackers.get(row.repo)
    tracker.orphans += row.number not in tracker.is_pull
    return tracker if tracker.has_issues and tracker.has_issue(row.number) else None


def _finish(tracker: DumpTracker, trackers: Trackers, store: Store) -> None:
    """Put each thread's events in order, resolve what they point at, and declare the thread whole."""
    for threads in _batches(store.threads(tracker.name, only_complete=False), _THREADS):
        # What an earlier crawl stored and the dump lacks stays as it is.
        own = [thread for thread in threads if tracker.has_issue(thread.issue.number)]
        tracker.comments += sum(len(thread.comments) for thread in own)
        store.save(Page(threads=[_whole(thread, trackers) for thread in own]))


def _whole(thread: Thread, trackers: Trackers) -> Thread:
    issue = thread.issue
    events = sorted(thread.events, key=lambda event: event.created_at)
    canonical, is_pull = trackers.follow(_canonical(issue, events))
    resolved = []
    for event in events:
        if event.kind == "closed":
            is_duplicate = event.state_reason == "duplicate"
            target, target_is_pull = (canonical, is_pull) if is_duplicate else (None, False)
        else:
            target, target_is_pull = trackers.follow(event.target)
        resolved.append(replace(event, target=target, target_is_pull=target_is_pull))
    closers = [event.actor for event in events if event.kind == "closed"]
    closed_by = closers[-1] if closers and issue.closed_at else issue.closed_by
    issue = replace(issue, closed_by=closed_by, duplicate_of=None if is_pull else canonical)
    return Thread(issue, thread.comments, tuple(resolved))


def _canonical(issue: Issue, events: Iterable[Event]) -> IssueRef | None:
    """What a closed issue stands marked as a duplicate of: the last mark that nobody took back."""
    marks: list[IssueRef] = []
    for event in events:
        if event.kind == "marked_as_duplicate" and event.target:
            marks.append(event.target)
        elif event.kind == "unmarked_as_duplicate":
            marks = [mark for mark in marks if event.target and mark != event.target]
    return marks[-1] if marks and issue.state == "closed" else None


def _warnings(trackers: Trackers) -> Iterator[tuple[str, str]]:
    for tracker in trackers:
        if tracker.orphans:
            words = f"{tracker.orphans} comments and events of numbers that the dump lacks were left out"
            yield tracker.name, words


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


@dataclass(slots=True)
class DumpTracker:
    """The data of one repository that is kept in memory: numbers, without texts."""

    name: str  # as its files write it
    info: dict[str, Any] = field(default_factory=dict)  # repo.json
    is_pull: dict[int, bool] = field(default_factory=dict)  # by number
    moved: dict[int, IssueRef] = field(default_factory=dict)  # where transferred issues went
    comments: int = 0
    orphans: int = 0  # comments and events of numbers that the dump has no issue of
    newest_at: str = ""
    as_of: str = ""

    @property
    def is_private(self) -> bool:
        """Whether it is kept out, as a server would keep it."""
        return bool(self.info.get("private"))

    @property
    def has_issues(self) -> bool:
        """Whether its issues are available."""
        return not self.is_private and bool(self.info.get("has_issues", True))

    def has_issue(self, number: int) -> bool:
        """Whether there is an issue, not a pull request, of this number."""
        return self.is_pull.get(number) is False

    def note(self, issue: Issue) -> None:
        """Remember an issue or pull request; of two with one number the later counts."""
        self.is_pull[issue.number] = issue.is_pull
        if not issue.is_pull:
            self.newest_at = max(self.newest_at, issue.created_at)
            self.as_of = max(self.as_of, issue.updated_at)

    def row(self) -> RepoRow:
        """The repository as a crawl would have described it."""
        count = sum(not is_pull for is_pull in self.is_pull.values())
        if self.is_private:
            return RepoRow(self.name, RepoOutcome.PRIVATE, detail="private, says its repo.json")
        row = RepoRow(
            self.name,
            RepoOutcome.OK,
            full_name=self.name,
            max_number=max(self.is_pull, default=0),
            issue_count=count,
            created_at=self.info.get("created_at") or "",
            newest_at=self.newest_at,
            as_of=self.as_of,
        )
        if not self.has_issues:
            return replace(row, outcome=RepoOutcome.ISSUES_DISABLED, detail="its issues are switched off")
        return row if count else replace(row, outcome=RepoOutcome.EMPTY, detail="it has no issues")

    def former_rows(self) -> list[RepoRow]:
        """A row for each former name, so that references by that name are resolved."""
        if self.is_private:
            return []
        row = replace(self.row(), outcome=RepoOutcome.RENAMED, detail=f"now {self.name}", listed=False)
        return [replace(row, name=str(name)) for name in self.info.get("previous_names") or ()]


class Trackers:
    """All trackers of a dump, by present and former name, in any case."""

    def __init__(self, dumps: Iterable[Dump]) -> None:
        self._by_name: dict[str, DumpTracker] = {}
        self._by_former_name: dict[str, DumpTracker] = {}
        for dump in dumps:
            if dump.repo is not None:
                self.get(dump.repo).info = dict(dump.info)
        for tracker in self:
            for former in tracker.info.get("previous_names") or ():
                self._by_former_name[str(former).lower()] = tracker

    def __iter__(self) -> Iterator[DumpTracker]:
        return iter(sorted(self._by_name.values(), key=lambda tracker: tracker.name.lower()))

    def get(self, name: str) -> DumpTracker:
        """The tracker of this name, made where there is none yet."""
        return self._by_name.setdefault(name.lower(), DumpTracker(name))

    def follow(self, ref: IssueRef | None) -> tuple[IssueRef | None, bool]:
        """The issue or pull request that a reference means now, and whether it is a pull request."""
        for _ in range(_MOST_MOVES):
            if ref is None:
                break
            name, number = ref.repo.lower(), ref.number
            tracker = self._by_name.get(name) or self._by_former_name.get(name)
            if tracker is None or tracker.is_private:
                break
            is_pull = tracker.is_pull.get(number)
            if is_pull or (is_pull is False and tracker.has_issues):
                return IssueRef(tracker.name, number), is_pull
            ref = tracker.moved.get(number)
        return None, False
