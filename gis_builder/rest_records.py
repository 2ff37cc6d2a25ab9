"""GitHub's REST objects (of the API, or of a dump) to records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gis_builder.records import Comment, Event, Issue, IssueRef

Object = Mapping[str, Any]

EVENT_KINDS = ("closed", "reopened", "marked_as_duplicate", "unmarked_as_duplicate")
_GHOST = "ghost"  # whom REST names in place of every deleted account; GraphQL names nobody
_BOT = "[bot]"  # how REST ends a bot's login; GraphQL leaves it off


def issue_record(repo: str, value: Object) -> Issue:
    """An issue or pull request; the list of issues has no `closed_by`, which the closing event then tells."""
    return Issue(
        repo=repo,
        number=value["number"],
        title=_text(value["title"]),
        body=_text(value.get("body")),
        state=value["state"],
        state_reason=value.get("state_reason"),
        author=_login(value.get("user")),
        author_association=value.get("author_association") or "NONE",
        created_at=value["created_at"],
        updated_at=value["updated_at"],
        closed_at=value.get("closed_at"),
        # What was reopened keeps the name of who once closed it.
        closed_by=_login(value.get("closed_by")) if value.get("closed_at") else None,
        is_pull="pull_request" in value,
        is_bot=_is_bot(value.get("user")),
        labels=tuple(sorted({_text(label["name"]) for label in value.get("labels") or ()})),
    )


def pull_record(repo: str, value: Object) -> Issue:
    """A pull request, of which only the title is kept: it is no issue, and that is what is asked of it."""
    return Issue(
        repo=repo,
        number=value["number"],
        title=_text(value["title"]),
        body="",
        state=value["state"],
        state_reason=None,
        author=None,
        author_association="NONE",
        created_at=value["created_at"],
        updated_at=value["updated_at"],
        closed_at=None,
        closed_by=None,
        is_pull=True,
    )


def comment_record(value: Object) -> Comment:
    """A comment of an issue."""
    return Comment(
        id=value["id"],
        author=_login(value.get("user")),
        author_association=value.get("author_association") or "NONE",
        created_at=value["created_at"],
        body=_text(value.get("body")),
        is_bot=_is_bot(value.get("user")),
    )


def event_record(value: Object) -> Event | None:
    """An event of the kinds that bear on duplicates; None for another.

    The API's own mark does not name the canonical issue; a dump's may, as `canonical: "owner/name#N"`.
    """
    if value.get("event") not in EVENT_KINDS:
        return None
    canonical = re.fullmatch(r"(.+)#(\d+)", value.get("canonical") or "")
    return Event(
        kind=value["event"],
        actor=_login(value.get("actor")),
        created_at=value["created_at"],
        target=IssueRef(canonical[1], int(canonical[2])) if canonical else None,
        state_reason=value.get("state_reason") if value["event"] == "closed" else None,
    )


def number_of(value: Object) -> int:
    """The number of the issue that a comment or event object belongs to."""
    url = value.get("issue_url") or (value.get("issue") or {}).get("url") or ""
    return int(url.rsplit("/", 1)[1])


def repo_of(value: Object) -> str:
    """The repository that an issue object belongs to now, `owner/name`."""
    owner, name = str(value["repository_url"]).rsplit("/", 2)[1:]
    return f"{owner}/{name}"


def _login(account: Object | None) -> str | None:
    """The account's name as GraphQL gives it; None where it is gone, lest two such pass for one person."""
    login = account["login"] if account else None
    if login is None or login == _GHOST:
        return None
    return str(login).removesuffix(_BOT)


def _is_bot(account: Object | None) -> bool:
    return account is not None and (account.get("type") == "Bot" or str(account["login"]).endswith(_BOT))


def _text(text: str | None) -> str:
    """The text; null is empty, and half a surrogate pair, which no UTF-8 file can hold, is replaced."""
    if not text:
        return ""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
