"""Lists of a tracker's issues and comments, filtered and ordered; recent ones stay for their next page."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from gis_builder._emulator.tracker import Comment, Event, Issue, Tracker

_REMEMBERED = 32


class Choice(NamedTuple):
    """Which issues, in which order. None: do not filter by this."""

    kinds: frozenset[str] = frozenset({"issue", "pull"})
    states: frozenset[str] | None = None  # open, closed, merged
    any_label: frozenset[str] | None = None  # in lower case, as the next
    all_labels: frozenset[str] | None = None
    since: str | None = None  # updated at or after
    creator: str | None = None  # in lower case
    sort: str = "created"  # created | updated | comments
    descending: bool = False

    def holds(self, issue: Issue) -> bool:
        """Whether `issue` is to be listed."""
        labels = {label.lower() for label in issue.labels}
        return (
            ("pull" if issue.is_pull else "issue") in self.kinds
            and (self.states is None or ("merged" if issue.is_merged else issue.state) in self.states)
            and (self.any_label is None or not labels.isdisjoint(self.any_label))
            and (self.all_labels is None or self.all_labels <= labels)
            and (self.since is None or issue.updated_at >= self.since)
            and (self.creator is None or bool(issue.author and issue.author.login.lower() == self.creator))
        )


class Written(NamedTuple):
    """A comment with its issue."""

    issue: Issue
    comment: Comment


class Happened(NamedTuple):
    """An event with its issue."""

    issue: Issue
    event: Event


class Listing:
    """The lists of all trackers; safe to use from several threads."""

    def __init__(self) -> None:
        self.issues = lru_cache(_REMEMBERED)(_issues)
        self.comments = lru_cache(_REMEMBERED)(_comments)
        self.events = lru_cache(_REMEMBERED)(_events)

    def forget(self) -> None:
        """Make all lists anew, as something was written."""
        for remembered in (self.issues, self.comments, self.events):
            remembered.cache_clear()


_ISSUE_KEYS: dict[str, Callable[[Issue], tuple[str | int, int]]] = {
    "created": lambda issue: (issue.created_at, issue.number),
    "updated": lambda issue: (issue.updated_at, issue.number),
    "comments": lambda issue: (len(issue.comments), issue.number),
}


def _issues(tracker: Tracker, choice: Choice) -> list[Issue]:
    """The issues of a tracker that `choice` asks for."""
    found = [issue for issue in tracker.issues.values() if choice.holds(issue)]
    return sorted(found, key=_ISSUE_KEYS[choice.sort], reverse=choice.descending)


def _comments(tracker: Tracker, sort: str, since: str | None) -> list[Written]:
    """Every comment on issues and pull requests, oldest first; `sort` is created or updated."""
    found = [
        Written(issue, comment)
        for issue in tracker.issues.values()
        for comment in issue.comments
        if since is None or comment.updated_at >= since
    ]
    by_update = sort == "updated"
    return sorted(found, key=lambda item: (item.comment.updated_at if by_update else "", item.comment.id))


def _events(tracker: Tracker) -> list[Happened]:
    """Every event, newest first."""
    found = [Happened(issue, event) for issue in tracker.issues.values() for event in issue.events]
    return sorted(found, key=lambda item: (item.event.created_at, item.issue.number), reverse=True)
