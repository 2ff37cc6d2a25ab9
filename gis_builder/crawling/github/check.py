"""Checks whether each requested repository exists, or is renamed, private, empty or missing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from gis_builder.crawling.github.fetch import value_of
from gis_builder.crawling.github.fetch_batches import BatchSize, Crawl
from gis_builder.crawling.github.nodes import RepositoryNode
from gis_builder.crawling.github.parse import well_formed
from gis_builder.crawling.github.responses import GraphQLError
from gis_builder.crawling.status import without_issues
from gis_builder.store import Page, RepoOutcome, RepoRow
from gis_builder.store.decoding import Malformed, stamp, stamp_or_none

_BATCH = 25  # repositories in one query
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*/(?!\.+$)[A-Za-z0-9._-]+")
# `duplicate`, `Resolution: Duplicate`, `dupe`; not `deduplication`.
_DUPLICATE_LABEL = re.compile(r"\bdup(?:e|es|s|licat\w*)?\b", re.IGNORECASE)


def check(crawl: Crawl, names: Sequence[str], *, listed: bool = True) -> None:
    """Check repositories and store their rows; repositories already known to be crawlable are skipped."""
    stored = {row.name.lower(): row for row in crawl.store.all_repos()}
    unchecked = []
    for name in dict.fromkeys(names):
        old = stored.get(name.lower())
        is_known = old is not None and old.is_crawlable and (old.listed or not listed)
        if not is_known:
            unchecked.append(name)
    size = BatchSize(_BATCH)
    checked = 0
    while checked < len(unchecked):
        page = Page()
        for row in _request_rows(crawl, unchecked[checked:], size):
            old = stored.get(row.name.lower())
            # A failed crawl continues with its old data, so an update must start at the old time.
            as_of = old.as_of if old and old.as_of else row.as_of
            page.repos.append(replace(row, listed=listed, as_of=as_of))
        crawl.save("", page)
        checked += len(page.repos)
        crawl.report("", "check", checked, len(unchecked))


def may_be_repository(name: str) -> bool:
    """Whether a name is valid; references in texts often aren't repositories."""
    return _NAME.fullmatch(name) is not None


def recheck(crawl: Crawl, name: str) -> RepoRow:
    """Check one repository again without storing the result."""
    (row,) = _request_rows(crawl, [name], BatchSize(1))
    return row


def _request_rows(crawl: Crawl, names: Sequence[str], size: BatchSize) -> list[RepoRow]:
    """Query the first of `names`, as many as one query takes."""
    for attempt in range(1, crawl.settings.attempts + 1):
        reply, count = crawl.ask(size, names, crawl.queries.repositories)
        has_failed = any(error.needs_retry for error in reply.errors)
        if not has_failed or attempt == crawl.settings.attempts:
            break
        crawl.client.back_off(attempt, "the server failed on a repository")
    errors = {str(error.path[0]): error for error in reply.errors if error.path}
    rows = []
    for index, name in enumerate(names[:count]):
        alias = f"r{index}"
        node = value_of(reply.data, alias, name)
        rows.append(_checked_row(crawl, name, node, errors.get(alias)))
    return rows


def _checked_row(
    crawl: Crawl,
    name: str,
    node: RepositoryNode | None,
    error: GraphQLError | None,
) -> RepoRow:
    if node is None:
        return _row_of_error(name, error)
    with well_formed(name):
        row = _row_of_node(name, node)
    if node.is_private and not crawl.settings.include_private:
        detail = "private; set include_private to crawl private repositories"
        return RepoRow(name, RepoOutcome.PRIVATE, detail=detail)
    if unusable := without_issues(row, has_issues=node.has_issues_enabled):
        return unusable
    if row.full_name.lower() != name.lower():
        return replace(row, outcome=RepoOutcome.RENAMED, detail=f"now {row.full_name}")
    return row


def _row_of_node(name: str, node: RepositoryNode) -> RepoRow:
    """The row of a repository with the server's metadata."""
    issues = node.newest.nodes
    updated = node.fresh.nodes
    if bool(issues) != bool(updated) or (node.newest.total_count and not issues):
        raise Malformed("the newest issue is missing")
    labels = [label.name for label in node.labels.nodes] if node.labels else []
    # Search syntax can't express a label with a quotation mark.
    searchable = [label for label in labels if '"' not in label]
    numbers = [item.number for item in (*issues, *node.pulls.nodes)]
    row = RepoRow(
        name=name,
        outcome=RepoOutcome.OK,
        full_name=node.name_with_owner,
        max_number=max(numbers, default=0),
        issue_count=node.newest.total_count,
        created_at=stamp_or_none(node.created_at) or "",
        labels=tuple(sorted(filter(_DUPLICATE_LABEL.search, searchable))),
    )
    if not issues:
        return row
    newest_at = stamp_or_none(issues[0].created_at) or ""
    return replace(row, newest_at=newest_at, as_of=stamp(updated[0].updated_at))


def _row_of_error(name: str, error: GraphQLError | None) -> RepoRow:
    if error is None or error.type == "NOT_FOUND":
        detail = "no such repository, or no access with this token: check the spelling"
        return RepoRow(name, RepoOutcome.NOT_FOUND, detail=detail)
    if error.needs_retry:
        return RepoRow(name, RepoOutcome.FAILED, detail=error.message)
    return RepoRow(
        name, RepoOutcome.PRIVATE, detail=f"this token has no access ({error.message})"
    )
