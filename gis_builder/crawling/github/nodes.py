"""Types of GraphQL responses, and their conversion to records; other and inconsistent responses are rejected."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Generic, Literal, TypeVar

from msgspec import Meta, field

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
from gis_builder.store.decoding import (
    Count,
    Cursor,
    DecimalId,
    Login,
    Malformed,
    Node,
    Number,
    NumberOrNone,
    RepoName,
    Time,
    Word,
    stamp,
    stamp_or_none,
)
from pairkit.base.errors import BadReply

_EVENT_KINDS = {
    "ClosedEvent": "closed",
    "ReopenedEvent": "reopened",
    "MarkedAsDuplicateEvent": "marked_as_duplicate",
    "UnmarkedAsDuplicateEvent": "unmarked_as_duplicate",
}

T = TypeVar("T")


class GraphQLNode(Node, rename="camel"):
    """Base of the nodes; its field names are converted to camel case."""


class RepositoryName(GraphQLNode):
    """The repository of an issue."""

    name_with_owner: RepoName


class Actor(GraphQLNode):
    """An account; `kind` is queried only where it matters."""

    login: Login
    kind: str = field(name="__typename", default="")


class PreviousPage(GraphQLNode):
    """The cursor of the page before this one."""

    has_previous_page: bool
    start_cursor: Cursor | None


class NextPage(GraphQLNode):
    """The cursor of the next page."""

    has_next_page: bool
    end_cursor: Cursor | None


class NodeConnection(GraphQLNode, Generic[T]):
    """The last page, or an earlier one, of a nested connection."""

    total_count: Count
    page_info: PreviousPage
    nodes: list[T | None] | None

    @property
    def items(self) -> list[T]:
        """The nodes that the server returned."""
        return [node for node in self.nodes or () if node is not None]


class CommentNode(GraphQLNode):
    """A comment."""

    full_database_id: DecimalId
    author: Actor | None
    author_association: Word
    created_at: Time
    body: str | None


class Target(GraphQLNode):
    """The target of a duplicate mark or a closing."""

    number: Number
    repository: RepositoryName
    kind: str = field(name="__typename", default="Issue")


class EventNode(GraphQLNode):
    """An event; kinds that were not queried may lack every other field."""

    kind: str = field(name="__typename")
    created_at: Time | None = None
    actor: Actor | None = None
    state_reason: Word | None = None
    canonical: Target | None = None
    duplicate_of: Target | None = None


class LabelNode(GraphQLNode):
    """The name of a label, or of a field's argument."""

    name: str


class Parts(GraphQLNode, kw_only=True):
    """The nested connections of an issue that were queried."""

    comments: NodeConnection[CommentNode] | None = None
    events: NodeConnection[EventNode] | None = None
    labels: NodeConnection[LabelNode] | None = None


class IssueNode(Parts, kw_only=True):
    """An issue, with its thread if that was queried."""

    number: Number
    repository: RepositoryName
    title: str
    body: str | None
    state: Literal["OPEN", "CLOSED"]
    state_reason: Word | None
    author: Actor | None
    author_association: Word
    created_at: Time
    updated_at: Time
    closed_at: Time | None
    duplicate_of: Target | None = None


class FoundIssue(IssueNode, tag_field="__typename", tag="Issue"):
    """An issue that was queried by number."""


class FoundPull(GraphQLNode, tag_field="__typename", tag="PullRequest"):
    """A pull request that was queried by number."""

    number: Number
    repository: RepositoryName
    title: str
    closed: bool
    created_at: Time
    updated_at: Time


Item = FoundIssue | FoundPull | str
IssuesByAlias = dict[str, Item | None]  # a text is the repository's name


class Listing(GraphQLNode):
    """A page of a repository's issues."""

    total_count: Count
    page_info: NextPage
    nodes: list[IssueNode | None]


class ListingRepository(GraphQLNode):
    """A repository with a page of its issues."""

    issues: Listing | None


class SearchNode(GraphQLNode):
    """A search result; it has a number only if it is an issue."""

    number: Number | None = None


class SearchPage(GraphQLNode):
    """A page of search results."""

    issue_count: Count
    page_info: NextPage
    nodes: list[SearchNode | None]


class NewestNode(GraphQLNode):
    """The newest issue or pull request."""

    number: Number
    created_at: Time | None = None


class UpdatedNode(GraphQLNode):
    """The issue that was updated last."""

    updated_at: Time


class FirstNodes(GraphQLNode, Generic[T]):
    """The first nodes of a connection."""

    nodes: list[T]


class CountedIssues(GraphQLNode):
    """The newest issue, and the number of issues."""

    total_count: NumberOrNone
    nodes: list[NewestNode]


class RepositoryNode(GraphQLNode):
    """A repository's metadata."""

    name_with_owner: RepoName
    is_private: bool
    has_issues_enabled: bool
    created_at: Time | None
    newest: CountedIssues
    fresh: FirstNodes[UpdatedNode]
    pulls: FirstNodes[NewestNode]
    labels: FirstNodes[LabelNode] | None


class Field(GraphQLNode):
    """A field of a type."""

    name: str
    args: list[LabelNode] | None = None


class TypeNode(GraphQLNode):
    """A type of the server's schema."""

    fields: list[Field] | None


class Rate(GraphQLNode):
    """The cost of a query."""

    cost: Annotated[int, Meta(ge=0, le=1_000_000)]


@contextmanager
def well_formed(name: str) -> Iterator[None]:
    """Convert Malformed into a BadReply that names the item."""
    try:
        yield
    except Malformed as error:
        raise BadReply(
            f"{name}: the reply does not match the query ({error})"
        ) from None


def parse_thread(node: IssueNode) -> tuple[Thread, list[TopUp]]:
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


def parse_issue(node: IssueNode, labels: tuple[str, ...] = ()) -> Issue:
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


def parse_pull(node: FoundPull) -> Issue:
    """Convert a pull request."""
    ref = ref_of(node)
    with well_formed(str(ref)):
        state = "closed" if node.closed else "open"
        return pull_request(
            ref, node.title, state, stamp(node.created_at), stamp(node.updated_at)
        )


def ref_of(node: IssueNode | FoundPull | Target) -> IssueRef:
    """The present reference of a node; it differs from the queried one after a transfer."""
    return IssueRef(node.repository.name_with_owner, node.number)


def parse_comments(connection: NodeConnection[CommentNode]) -> tuple[Comment, ...]:
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


def parse_events(connection: NodeConnection[EventNode]) -> tuple[Event, ...]:
    """Convert the events of a connection, in its order, without kinds that were not queried."""
    return tuple(_event(node) for node in connection.items if node.kind in _EVENT_KINDS)


def parse_labels(connection: NodeConnection[LabelNode] | None) -> tuple[str, ...]:
    """The names of labels, sorted, because the server's order may change."""
    return tuple(sorted(node.name for node in connection.items)) if connection else ()


def next_top_up(
    ref: IssueRef, part: str, connection: NodeConnection[object], have: int
) -> TopUp | None:
    """The rest of a nested connection; a server under load may report it by only one of two fields."""
    have += len(connection.items)
    page = connection.page_info
    if page.has_previous_page or have < connection.total_count:
        return TopUp(ref, part, page.start_cursor or "", have)
    return None


def _event(node: EventNode) -> Event:
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


def _login(actor: Actor | None) -> str | None:
    """The login; None if the account was deleted."""
    return actor.login if actor else None


def _is_bot(actor: Actor | None) -> bool:
    return actor is not None and actor.kind == "Bot"
