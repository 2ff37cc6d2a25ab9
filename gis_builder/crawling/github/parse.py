"""From the server's nodes to records. What does not fit together is a BadReply."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gis_builder.crawling.github.nodes import (
    Actor,
    CommentNode,
    EventNode,
    FoundPull,
    IssueNode,
    LabelNode,
    NodeConnection,
    Target,
)
from gis_builder.store import TopUp
from gis_builder.store.decoding import Malformed, stamp, stamp_or_none
from gis_builder.store.records import Comment, Event, Issue, IssueRef, Thread
from pairkit.app.errors import BadReply

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
    """Turn what does not fit together into a BadReply that says in what."""
    try:
        yield
    except Malformed as error:
        raise BadReply(f"{what}: the reply does not have what was asked for ({error})") from None


def parse_thread(node: IssueNode) -> ParsedThread:
    """An issue with the ends of its nested connections."""
    ref = ref_of(node)
    with well_formed(str(ref)):
        if node.comments is None or node.events is None:
            raise Malformed("no comments, or no events")
        events = parse_events(node.events)
        closers = [event.actor for event in events if event.kind == "closed"]
        is_closed = node.closed_at is not None
        issue = parse_issue(
            node, parse_labels(node.labels), closed_by=closers[-1] if closers and is_closed else None
        )
        rest = [
            next_top_up(ref, "comments", node.comments, have=0),
            next_top_up(ref, "events", node.events, have=0),
            next_top_up(ref, "labels", node.labels, have=0) if node.labels else None,
        ]
        return ParsedThread(
            Thread(issue, parse_comments(node.comments), events),
            tuple(top_up for top_up in rest if top_up),
        )


def parse_issue(node: IssueNode, labels: tuple[str, ...] = (), closed_by: str | None = None) -> Issue:
    """An issue without its thread."""
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
            closed_by=closed_by,
            is_bot=_is_bot(node.author),
            labels=labels,
            duplicate_of=ref_of(node.duplicate_of) if node.duplicate_of else None,
        )


def parse_pull(node: FoundPull) -> Issue:
    """A pull request, of which only the title is kept: it is no issue, and that is what is asked of it."""
    ref = ref_of(node)
    with well_formed(str(ref)):
        return Issue(
            repo=ref.repo,
            number=ref.number,
            title=node.title,
            body="",
            state="closed" if node.closed else "open",
            state_reason=None,
            author=None,
            author_association="NONE",
            created_at=stamp(node.created_at),
            updated_at=stamp(node.updated_at),
            closed_at=None,
            closed_by=None,
            is_pull=True,
        )


def ref_of(node: IssueNode | FoundPull | Target) -> IssueRef:
    """Where a node stands now, which may not be where it was asked for."""
    return IssueRef(node.repository.name_with_owner, node.number)


def parse_comments(connection: NodeConnection[CommentNode]) -> tuple[Comment, ...]:
    """The comments of a connection, in its order."""
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


def parse_events(connection: NodeConnection[EventNode]) -> tuple[Event, ...]:
    """The events of a connection, in its order; kinds that were not asked for are passed over."""
    return tuple(_event(node) for node in connection.items if node.kind in _EVENT_KINDS)


def parse_labels(connection: NodeConnection[LabelNode] | None) -> tuple[str, ...]:
    """The names of a connection of labels, sorted, since the server's order is nothing to rely on."""
    return tuple(sorted(node.name for node in connection.items)) if connection else ()


def next_top_up(
    ref: IssueRef,
    part: str,
    connection: NodeConnection[CommentNode] | NodeConnection[EventNode] | NodeConnection[LabelNode],
    have: int,
) -> TopUp | None:
    """The rest of a nested connection, or None; under load, a server shows a cut in one of two signs only."""
    came = len(connection.items)
    is_short = connection.page_info.has_previous_page or have + came < connection.total_count
    # Nothing new can come of asking the same again, once something is stored.
    if not is_short or (have and not came):
        return None
    return TopUp(ref, part, connection.page_info.start_cursor or "", have + came)


def _event(node: EventNode) -> Event:
    if node.created_at is None:
        raise Malformed("an event without its time")
    target = node.canonical or node.duplicate_of
    return Event(
        kind=_EVENT_KINDS[node.kind],
        actor=_login(node.actor),
        created_at=stamp(node.created_at),
        target=ref_of(target) if target else None,
        target_is_pull=target is not None and target.kind == "PullRequest",
        state_reason=node.state_reason.lower() if node.state_reason else None,
    )


def _login(actor: Actor | None) -> str | None:
    """The account's name; None where it is gone."""
    return actor.login if actor else None


def _is_bot(actor: Actor | None) -> bool:
    return actor is not None and actor.kind == "Bot"
