"""What is written to an issue: one comment with a mark of ours, or one label; neither a second time.

GitHub can't be asked to write only if nothing is there. So the mark is looked for before each try, and once
more after a comment was written: of two that two runs wrote at the same time, the later one is taken back by
the run that wrote it. Each run knows its own by a word that it drew.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from msgspec.json import Decoder

from gis_builder._crawled import site_at
from gis_builder._github.client import Denied
from gis_builder._github.events import Listener, ignore
from gis_builder._github.parse import well_formed
from gis_builder._github.rest_client import COMMENTS, ISSUE, REPOSITORY, RestClient
from gis_builder._github.rest_transport import RestReply
from gis_builder._github.tokens import Token
from gis_builder._records import Issue, IssueRef
from gis_builder._rest_records import (
    CommentObject,
    IssueObject,
    Label,
    LabelEventObject,
    Url,
    issue_record,
    repo_of,
)
from gis_builder._settings.crawl import CrawlSettings
from pairkit.errors import AuthError, BadReply, DataError

T = TypeVar("T")

_MARK = re.compile(r"<!-- gis suggest [0-9a-f]{16} -->")
_COMMENT, _LABELS = Decoder(CommentObject), Decoder(list[Label])
_LABEL_EVENTS, _NOTHING = Decoder(list[LabelEventObject]), Decoder(None)
_PERMISSION = "give it the permission to write issues (in a workflow: permissions: issues: write)"


class _PagedObject(IssueObject, frozen=True):
    html_url: Url | None = None


_ISSUE = Decoder(_PagedObject)


@dataclass(frozen=True, slots=True)
class Shown:
    """An issue as a server shows it now.

    Attributes:
        issue: The issue.
        page: Its page, which is the server's own and so not always below github.com.
    """

    issue: Issue
    page: str


@dataclass(frozen=True, slots=True)
class Posted:
    """A comment that bears the mark.

    Attributes:
        id: GitHub's.
        is_new: Whether this run wrote it.
    """

    id: int
    is_new: bool


class Notices:
    """One token's line to the issues of a server, to read and to write."""

    def __init__(self, settings: CrawlSettings, token: Token, listener: Listener = ignore) -> None:
        """Take the token; nothing is asked yet."""
        self._client = RestClient(settings, token, threading.Event(), listener)
        self._token, self._site = token.name, site_at(settings.address.host)

    def repository(self, repo: str) -> str:
        """The full name that a repository has now.

        Raises:
            DataError: There is none of that name, or the token may not see it.
        """
        found = self._client.get(f"/repos/{repo}", REPOSITORY)
        if found.value is None:
            raise DataError(f"{repo}: no such repository ({found.message}); check the name, and the token")
        return found.value.full_name

    def issue(self, ref: IssueRef) -> Shown | None:
        """An issue where it is now; None where it is gone, or is a pull request."""
        found = self._client.get(f"/repos/{ref.repo}/issues/{ref.number}", _ISSUE).value
        if found is None or found.is_pull:
            return None
        with well_formed(str(ref)):
            issue = issue_record(repo_of(found), found)
        return Shown(issue, found.html_url or ref.page(self._site))

    def comment(self, ref: IssueRef, text: str) -> Posted:
        """Write a comment with the mark, unless there is one that bears it.

        Raises:
            AuthError: The token is refused, or may not write.
            RemoteError: The server failed again and again; run the same command again.
        """
        if found := self._marked(ref):
            return Posted(found[0].id, is_new=False)
        mark = f"<!-- gis suggest {secrets.token_hex(8)} -->"

        def arrived() -> CommentObject | None:
            return next((one for one in self._marked(ref) if mark in (one.body or "")), None)

        path, body = f"/repos/{ref.repo}/issues/{ref.number}/comments", {"body": f"{text}\n\n{mark}"}
        written = self._written(path, body, _COMMENT, arrived)
        # Whoever comes later sees both, since each looks only once its own is there.
        first = next(iter(self._marked(ref)), written)
        if first.id < written.id:
            gone = f"/repos/{ref.repo}/issues/comments/{written.id}"
            self._asked("DELETE", gone, b"", _NOTHING, lambda: None)
            return Posted(first.id, is_new=False)
        return Posted(written.id, is_new=True)

    def label(self, ref: IssueRef, name: str) -> bool:
        """Put a label on an issue, unless it was ever put there; whether that was done.

        What somebody took off again stays off.

        Raises:
            RemoteError: As of `comment`.
        """
        if self._was_labelled(ref, name):
            return False

        def arrived() -> list[Label] | None:
            return [Label(name)] if self._was_labelled(ref, name) else None

        path = f"/repos/{ref.repo}/issues/{ref.number}/labels"
        self._written(path, {"labels": [name]}, _LABELS, arrived)
        return True

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _marked(self, ref: IssueRef) -> list[CommentObject]:
        """The comments of an issue that bear the mark, the first one first."""
        path = f"/repos/{ref.repo}/issues/{ref.number}/comments?per_page=100"
        found = [one for one in self._client.get_all(path, COMMENTS) if _MARK.search(one.body or "")]
        return sorted(found, key=lambda one: one.id)

    def _was_labelled(self, ref: IssueRef, name: str) -> bool:
        found = self._client.get(f"/repos/{ref.repo}/issues/{ref.number}", ISSUE).value
        if found is not None and name.lower() in {label.name.lower() for label in found.labels or ()}:
            return True
        path = f"/repos/{ref.repo}/issues/{ref.number}/events?per_page=100"
        put_on = (
            one.label
            for one in self._client.get_all(path, _LABEL_EVENTS)
            if one.event == "labeled" and one.label
        )
        return any(label.name.lower() == name.lower() for label in put_on)

    def _written(
        self, path: str, body: Mapping[str, object], answer: Decoder[T], arrived: Callable[[], T | None]
    ) -> T:
        """What came of a POST."""
        reply = self._asked("POST", path, json.dumps(body).encode(), answer, arrived)
        if reply.value is None:
            raise BadReply(f"{path}: nothing was written ({reply.message or f'HTTP {reply.status}'})")
        return reply.value

    def _asked(
        self, method: str, path: str, body: bytes, answer: Decoder[T], arrived: Callable[[], T | None]
    ) -> RestReply[T]:
        try:
            return self._client.write(method, path, body, answer, arrived)
        except Denied as error:
            raise AuthError(f"{self._token} may not write here ({error}): {_PERMISSION}") from error
