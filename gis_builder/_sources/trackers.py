"""Where a reference leads among saved trackers: through former names and transfers, or nowhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from gis_builder._dump import Dump
from gis_builder._records import Issue, IssueRef
from gis_builder._store import RepoOutcome, RepoRow

_MOST_MOVES = 8  # of one issue; a ring of transfers leads nowhere


@dataclass(slots=True)
class Tracker:
    """What is remembered of one repository: its numbers, not its texts."""

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
        """Whether its issues are to be had."""
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
        """A row for each former name, so that references by it find their way."""
        if self.is_private:
            return []
        row = replace(self.row(), outcome=RepoOutcome.RENAMED, detail=f"now {self.name}", listed=False)
        return [replace(row, name=str(name)) for name in self.info.get("previous_names") or ()]


class Trackers:
    """All trackers of a dump, by present and former name, in any case."""

    def __init__(self, dumps: Iterable[Dump]) -> None:
        self._by_name: dict[str, Tracker] = {}
        self._by_former_name: dict[str, Tracker] = {}
        for dump in dumps:
            if dump.repo is not None:
                self.get(dump.repo).info = dict(dump.info)
        for tracker in self:
            for former in tracker.info.get("previous_names") or ():
                self._by_former_name[str(former).lower()] = tracker

    def __iter__(self) -> Iterator[Tracker]:
        return iter(sorted(self._by_name.values(), key=lambda tracker: tracker.name.lower()))

    def get(self, name: str) -> Tracker:
        """The tracker of this name, made where there is none yet."""
        return self._by_name.setdefault(name.lower(), Tracker(name))

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
