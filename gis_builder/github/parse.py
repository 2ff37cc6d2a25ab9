"""From the server's nodes to records. A node that lacks what its query asked for is a BadReply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from gis_builder.records import Comment, Event, Issue, IssueRef, Thread
from gis_builder.store import TopUp
from pairkit.errors import BadReply

Node = Mapping[str, Any]

_EVENT_KINDS = {
    "ClosedEvent": "closed",
    "ReopenedEvent": "reopened",
    "MarkedAsDuplicateEvent": "marked_as_duplicate",
    "UnmarkedAsDuplicateEvent": "unmarked_as_duplicate",
}


@dataclass(frozen=True, slots=True)
class ParsedThread:
    """A thread, and what of it is still to be fetched."""

    thread: Thread
    top_ups: tuple[TopUp, ...]


@contextmanager
def well_formed(what: str) -> Iterator[None]:
    """Turn a missing or mistyped field into a BadReply that says in what."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadReply(
            f"{what}: a reply without what was asked for ({type(error).__name__}: {error})"
        ) from error


def parse_thread(node: Node) -> ParsedThread:
    """An issue with the ends of its nested connections."""
    ref = ref_of(node)
    with well_formed(str(ref)):
        events = parse_events(node["events"])
        closers = [event.actor for event in events if event.kind == "closed"]
        is_closed = node["closedAt"] is not None
        issue = parse_issue(
            node, parse_labels(node["labels"]), closed_by=closers[-1] if closers and is_closed else None
        )
        parts = ("comments", "events", "labels")
        rest = (next_top_up(ref, part, node[part], have=0) for part in parts if node[part])
        return ParsedThread(
            Thread(issue, parse_comments(node["comments"]), events),
            tuple(top_up for top_up in rest if top_up),
        )


def parse_issue(node: Node, labels: tuple[str, ...] = (), closed_by: str | None = None) -> Issue:
    """An issue without its thread."""
    ref = ref_of(node)
    with well_formed(str(ref)):
        reason, author = node["stateReason"], node["author"]
        return Issue(
            repo=ref.repo,
            number=ref.number,
            title=text_of(node["title"]),
            body=text_of(node["body"]),
            state=node["state"].lower(),
            state_reason=reason.lower() if reason else None,
            author=login_of(author),
            author_association=node["authorAssociation"],
            created_at=node["createdAt"],
            updated_at=node["updatedAt"],
            closed_at=node["closedAt"],
            closed_by=closed_by,
            is_bot=bool(author) and author["__typename"] == "Bot",
            labels=labels,
            duplicate_of=_target(node.get("duplicateOf")),
        )


def parse_pull(node: Node) -> Issue:
    """A pull request, of which only the title is kept: it is no issue, and that is what is asked of it."""
    ref = ref_of(node)
    with well_formed(str(ref)):
        return Issue(
            repo=ref.repo,
            number=ref.number,
            title=text_of(node["title"]),
            body="",
            state="closed" if node["closed"] else "open",
            state_reason=None,
            author=None,
            author_association="NONE",
            created_at=node["createdAt"],
            updated_at=node["updatedAt"],
            closed_at=None,
            closed_by=None,
            is_pull=True,
        )


def ref_of(node: Node) -> IssueRef:
    """Where a node stands now, which may not be where it was asked for."""
    with well_formed("an issue"):
        return IssueRef(node["repository"]["nameWithOwner"], int(node["number"]))


def parse_comments(connection: Node) -> tuple[Comment, ...]:
    """The comments of a connection, in its order."""
    return tuple(
        Comment(
            id=int(node["fullDatabaseId"]),
            author=login_of(node["author"]),
            author_association=node["authorAssociation"],
            created_at=node["createdAt"],
            body=text_of(node["body"]),
            is_bot=bool(node["author"]) and node["author"]["__typename"] == "Bot",
        )
        for node in _nodes(connection)
    )


def parse_events(connection: Node) -> tuple[Event, ...]:
    """The events of a connection, in its order; kinds that were not asked for are passed over."""
    return tuple(_event(node) for node in _nodes(connection) if node["__typename"] in _EVENT_KINDS)


def parse_labels(connection: Node | None) -> tuple[str, ...]:
    """The names of a connection of labels, sorted, since the server's order is nothing to rely on."""
    return tuple(sorted(text_of(node["name"]) for node in _nodes(connection))) if connection else ()


def next_top_up(ref: IssueRef, part: str, connection: Node, have: int) -> TopUp | None:
    """What to ask for next of a nested connection; None where all of it came.

    Both signs are looked at, since a server under load may cut a connection short and show it in one only.

    Args:
        ref: Whose connection it is.
        part: comments, events or labels.
        connection: What came.
        have: The items that were stored before this came.
    """
    with well_formed(f"{ref} {part}"):
        came = len(_nodes(connection))
        page = connection["pageInfo"]
        is_short = page["hasPreviousPage"] or have + came < connection["totalCount"]
        # Nothing new can come of asking the same again, once something is stored.
        if not is_short or (have and not came):
            return None
        return TopUp(ref, part, page["startCursor"] or "", have + came)


def shortfall(connection: Node, have: int) -> int:
    """Items that a finished connection counts but does not give out."""
    with well_formed("a connection"):
        return max(0, int(connection["totalCount"]) - have - len(_nodes(connection)))


def text_of(text: str | None) -> str:
    """The text; null is empty, and half a surrogate pair, which no UTF-8 file can hold, is replaced."""
    if not text:
        return ""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def login_of(actor: Node | None) -> str | None:
    """The account's name; None where it is gone."""
    return str(actor["login"]) if actor else None


def _event(node: Node) -> Event:
    target: Node = node.get("canonical") or node.get("duplicateOf") or {}
    reason = node.get("stateReason")
    return Event(
        kind=_EVENT_KINDS[node["__typename"]],
        actor=login_of(node["actor"]),
        created_at=node["createdAt"],
        target=_target(target),
        target_is_pull=target.get("__typename") == "PullRequest",
        state_reason=reason.lower() if reason else None,
    )


def _target(node: Node | None) -> IssueRef | None:
    return ref_of(node) if node else None


def _nodes(connection: Node) -> list[Node]:
    return [node for node in connection["nodes"] or () if node is not None]
