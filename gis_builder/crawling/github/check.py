"""Find out whether each requested repository exists, or is renamed, private, empty or missing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from gis_builder.crawling.github.answers import GraphQLError
from gis_builder.crawling.github.batches import BatchSize, Crawl, ask_sized
from gis_builder.crawling.github.client import HttpReply
from gis_builder.crawling.github.fetch import part
from gis_builder.crawling.github.nodes import RepositoryNode
from gis_builder.crawling.github.parse import well_formed
from gis_builder.store import Page, RepoOutcome, RepoRow, Store
from gis_builder.store.decoding import Malformed, stamp, stamp_or_none
from pairkit.app.errors import ConfigError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*/(?!\.+$)[A-Za-z0-9._-]+")
# `duplicate`, `Resolution: Duplicate`, `dupe`; not `deduplication`.
_DUPLICATE_LABEL = re.compile(r"\bdup(?:e|es|s|licat\w*)?\b", re.IGNORECASE)


def check(crawl: Crawl, names: Sequence[str], *, listed: bool = True) -> None:
    """Check repositories and store what each is; those known to be crawlable are skipped."""
    asked = _unsettled(crawl.store, names, listed=listed)
    size = BatchSize(crawl.settings.check_batch)
    done = 0
    while done < len(asked):
        rest = asked[done:]
        rows = _ask(crawl, rest, size)
        crawl.save("", Page(repos=[replace(row, listed=listed) for row in rows]))
        done += len(rows)
        crawl.tell("", "check", done, len(asked))


def may_be_repository(name: str) -> bool:
    """Whether a server may have a repository of that name; texts refer to much that is none."""
    return _NAME.fullmatch(name) is not None


def look_again(crawl: Crawl, name: str) -> RepoRow:
    """Check one repository again without storing the result."""
    return _ask(crawl, [name], BatchSize(1), keep_as_of=False)[0]


def _unsettled(store: Store, names: Sequence[str], *, listed: bool) -> list[str]:
    """The names that must be checked, each once."""
    for name in names:
        if not may_be_repository(name):
            raise ConfigError(f"{name!r} is not a repository: expected owner/name, such as rust-lang/rust")
    rows = {name: store.repo(name) for name in names}
    return [
        name for name, row in rows.items() if not (row and row.is_crawlable and (row.listed or not listed))
    ]


def _ask(crawl: Crawl, names: Sequence[str], size: BatchSize, *, keep_as_of: bool = True) -> list[RepoRow]:
    """Ask about the first few of `names`."""
    for attempt in range(1, crawl.settings.attempts + 1):
        reply, count = ask_sized(
            crawl.client, size, lambda n: crawl.queries.repositories(names[:n]), crawl.settings.attempts
        )
        if not any(error.spoils for error in reply.errors):
            break
        crawl.client.back_off(attempt, "a repository could not be looked up")
    rows = []
    for place, name in enumerate(names[:count]):
        node = part(reply.data, f"r{place}", name)
        row = _row(crawl, name, node, _errors(reply).get(f"r{place}"))
        old = crawl.store.repo(name)
        # A crawl that failed half way goes on from what it had, so an update has to look back as far.
        rows.append(replace(row, as_of=old.as_of) if keep_as_of and old and old.as_of else row)
    return rows


def _errors(reply: HttpReply[RepositoryNode]) -> dict[str, GraphQLError]:
    return {str(error.path[0]): error for error in reply.errors if error.path}


def _row(crawl: Crawl, name: str, node: RepositoryNode | None, error: GraphQLError | None) -> RepoRow:
    if node is None:
        return _absent(name, error)
    with well_formed(name):
        labels = [label.name for label in node.labels.nodes] if node.labels else []
        newest, fresh = node.newest.nodes, node.fresh.nodes
        if bool(newest) != bool(fresh) or (node.newest.total_count and not newest):
            raise Malformed("no newest issue, though there are some")
        row = RepoRow(
            name=name,
            outcome=RepoOutcome.OK,
            full_name=node.name_with_owner,
            max_number=max([item.number for item in (*newest, *node.pulls.nodes)], default=0),
            issue_count=node.newest.total_count,
            created_at=stamp_or_none(node.created_at) or "",
            newest_at=(stamp_or_none(newest[0].created_at) or "") if newest else "",
            as_of=stamp(fresh[0].updated_at) if fresh else "",
            labels=tuple(sorted(label for label in labels if _is_duplicate_label(label))),
        )
        if node.is_private and not crawl.settings.include_private:
            words = "private; set include_private to crawl what this token can see"
            return RepoRow(name, RepoOutcome.PRIVATE, detail=words)
        if not node.has_issues_enabled:
            return replace(row, outcome=RepoOutcome.ISSUES_DISABLED, detail="its issues are switched off")
        if not row.issue_count:
            return replace(row, outcome=RepoOutcome.EMPTY, detail="it has no issues")
        if row.full_name.lower() != name.lower():
            return replace(row, outcome=RepoOutcome.RENAMED, detail=f"now {row.full_name}")
        return row


def _is_duplicate_label(label: str) -> bool:
    # A search can't name a label that holds a quotation mark.
    return bool(_DUPLICATE_LABEL.search(label)) and '"' not in label


def _absent(name: str, error: GraphQLError | None) -> RepoRow:
    if error is None or error.type == "NOT_FOUND":
        words = "no such repository, or none that this token can see: check the spelling"
        return RepoRow(name, RepoOutcome.NOT_FOUND, detail=words)
    if error.spoils:
        return RepoRow(name, RepoOutcome.FAILED, detail=error.message)
    return RepoRow(name, RepoOutcome.PRIVATE, detail=f"this token has no access ({error.message})")
