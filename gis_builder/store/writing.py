"""Writing one page of a crawl: plain functions over a connection that is inside a transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from gis_builder.store.records import Comment, Event, Issue, IssueRef
from gis_builder.store.rows import Page, RepoRow, Task, Usage

REPO_COLUMNS = (
    "name, outcome, full_name, detail, max_number, issue_count, created_at, newest_at, as_of, labels, listed"
)


def save_page(connection: sqlite3.Connection, page: Page) -> None:
    """Write all of a page. The caller's transaction makes it one step."""
    _save_repos(connection, page.repos)
    _save_threads(connection, page)
    _save_light(connection, page.issues)
    _save_missing(connection, page)
    _save_top_ups(connection, page)
    _save_pending(connection, page)
    connection.executemany("DELETE FROM tasks WHERE repo = ? AND kind = ?", page.dropped)
    _save_tasks(connection, page.tasks)
    connection.executemany("INSERT OR IGNORE INTO warnings VALUES (?, ?)", page.warnings)
    _save_usage(connection, page.usage)
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", page.notes.items())


def _save_repos(connection: sqlite3.Connection, rows: Iterable[RepoRow]) -> None:
    connection.executemany(
        f"INSERT OR REPLACE INTO repos ({REPO_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?)",  # noqa: S608
        [
            (
                *(row.name, row.outcome.value, row.full_name, row.detail, row.max_number, row.issue_count),
                *(row.created_at, row.newest_at, row.as_of, json.dumps(row.labels), int(row.listed)),
            )
            for row in rows
        ],
    )


def _save_threads(connection: sqlite3.Connection, page: Page) -> None:
    unfinished = {top_up.ref for top_up in page.top_ups}
    for thread in page.threads:
        ref = thread.issue.ref
        for table in ("comments", "events", "top_ups", "missing"):
            connection.execute(f"DELETE FROM {table} WHERE repo = ? AND number = ?", ref)  # noqa: S608
        depth = 1 if ref in unfinished else 2
        connection.execute(_INSERT_ISSUE, _issue_values(thread.issue, depth))
        connection.executemany(_INSERT_COMMENT, [_comment_values(ref, c) for c in thread.comments])
        count = len(thread.events)
        connection.executemany(
            _INSERT_EVENT, [_event_values(ref, place - count, e) for place, e in enumerate(thread.events)]
        )


def _save_light(connection: sqlite3.Connection, issues: Iterable[Issue]) -> None:
    connection.executemany(
        _INSERT_ISSUE.replace("OR REPLACE", "OR IGNORE"), [_issue_values(issue, 0) for issue in issues]
    )


def _save_missing(connection: sqlite3.Connection, page: Page) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO missing VALUES (?, ?, ?, ?)",
        [(*ref, status.value, detail) for ref, (status, detail) in page.missing.items()],
    )


def _save_top_ups(connection: sqlite3.Connection, page: Page) -> None:
    """Add what came, drop the requests it answers, add the next ones, and mark threads that are whole."""
    connection.executemany(_INSERT_COMMENT, [_comment_values(ref, c) for ref, c in page.comments])
    connection.executemany(_INSERT_EVENT, [_event_values(ref, place, e) for ref, place, e in page.events])
    for ref, labels in page.labels:
        sql = "SELECT labels FROM issues WHERE repo = ? AND number = ?"
        for (old,) in connection.execute(sql, ref).fetchall():
            merged = json.dumps(sorted({*json.loads(old), *labels}))
            connection.execute("UPDATE issues SET labels = ? WHERE repo = ? AND number = ?", (merged, *ref))
    connection.executemany(
        "DELETE FROM top_ups WHERE repo = ? AND number = ? AND part = ?",
        [(*top_up.ref, top_up.part) for top_up in page.topped_up],
    )
    connection.executemany(
        "INSERT OR REPLACE INTO top_ups VALUES (?, ?, ?, ?, ?)",
        [(*top_up.ref, top_up.part, top_up.before, top_up.have) for top_up in page.top_ups],
    )
    connection.executemany(
        "UPDATE issues SET depth = 2 WHERE repo = ?1 AND number = ?2 AND depth = 1 "
        "AND NOT EXISTS (SELECT 1 FROM top_ups WHERE repo = ?1 AND number = ?2)",
        [top_up.ref for top_up in page.topped_up],
    )


def _save_pending(connection: sqlite3.Connection, page: Page) -> None:
    """Queue what is not stored yet, and strike out what this page fulfils."""
    connection.executemany(
        "INSERT INTO wishes SELECT ?1, ?2, ?3 "
        "WHERE NOT EXISTS (SELECT 1 FROM issues WHERE repo = ?1 AND number = ?2 "
        "AND (depth >= ?3 OR is_pull)) "
        "AND NOT EXISTS (SELECT 1 FROM missing WHERE repo = ?1 AND number = ?2) "
        "ON CONFLICT DO UPDATE SET with_thread = max(with_thread, excluded.with_thread)",
        [(*fetch.ref, int(fetch.with_thread)) for fetch in page.pending],
    )
    connection.executemany("DELETE FROM wishes WHERE repo = ? AND number = ?", page.granted)


def _save_tasks(connection: sqlite3.Connection, tasks: Iterable[Task]) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO tasks VALUES (?, ?, ?, ?, ?, ?)",
        [(t.repo, t.kind, t.key, t.cursor, json.dumps(t.state, sort_keys=True), int(t.done)) for t in tasks],
    )


def _save_usage(connection: sqlite3.Connection, usage: dict[str, Usage]) -> None:
    connection.executemany(
        "INSERT INTO usage VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET points = points + excluded.points, "
        "requests = requests + excluded.requests, seconds = seconds + excluded.seconds",
        [(repo, spent.points, spent.requests, spent.seconds) for repo, spent in usage.items()],
    )


_INSERT_ISSUE = "INSERT OR REPLACE INTO issues VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
_INSERT_COMMENT = "INSERT OR REPLACE INTO comments VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_EVENT = "INSERT OR REPLACE INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def _issue_values(issue: Issue, depth: int) -> Sequence[Any]:
    return (
        *(issue.repo, issue.number, depth, issue.title, issue.body, issue.state, issue.state_reason),
        *(issue.author, issue.author_association, issue.created_at, issue.updated_at, issue.closed_at),
        *(issue.closed_by, int(issue.is_pull), int(issue.is_bot), json.dumps(sorted(issue.labels))),
        *(issue.duplicate_of or (None, None)),
    )


def _comment_values(ref: IssueRef, comment: Comment) -> Sequence[Any]:
    return (
        *(*ref, comment.id, comment.author, comment.author_association),
        *(comment.created_at, comment.body, int(comment.is_bot)),
    )


def _event_values(ref: IssueRef, place: int, event: Event) -> Sequence[Any]:
    return (
        *(*ref, place, event.kind, event.actor, event.created_at),
        *(event.target or (None, None)),
        *(int(event.target_is_pull), event.state_reason),
    )
