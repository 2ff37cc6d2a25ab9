"""What is kept of the archive: one table for all kinds of rows, in the order of a key of their repository.

A row's identity is its repository, kind, number, id and name; of rows with one identity the newest counts,
whether they come from one hour or from different years. As the key is a hash of the repository's id, a
stretch of keys is a fair share of all repositories, and a reader passes over what lies outside of it.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from gis_builder._archive.objects import SMALL, Location, ObjectPath, failure_of, polars_options, several
from gis_builder._archive.tasks import damaged
from gis_builder._records import Comment, Event, Issue
from pairkit.errors import DataError
from pairkit.parquet import read_parquet

KEYS = 1 << 63
REPO, ISSUE, COMMENT, EVENT, PULL, MEMBER = "repo", "issue", "comment", "event", "pull", "member"
LANGUAGE = "language"
ROW_GROUP = 2048

_IDENTITY = ("key", "repo_id", "kind", "number", "id", "name")
_VERSION = ("changed_at", "event_at", "event_id")
SCHEMA: dict[str, Any] = {
    "key": pl.Int64,
    "repo_id": pl.Int64,
    "kind": pl.String,
    "number": pl.Int64,  # of the issue or pull request; 0 for what is about the repository
    "id": pl.Int64,  # of a comment, or of the event; else 0
    "name": pl.String,  # of the repository, its language, or a member; else empty
    "changed_at": pl.String,  # when the issue was last changed; else empty
    "event_at": pl.String,
    "event_id": pl.Int64,
    "action": pl.String,  # closed | reopened
    "author": pl.String,
    "is_bot": pl.Boolean,
    "association": pl.String,  # null where the event does not say
    "created_at": pl.String,
    "closed_at": pl.String,
    "state": pl.String,
    "state_reason": pl.String,
    "labels": pl.List(pl.String),
    "title": pl.String,
    "body": pl.String,
}
_REST = (None,) * (len(SCHEMA) - len(_IDENTITY) - len(_VERSION))
Row = tuple[Any, ...]
_UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)


@lru_cache(1 << 16)
def key_of(repo_id: int) -> int:
    """The key of a repository, in [0, KEYS)."""
    return int.from_bytes(blake2b(str(repo_id).encode(), digest_size=8).digest(), "big") >> 1


def bounds(place: int, count: int) -> tuple[int, int]:
    """The keys from, and up to but without, of one of `count` equal shares."""
    return KEYS * place // count, KEYS * (place + 1) // count


class Place(NamedTuple):
    """Of what event a row is: key and id of its repository, when, and the event's id."""

    key: int
    repo_id: int
    at: str
    event_id: int


def bare_row(place: Place, kind: str, number: int = 0, name: str = "") -> Row:
    """A row that says no more than that there is something: a pull request, a name, a language, a member."""
    key, repo_id, at, event_id = place
    return (key, repo_id, kind, number, 0, name, "", at, event_id, *_REST)


def issue_row(place: Place, issue: Issue, association: str | None) -> Row:
    """An issue as an event showed it."""
    key, repo_id, at, event_id = place
    return (
        *(key, repo_id, ISSUE, issue.number, 0, "", issue.updated_at, at, event_id, None),
        *(issue.author, issue.is_bot, association, issue.created_at, issue.closed_at),
        *(issue.state, issue.state_reason, issue.labels, issue.title, issue.body),
    )


def comment_row(place: Place, number: int, comment: Comment, association: str | None) -> Row:
    """A comment of an issue."""
    key, repo_id, at, event_id = place
    return (
        *(key, repo_id, COMMENT, number, comment.id, "", "", at, event_id, None),
        *(comment.author, comment.is_bot, association, comment.created_at, None),
        *(None, None, None, None, comment.body),
    )


def event_row(place: Place, number: int, event: Event) -> Row:
    """A closing or reopening; its id is the event's, so that one that stands twice counts once."""
    key, repo_id, at, event_id = place
    return (
        *(key, repo_id, EVENT, number, event_id, "", "", at, event_id, event.kind),
        *(event.actor, None, None, event.created_at, None),
        *(None, event.state_reason, None, None, None),
    )


def table_of(rows: Sequence[Row]) -> pl.DataFrame:
    """Rows of one hour as a table, see `newest`."""
    return newest(pl.DataFrame(rows, schema=SCHEMA, orient="row"))


def newest(table: pl.DataFrame) -> pl.DataFrame:
    """Of each identity the newest version, in the order of identities."""
    ordered = table.sort(*_IDENTITY, *_VERSION, maintain_order=True)
    return ordered.unique(_IDENTITY, keep="last", maintain_order=True)


def read_share(
    files: Sequence[Location], low: int, high: int, repos: Collection[int] | None = None
) -> pl.DataFrame:
    """What files of rows hold of the repositories whose keys are in [low, high), see `newest`.

    Args:
        files: Of any months.
        low: The least key.
        high: The key after the greatest.
        repos: Of them only those with these ids.

    Raises:
        DataError: One of them is damaged.
    """
    if not files:
        return pl.DataFrame(schema=SCHEMA)
    inside = (pl.col("key") >= low) & (pl.col("key") < high)
    if repos is not None:
        inside &= pl.col("repo_id").is_in(sorted(repos))
    objects = [file for file in files if isinstance(file, ObjectPath)]
    if objects:
        return newest(pl.concat(several(lambda file: _inside(file, inside), objects)))
    on_disk = [file for file in files if isinstance(file, Path)]
    try:
        return newest(pl.scan_parquet(on_disk, glob=False).filter(inside).collect())
    except _UNREADABLE as error:
        raise damaged(_first_damaged(on_disk), error) from error


def _inside(file: ObjectPath, inside: pl.Expr) -> pl.DataFrame:
    """Of one file in an object store."""
    try:
        table = _scanned(file).filter(inside).collect()
    except _UNREADABLE as error:
        if "object-store error" in str(error):
            raise failure_of(file, str(error)) from error
        raise damaged(file, error) from error
    if table.schema != SCHEMA:
        raise damaged(file, ValueError("it has other columns"))
    return table


def _scanned(file: ObjectPath) -> pl.LazyFrame:
    data = file.read_up_to(SMALL)
    if data is not None:
        return pl.scan_parquet(io.BytesIO(data))
    return pl.scan_parquet(str(file), glob=False, storage_options=polars_options(), credential_provider=None)


def _first_damaged(files: Sequence[Path]) -> Path:
    for path in files:
        try:
            read_parquet(path)
        except DataError:
            return path
    return files[0]


def issue_of(repo: str, row: Mapping[str, Any], association: str) -> Issue:
    """The issue of a row, as of the event that showed it last; who closed it, events tell."""
    return Issue(
        repo=repo,
        number=row["number"],
        title=row["title"],
        body=row["body"],
        state=row["state"],
        state_reason=row["state_reason"],
        author=row["author"],
        author_association=association,
        created_at=row["created_at"],
        updated_at=row["changed_at"],
        closed_at=row["closed_at"],
        closed_by=None,
        is_bot=row["is_bot"],
        labels=tuple(row["labels"]),
    )


def comment_of(row: Mapping[str, Any], association: str) -> Comment:
    """The comment of a row."""
    return Comment(row["id"], row["author"], association, row["created_at"], row["body"], row["is_bot"])


def event_of(row: Mapping[str, Any]) -> Event:
    """The closing or reopening of a row."""
    return Event(row["action"], row["author"], row["created_at"], state_reason=row["state_reason"])
