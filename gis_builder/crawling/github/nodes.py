"""Types of GraphQL responses; other responses are rejected."""

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
