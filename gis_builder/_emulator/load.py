"""From dumps on disk to trackers in memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gis_builder._dump import Dump, Row, closing_event, find_dumps
from gis_builder._emulator.tracker import Account, Comment, Event, Issue, Missing, Tracker

_GHOST = "ghost"  # who REST says wrote what a deleted account wrote; GraphQL says nobody


def load_trackers(roots: Iterable[Path]) -> list[Tracker]:
    """Read every tracker below `roots`, in order of name; a repository may be spread over several folders.

    Of rows that say the same number or id twice, the last one counts. Comments and events of numbers that no
    issue has can't be served; `Tracker.orphans` counts them.

    Raises:
        DataError: a root holds no tracker, or a line of it is malformed (names file and row).
    """
    reader = _Reader()
    for root in roots:
        for dump in find_dumps(root):
            reader.read(dump)
    return reader.finish()


class _Reader:
    """Gathers rows into trackers; accounts, associations and times are kept once each."""

    def __init__(self) -> None:
        self._trackers: dict[str, Tracker] = {}
        self._accounts: dict[str, Account] = {}
        self._strings: dict[str, str] = {}

    def read(self, dump: Dump) -> None:
        if dump.repo is not None:
            self._tracker(dump.repo).info = dump.info
        for row in dump.issues():
            issue = self._issue(row)
            self._tracker(row.repo).issues[row.number] = issue
            event = None if dump.has_events else closing_event(row.value)
            if event is not None:
                issue.events.append(self._event(event))
        for comment in dump.comments():
            if thread := self._thread(comment):
                thread.comments.append(self._comment(comment.value))
        for said in dump.events():
            if thread := self._thread(said):
                thread.events.append(self._event(said.value))
        for gone in dump.missing():
            missing = Missing(gone.record.status, gone.record.to)
            self._tracker(gone.repo).missing[gone.number] = missing

    def finish(self) -> list[Tracker]:
        for tracker in self._trackers.values():
            tracker.issues = dict(sorted(tracker.issues.items()))
            for issue in tracker.issues.values():
                distinct = {comment.id: comment for comment in issue.comments}
                issue.comments = sorted(distinct.values(), key=lambda comment: comment.id)
                issue.events.sort(key=lambda event: event.created_at)
        return [tracker for _, tracker in sorted(self._trackers.items())]

    def _tracker(self, name: str) -> Tracker:
        found = self._trackers.get(name.lower())
        if found is None:
            found = self._trackers[name.lower()] = Tracker(name)
        return found

    def _thread(self, row: Row[Any]) -> Issue | None:
        tracker = self._tracker(row.repo)
        thread = tracker.issues.get(row.number)
        tracker.orphans += thread is None
        return thread

    def _issue(self, row: Row[Any]) -> Issue:
        value = row.value
        pull = value.get("pull_request")
        return Issue(
            id=value.get("id") or _made_up_id(row),
            number=row.number,
            title=value["title"],
            body=value.get("body"),
            state=value["state"],
            state_reason=self._once(value.get("state_reason")),
            author=self._account(value.get("user")),
            association=self._once(value.get("author_association")) or "NONE",
            labels=tuple(self._once(label["name"]) or "" for label in value.get("labels") or ()),
            created_at=value["created_at"],
            updated_at=value["updated_at"],
            closed_at=value.get("closed_at"),
            closed_by=self._account(value.get("closed_by")),
            is_pull=pull is not None,
            is_merged=bool(pull and pull.get("merged_at")),
        )

    def _comment(self, value: dict[str, Any]) -> Comment:
        created = value["created_at"]
        updated = value.get("updated_at") or created
        return Comment(
            id=value["id"],
            author=self._account(value.get("user")),
            association=self._once(value.get("author_association")) or "NONE",
            created_at=created,
            updated_at=created if updated == created else updated,
            body=value.get("body"),
        )

    def _event(self, value: dict[str, Any]) -> Event:
        return Event(
            kind=self._once(value["event"]) or "",
            actor=self._account(value.get("actor")),
            created_at=value["created_at"],
            state_reason=self._once(value.get("state_reason")),
            canonical=value.get("canonical"),
        )

    def _account(self, value: dict[str, Any] | None) -> Account | None:
        if value is None or value["login"] == _GHOST:
            return None
        login = value["login"]
        account = self._accounts.get(login)
        if account is None:
            account = Account(login, "Bot" if login.endswith("[bot]") else "User")
            self._accounts[login] = account
        if kind := value.get("type"):
            account.kind = self._once(kind) or account.kind
        return account

    def _once(self, text: str | None) -> str | None:
        return None if text is None else self._strings.setdefault(text, text)


def _made_up_id(row: Row[Any]) -> int:
    return zlib.crc32(row.repo.lower().encode()) % 2000 * 1_000_000 + row.number
