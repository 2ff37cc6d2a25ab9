"""What may be written over REST: comments of an issue, their removal, and labels."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from gis_builder._emulator.errors import RestRefusal, not_found
from gis_builder._emulator.reply import Reply
from gis_builder._emulator.rest_views import Views
from gis_builder._emulator.tracker import Account, Comment, Event, Issue, Repository

_COMMENTS = re.compile(r"/issues/(\d+)/comments")
_COMMENT = re.compile(r"/issues/comments/(\d+)")
_LABELS = re.compile(r"/issues/(\d+)/labels")
_DENIED = "Resource not accessible by integration"  # GitHub's words for a token without the permission
_Text = Annotated[str, Meta(min_length=1, max_length=65_536)]


class _NewComment(msgspec.Struct):
    body: _Text


class _NewLabels(msgspec.Struct):
    labels: list[_Text]


class Writes:
    """Changes the trackers in memory; the dump on disk stays as it is. Safe to use from several threads.

    Args:
        views: Render what was written.
        forget: Told after each change, as lists that were made before lack it.
        clock: Unix time.
    """

    def __init__(self, views: Views, forget: Callable[[], None], clock: Callable[[], float]) -> None:
        self._views, self._forget, self._clock = views, forget, clock
        self._lock = threading.Lock()
        self._last_id = 0

    def answer(self, method: str, repository: Repository, path: str, body: bytes, login: str) -> Reply:
        """Do it.

        Args:
            method: Of HTTP.
            repository: Whose issues.
            path: Below the repository.
            body: JSON.
            login: Who asks.

        Raises:
            RestRefusal: There is no such thing to write, or it is malformed.
        """
        with self._lock:
            try:
                if method == "POST" and (found := _COMMENTS.fullmatch(path)):
                    return self._comment(repository, int(found[1]), body, login)
                if method == "POST" and (found := _LABELS.fullmatch(path)):
                    return self._label(repository, int(found[1]), body, login)
                if method == "DELETE" and (found := _COMMENT.fullmatch(path)):
                    return self._remove(repository, int(found[1]))
            finally:
                self._forget()
        raise not_found()

    def _comment(self, repository: Repository, number: int, body: bytes, login: str) -> Reply:
        issue, new = _issue(repository, number), _read(body, _NewComment)
        self._last_id = 1 + max(self._last_id, *_ids(repository), 0)
        now = self._now()
        comment = Comment(self._last_id, Account(login), "MEMBER", now, now, new.body)
        issue.comments = [*issue.comments, comment]  # others may be reading the list
        issue.updated_at = now
        return Reply(201, self._views.comment(repository, issue, comment))

    def _label(self, repository: Repository, number: int, body: bytes, login: str) -> Reply:
        issue, new = _issue(repository, number), _read(body, _NewLabels)
        added = [name for name in dict.fromkeys(new.labels) if name not in issue.labels]
        now = self._now()
        issue.labels = (*issue.labels, *added)
        issue.labelled = [
            *issue.labelled,
            *(Event("labeled", Account(login), now, label=name) for name in added),
        ]
        issue.updated_at = now
        return Reply(200, self._views.labels(repository, issue))

    @staticmethod
    def _remove(repository: Repository, unique_id: int) -> Reply:
        for issue in repository.tracker.issues.values():
            kept = [comment for comment in issue.comments if repository.unique_id(comment.id) != unique_id]
            if len(kept) < len(issue.comments):
                issue.comments = kept
                return Reply(204)
        raise not_found()

    def _now(self) -> str:
        return f"{datetime.fromtimestamp(self._clock(), UTC):%Y-%m-%dT%H:%M:%SZ}"


def denied() -> RestRefusal:
    """What a token without the permission is told."""
    return RestRefusal(403, _DENIED)


def _issue(repository: Repository, number: int) -> Issue:
    found = repository.issue(number)
    if found is None:
        raise not_found()
    return found


def _ids(repository: Repository) -> list[int]:
    issues = repository.tracker.issues.values()
    return [comment.id for issue in issues for comment in issue.comments]


def _read(body: bytes, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RestRefusal(422, "Validation Failed", errors=[{"message": str(error)[:200]}]) from error
