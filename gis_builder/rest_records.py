"""GitHub's REST objects (of the API, or of a dump) to records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gis_builder.records import Comment, Event, Issue, IssueRef

Object = Mapping[str, Any]

EVENT_KINDS = ("closed", "reopened", "marked_as_duplicate", "unmarked_as_duplicate")
_GHOST = {"login": None, "type": "User"}  # what is left of a deleted account


def issue_record(repo: str, value: Object) -> Issue:
    """An issue or pull request; the list of issues has no `closed_by`, which the closing event then tells."""
    user = value.get("user") or _GHOST
    return Issue(
        repo=repo,
        number=value["number"],
        title=value["title"],
        body=value.get("body") or "",
        state=value["state"],
        state_reason=value.get("state_reason"),
        author=user["login"],
        author_association=value.get("author_association") or "NONE",
        created_at=value["created_at"],
        updated_at=value["updated_at"],
        closed_at=value.get("closed_at"),
        closed_by=(value.get("closed_by") or _GHOST)["login"],
        is_pull="pull_request" in value,
        is_bot=user.get("type") == "Bot",
        labels=tuple(sorted(label["name"] for label in value.get("labels") or ())),
    )


def comment_record(value: Object) -> Comment:
    """A comment of an issue."""
    user = value.get("user") or _GHOST
    return Comment(
        id=value["id"],
        author=user["login"],
        author_association=value.get("author_association") or "NONE",
        created_at=value["created_at"],
        body=value.get("body") or "",
        is_bot=user.get("type") == "Bot",
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
        actor=(value.get("actor") or _GHOST)["login"],
        created_at=value["created_at"],
        target=IssueRef(canonical[1], int(canonical[2])) if canonical else None,
        state_reason=value.get("state_reason"),
    )


def number_of(value: Object) -> int:
    """The number of the issue that a comment or event object belongs to."""
    url = value.get("issue_url") or (value.get("issue") or {}).get("url") or ""
    return int(url.rsplit("/", 1)[1])
