"""Types of the queries' responses; a response that does not fit them is rejected."""

from __future__ import annotations

from typing import Annotated, Generic, Literal, TypeVar

from msgspec import Meta, field

from gis_builder.store.decoding import (
    Count,
    Cursor,
    DecimalId,
    Login,
    Node,
    Number,
    NumberOrNone,
    RepoName,
    Time,
    Word,
)

T = TypeVar("T")


class GraphQLNode(Node, frozen=True, rename="camel"):
    """Base of the nodes, whose fields are ours in the server's spelling."""


class Home(GraphQLNode, frozen=True):
    """The repository that something is in."""

    name_with_owner: RepoName


class Actor(GraphQLNode, frozen=True):
    """An account; its kind is asked for only where it matters."""

    login: Login
    kind: str = field(name="__typename", default="")


class Backwards(GraphQLNode, frozen=True):
    """Where a nested connection goes on towards its beginning."""

    has_previous_page: bool
    start_cursor: Cursor | None


class Forwards(GraphQLNode, frozen=True):
    """Where a list goes on."""

    has_next_page: bool
    end_cursor: Cursor | None


class NodeConnection(GraphQLNode, Generic[T], frozen=True):
    """The end of a nested connection."""

    total_count: Count
    page_info: Backwards
    nodes: list[T | None] | None

    @property
    def items(self) -> list[T]:
        """What came, without what the server left out."""
        return [node for node in self.nodes or () if node is not None]


class CommentNode(GraphQLNode, frozen=True):
    """A comment."""

    full_database_id: DecimalId
    author: Actor | None
    author_association: Word
    created_at: Time
    body: str | None


class Target(GraphQLNode, frozen=True):
    """What a mark or a closing points at."""

    number: Number
    repository: Home
    kind: str = field(name="__typename", default="Issue")


class EventNode(GraphQLNode, frozen=True):
    """An event of a timeline; those of kinds that were not asked for may lack all else."""

    kind: str = field(name="__typename")
    created_at: Time | None = None
    actor: Actor | None = None
    state_reason: Word | None = None
    canonical: Target | None = None
    duplicate_of: Target | None = None


class LabelNode(GraphQLNode, frozen=True):
    """A label."""

    name: str


class IssueNode(GraphQLNode, frozen=True):
    """An issue, with its thread where that was asked for."""

    number: Number
    repository: Home
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
    comments: NodeConnection[CommentNode] | None = None
    events: NodeConnection[EventNode] | None = None
    labels: NodeConnection[LabelNode] | None = None


class FoundIssue(IssueNode, frozen=True, tag_field="__typename", tag="Issue"):
    """An issue that was asked for by number."""


class FoundPull(GraphQLNode, frozen=True, tag_field="__typename", tag="PullRequest"):
    """A pull request that was asked for by number."""

    number: Number
    repository: Home
    title: str
    closed: bool
    created_at: Time
    updated_at: Time


Item = FoundIssue | FoundPull | str
Found = dict[str, Item | None]  # by alias; the text is the repository's name


class Listing(GraphQLNode, frozen=True):
    """A page of a repository's issues."""

    total_count: Count
    page_info: Forwards
    nodes: list[IssueNode | None]


class ListingHome(GraphQLNode, frozen=True):
    """The repository whose issues are listed."""

    issues: Listing | None


class Parts(GraphQLNode, frozen=True):
    """One nested connection of an issue, whichever was asked for."""

    comments: NodeConnection[CommentNode] | None = None
    events: NodeConnection[EventNode] | None = None
    labels: NodeConnection[LabelNode] | None = None


class SearchNode(GraphQLNode, frozen=True):
    """What a search found; what is no issue has no number."""

    number: Number | None = None


class Hits(GraphQLNode, frozen=True):
    """A page of a search."""

    issue_count: Count
    page_info: Forwards
    nodes: list[SearchNode | None]


class Born(GraphQLNode, frozen=True):
    """The newest issue or pull request."""

    number: Number
    created_at: Time | None = None


class Changed(GraphQLNode, frozen=True):
    """The issue that was updated last."""

    updated_at: Time


class Some(GraphQLNode, Generic[T], frozen=True):
    """The first few of a connection."""

    nodes: list[T]


class Counted(GraphQLNode, frozen=True):
    """The newest issue, and how many there are."""

    total_count: NumberOrNone
    nodes: list[Born]


class RepositoryNode(GraphQLNode, frozen=True):
    """A repository's metadata."""

    name_with_owner: RepoName
    is_private: bool
    has_issues_enabled: bool
    created_at: Time | None
    newest: Counted
    fresh: Some[Changed]
    pulls: Some[Born]
    labels: Some[LabelNode] | None


class Argument(GraphQLNode, frozen=True):
    """An argument of a field."""

    name: str


class Field(GraphQLNode, frozen=True):
    """A field of a type."""

    name: str
    args: list[Argument] | None = None


class TypeNode(GraphQLNode, frozen=True):
    """A type of the server's schema."""

    fields: list[Field] | None


class Rate(GraphQLNode, frozen=True):
    """What a query cost."""

    cost: Annotated[int, Meta(ge=0, le=1_000_000)]
