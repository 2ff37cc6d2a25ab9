"""Converts nodes to records; inconsistent nodes raise a BadReply."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gis_builder.crawling.github import nodes
from gis_builder.store import (
    Comment,
    Event,
    Issue,
    IssueRef,
    Thread,
    TopUp,
    pull_request,
    with_closer,
)
from gis_builder.store.decoding import Malformed, stamp, stamp_or_none
from pairkit.base.errors import BadReply

_EVENT_KINDS = {
    "ClosedEvent": "closed",
    "ReopenedEvent": "reopened",
    "MarkedAsDuplicateEvent": "marked_as_duplicate",
    "UnmarkedAsDuplicateEvent": "unmarked_as_duplicate",
}


@contextmanager
def well_formed(name: str) -> Iterator[None]:
    """Convert Malformed into a BadReply that names the item."""
    try:
        yield
    except Malformed as error:
        raise BadReply(
            f"{name}: the reply does not match the query ({error})"
        ) from None


def parse_thread(node: nodes.IssueNode) -> tuple[Thread, list[TopUp]]:
    """Convert an issue with the last pages of its nested connections, and list what is still missing."""
    ref = ref_of(node)
    with well_formed(str(ref)):
        if node.comments is None or node.events is None:
            raise Malformed("comments or events are missing")
        events = parse_events(node.events)
        issue = with_closer(parse_issue(node, parse_labels(node.labels)), events)
        top_ups = []
        for part in ("comments", "events", "labels"):
            connection = getattr(node, part)
            if connection and (top_up := next_top_up(ref, part, connection, have=0)):
                top_ups.append(top_up)
        return Thread(issue, parse_comments(node.comments), events), top_ups


def parse_issue(node: nodes.IssueNode, labels: tuple[str, ...] = ()) -> Issue:
    """Convert an issue without its thread."""
    ref = ref_of(node)
    with well_formed(str(ref)):
        return Issue(
            repo=ref.repo,
            number=ref.number,
            title=node.title,
            body=node.body or "",
            state=node.state.lower(),
            state_reason=node.state_reason.lower() if node.state_reason else None,
            author=_login(node.author),
            author_association=node.author_association,
            created_at=stamp(node.created_at),
            updated_at=stamp(node.updated_at),
            closed_at=stamp_or_none(node.closed_at),
            is_bot=_is_bot(node.author),
            labels=labels,
            duplicate_of=ref_of(node.duplicate_of) if node.duplicate_of else None,
        )


def parse_pull(node: nodes.FoundPull) -> Issue:
    """Convert a pull request."""
    ref = ref_of(node)
    with well_formed(str(ref)):
        state = "closed" if node.closed else "open"
        times = (stamp(node.created_at), stamp(node.updated_at))
        return pull_request(ref, node.title, state, *times)


def ref_of(node: nodes.IssueNode | nodes.FoundPull | nodes.Target) -> IssueRef:
    """The present reference of a node; it differs from the queried one after a transfer."""
    return IssueRef(node.repository.name_with_owner, node.number)


def parse_comments(
    connection: nodes.NodeConnection[nodes.CommentNode],
) -> tuple[Comment, ...]:
    """Convert the comments of a connection, in its order."""
    return tuple(
        Comment(
            id=int(node.full_database_id),
            author=_login(node.author),
            author_association=node.author_association,
            created_at=stamp(node.created_at),
            body=node.body or "",
            is_bot=_is_bot(node.author),
        )
        for node in connection.items
    )


def parse_events(
    connection: nodes.NodeConnection[nodes.EventNode],
) -> tuple[Event, ...]:
    """Convert the events of a connection, in its order, without kinds that were not queried."""
    return tuple(_event(node) for node in connection.items if node.kind in _EVENT_KINDS)


def parse_labels(
    connection: nodes.NodeConnection[nodes.LabelNode] | None,
) -> tuple[str, ...]:
    """The names of labels, sorted, because the server's order may change."""
    return tuple(sorted(node.name for node in connection.items)) if connection else ()


def next_top_up(
    ref: IssueRef, part: str, connection: nodes.NodeConnection[Any], have: int
) -> TopUp | None:
    """The rest of a nested connection; a server under load may report it by only one of two fields."""
    have += len(connection.items)
    page = connection.page_info
    if page.has_previous_page or have < connection.total_count:
        return TopUp(ref, part, page.start_cursor or "", have)
    return None


def _event(node: nodes.EventNode) -> Event:
    if node.created_at is None:
        raise Malformed("an event without a time")
    target = node.canonical or node.duplicate_of
    return Event(
        kind=_EVENT_KINDS[node.kind],
        actor=_login(node.actor),
        created_at=stamp(node.created_at),
        target=ref_of(target) if target else None,
        target_is_pull=target is not None and target.kind == "PullRequest",
        state_reason=node.state_reason.lower() if node.state_reason else None,
    )


def _login(actor: nodes.Actor | None) -> str | None:
    """The login; None if the account was deleted."""
    return actor.login if actor else None


def _is_bot(actor: nodes.Actor | None) -> bool:
    return actor is not None and actor.kind == "Bot"
