"""Fetches issues by number, in batches, until each issue is stored or known to be missing.

The sample for negatives is the first n issues in a random order of all numbers. Issues of the last batch beyond
the n-th are discarded, so batch sizes and interruptions don't change the sample.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

from gis_builder.crawling.github.client import (
    MAX_ITEMS,
    MAX_THREAD_ITEMS,
    BatchSize,
    Crawl,
    GraphReply,
    Pages,
)
from gis_builder.crawling.github.exchange import GraphQLError
from gis_builder.crawling.github.nodes import (
    FoundPull,
    IssuesByAlias,
    Item,
    NodeConnection,
    next_top_up,
    parse_comments,
    parse_events,
    parse_issue,
    parse_labels,
    parse_pull,
    parse_thread,
    ref_of,
    well_formed,
)
from gis_builder.store import (
    Absence,
    CrawlTask,
    IssueRef,
    Kind,
    Page,
    RepoRow,
    Store,
    TopUp,
)
from pairkit.base.errors import BadReply, RemoteError
from pairkit.base.printable import one_line
from pairkit.base.system.machine import batched

T = TypeVar("T")


def fetch_top_ups(crawl: Crawl, repo: str) -> None:
    """Fetch the rest of every incomplete nested connection of the repository's threads."""
    size = BatchSize(crawl.settings.thread_batch)
    failures = Counter[TopUp]()
    answered = 0
    pages_of: dict[str, Pages] = {}  # by issue and connection
    while waiting := crawl.store.top_ups(repo, crawl.settings.thread_batch):
        reply, count = crawl.ask(size, waiting, partial(crawl.queries.top_ups, repo))
        nodes = reply.data.get("r0") or {}
        page = Page()
        for index, top_up in enumerate(waiting[:count]):
            alias = f"t{index}"
            connection = getattr(nodes.get(alias), top_up.part, None)
            if connection and not failure_of(reply.errors, "r0", alias):
                name = f"{top_up.ref} {top_up.part}"
                new = Pages(name, top_up.before, limit=MAX_THREAD_ITEMS)
                pages = pages_of.setdefault(name, new)
                _add_top_up(page, top_up, connection, pages)
                continue
            failures[top_up] += 1
            if failures[top_up] >= crawl.settings.attempts:
                page.topped_up.append(top_up)
                warning = f"{top_up.ref}: the server returned only the last {top_up.have} {top_up.part}"
                page.warnings.append((repo, warning))
        answered += len(page.topped_up)
        crawl.save(repo, page)
        total = answered + crawl.store.count_top_ups(repo)
        crawl.report(repo, "top-ups", answered, total)
        if not page.topped_up:
            size.shrink()
            crawl.back_off(max(failures.values()), "the server returned nothing")


def _add_top_up(
    page: Page, top_up: TopUp, connection: NodeConnection[object], pages: Pages
) -> None:
    """Add the items of a connection, and the rest that is still to be fetched."""
    ref = top_up.ref
    with well_formed(f"{ref} {top_up.part}"):
        keys = _add_items(page, top_up, connection)
    page.topped_up.append(top_up)
    following = next_top_up(ref, top_up.part, connection, top_up.have)
    missing = connection.total_count - top_up.have - len(connection.items)
    if following and connection.items:  # an empty page would be returned again
        pages.advance(keys, following.before)
        page.top_ups.append(following)
    elif missing > 0:
        warning = (
            f"{ref}: the server counts {missing} more {top_up.part} than it returns"
        )
        page.warnings.append((ref.repo, warning))


def _add_items(
    page: Page, top_up: TopUp, connection: NodeConnection[Any]
) -> Iterable[Hashable]:
    """Add the items to the page; returns keys that are unique within the connection."""
    ref = top_up.ref
    if top_up.part == "comments":
        comments = parse_comments(connection)
        page.comments += [(ref, comment) for comment in comments]
        return [comment.id for comment in comments]
    if top_up.part == "labels":
        labels = parse_labels(connection)
        page.labels.append((ref, labels))
        return labels
    events = parse_events(connection)
    first = -top_up.have - len(events)
    page.events += [(ref, place, event) for place, event in enumerate(events, first)]
    return range(first, first + len(events))


class Fetcher:
    """Fetches issues by number, with or without threads; adapts the batch size to the server."""

    def __init__(self, crawl: Crawl, *, with_thread: bool) -> None:
        settings = crawl.settings
        limit = settings.thread_batch if with_thread else settings.issue_batch
        self._crawl = crawl
        self._with_thread = with_thread
        self._size = BatchSize(limit)

    def resolve(self, refs: Sequence[IssueRef]) -> Page:
        """Fetch these issues."""
        page = Page()
        failures = Counter[IssueRef]()
        waiting = sorted(set(refs))
        query = partial(self._crawl.queries.issues, with_thread=self._with_thread)
        while waiting:
            reply, count = self._crawl.ask(self._size, waiting, query)
            failed = self._add(page, waiting[:count], reply)
            retried = self._skip_hopeless(page, failures, failed)
            if failed:
                self._size.shrink()
            if retried:
                most = max(failures[ref] for ref in retried)
                self._crawl.back_off(most, failed[retried[0]])
            waiting = sorted(retried + waiting[count:])
        return page

    def _add(
        self, page: Page, refs: Sequence[IssueRef], reply: GraphReply[IssuesByAlias]
    ) -> dict[IssueRef, str]:
        """Add the issues to the page; returns the failed ones, each with the server's message."""
        failed = {}
        for index, (repo, group) in enumerate(groupby(refs, key=lambda ref: ref.repo)):
            issues = value_of(reply.data, f"r{index}", repo)
            for ref in group:
                failure = failure_of(reply.errors, f"r{index}", f"i{ref.number}")
                if failure:
                    failed[ref] = failure
                    continue
                if issues is None:
                    page.missing[ref] = (Absence.NO_REPOSITORY, "")
                    continue
                _check_name(repo, issues)
                node = value_of(issues, f"i{ref.number}", str(ref))
                if node is None:
                    page.missing[ref] = (Absence.DELETED, "")
                else:
                    _add_issue(page, ref, node, with_thread=self._with_thread)
        return failed

    def _skip_hopeless(
        self, page: Page, failures: Counter[IssueRef], failed: Mapping[IssueRef, str]
    ) -> list[IssueRef]:
        """Skip issues that failed too often, so that a bad issue doesn't stop its repository; returns the others."""
        failures.update(failed.keys())
        retried = []
        for ref, message in failed.items():
            if failures[ref] >= self._crawl.settings.attempts:
                page.missing[ref] = (Absence.WITHHELD, "")
                warning = f"{ref} was skipped: the server fails on it ({message})"
                page.warnings.append((ref.repo, warning))
            else:
                retried.append(ref)
        return retried


def fetch(crawl: Crawl, refs: Sequence[IssueRef]) -> None:
    """Fetch issues of any repositories by number; each batch is stored as one page."""
    fetcher = Fetcher(crawl, with_thread=False)
    ordered = sorted(set(refs))
    done = 0
    for batch in batched(ordered, crawl.settings.issue_batch):
        first, *others = {ref.repo for ref in batch}
        repo = "" if others else first
        crawl.save(repo, fetcher.resolve(batch))
        done += len(batch)
        crawl.report(repo, "fetch", done, len(ordered))


def fetch_threads(crawl: Crawl, repo: str) -> None:
    """Fetch every pending thread; each batch is stored as one page."""
    fetcher = Fetcher(crawl, with_thread=True)
    total = crawl.store.count_pending(repo)
    while refs := crawl.store.pending(repo, crawl.settings.thread_batch):
        page = fetcher.resolve(refs)
        page.fetched.extend(refs)
        crawl.save(repo, page)
        crawl.report(repo, "threads", total - crawl.store.count_pending(repo), total)


def failure_of(errors: Sequence[GraphQLError], *alias: str) -> str:
    """The error message of an alias that needs a retry; empty if there is none."""
    for error in errors:
        is_of_alias = error.path[: len(alias)] == alias[: len(error.path)]
        if is_of_alias and error.needs_retry:
            return f"{error.type}: {error.message}"
    return ""


def value_of(data: Mapping[str, T], alias: str, name: str) -> T:
    """The value of an alias in a reply."""
    if alias not in data:
        raise BadReply(
            f"{name}: missing from the reply; run the same command again to continue"
        )
    return data[alias]


def _check_name(repo: str, issues: IssuesByAlias) -> None:
    name = issues.get("nameWithOwner")
    if not isinstance(name, str):
        raise BadReply(
            f"{repo}: its name is missing from the reply; run the same command again to continue"
        )
    if name.lower() != repo.lower():
        raise RemoteError(
            f"{repo} became {one_line(name)} during the crawl: run the same command again"
        )


def _add_issue(page: Page, ref: IssueRef, node: Item, *, with_thread: bool) -> None:
    if isinstance(node, str):
        raise BadReply(
            f"{ref}: the reply does not match the query; run the same command again to continue"
        )
    current = ref_of(node)
    if current.repo.lower() != ref.repo.lower():
        page.missing[ref] = (Absence.TRANSFERRED, str(current))
    elif current.number != ref.number:
        raise BadReply(
            f"{ref}: the reply contains {current}; run the same command again to continue"
        )
    elif isinstance(node, FoundPull):
        page.issues.append(parse_pull(node))
    elif with_thread:
        thread, top_ups = parse_thread(node)
        page.threads.append(thread)
        page.top_ups.extend(top_ups)
    else:
        page.issues.append(parse_issue(node))


def fetch_negative_sample(crawl: Crawl, row: RepoRow, count: int, seed: int) -> None:
    """Fetch a sample without threads."""
    repo = row.full_name
    remaining = sample_order(crawl.store, row, seed)
    # Stored, so that an update does not change the order.
    task = CrawlTask(repo, "pool", str(seed), state={"max_number": len(remaining)})
    crawl.save(repo, Page(tasks=[task]))
    fetcher = Fetcher(crawl, with_thread=False)
    missing = count
    while missing and remaining:
        stored = ((n, crawl.store.kind(IssueRef(repo, n))) for n in remaining)
        kinds = _first_kinds(stored, missing, crawl.settings.issue_batch)
        unknown = [IssueRef(repo, n) for n in kinds if kinds[n] is Kind.UNKNOWN]
        page = fetcher.resolve(unknown)
        for issue in page.issues:
            kinds[issue.number] = Kind.PULL if issue.is_pull else Kind.ISSUE
        used = _first_kinds(kinds.items(), missing)
        page.issues = [issue for issue in page.issues if issue.number in used]
        page.missing = {
            ref: page.missing[ref] for ref in page.missing if ref.number in used
        }
        crawl.save(repo, page)
        missing -= list(used.values()).count(Kind.ISSUE)
        remaining = remaining[len(used) :]
        crawl.report(repo, "pool", count - missing, count)


def sample_order(store: Store, row: RepoRow, seed: int) -> list[int]:
    """The order of all numbers, as stored when the repository was first sampled."""
    repo = row.full_name
    stored = {task.key: task.state["max_number"] for task in store.tasks(repo, "pool")}
    return number_order(stored.get(str(seed), row.max_number), repo, seed)


def number_order(max_number: int, repo: str, seed: int) -> list[int]:
    """Shuffle the numbers from 1 to `max_number`; seed and repository determine the order."""
    order = list(range(1, max_number + 1))
    random.Random(f"{seed} {repo}").shuffle(order)  # noqa: S311 - a sample, not a secret
    return order


def _first_kinds(
    kinds: Iterable[tuple[int, Kind]], issues: int, unknown: int = MAX_ITEMS
) -> dict[int, Kind]:
    """The kinds of the first numbers, up to a number of issues or of unknown ones."""
    first = {}
    for number, kind in kinds:
        first[number] = kind
        issues -= kind is Kind.ISSUE
        unknown -= kind is Kind.UNKNOWN
        if not issues or not unknown:
            break
    return first
