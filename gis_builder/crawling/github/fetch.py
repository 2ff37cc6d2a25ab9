"""Fetch issues by number, in batches, until each issue is stored or known to be missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeVar

from gis_builder.crawling.github.answers import GraphQLError
from gis_builder.crawling.github.batches import MOST_OF_THREAD, BatchSize, Crawl, Pages, ask_sized
from gis_builder.crawling.github.client import HttpReply
from gis_builder.crawling.github.nodes import Found, FoundPull, Item, NodeConnection, Parts
from gis_builder.crawling.github.parse import (
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
from gis_builder.crawling.github.queries import GraphQuery
from gis_builder.store import Absence, Page, TopUp
from gis_builder.store.records import IssueRef
from pairkit.app.errors import BadReply, RemoteError
from pairkit.app.printable import one_line

_Home = dict[str, Parts | None]


def top_up(crawl: Crawl, repo: str) -> None:
    """Complete every nested connection of the repository's threads that came in part."""
    size, failures, done = BatchSize(crawl.settings.thread_batch), Counter[TopUp](), 0
    lists: dict[tuple[IssueRef, str], Pages] = {}
    while waiting := crawl.store.top_ups(repo, crawl.settings.thread_batch):
        reply, count = _ask(crawl, repo, waiting, size)
        home: _Home = reply.data.get("r0") or {}
        page = Page()
        for place, wanted in enumerate(waiting[:count]):
            node = home.get(f"t{place}")
            if node and getattr(node, wanted.part) and not failure_of(reply.errors, "r0", f"t{place}"):
                what = f"{wanted.ref} {wanted.part}"
                pages = Pages(what, wanted.before, most=MOST_OF_THREAD)
                _take(page, wanted, node, lists.setdefault((wanted.ref, wanted.part), pages))
                continue
            failures[wanted] += 1
            if failures[wanted] >= crawl.settings.attempts:
                _give_up(page, wanted)
        done += len(page.topped_up)
        crawl.save(repo, page)
        crawl.tell(repo, "top-ups", done, done + len(waiting) - len(page.topped_up))
        if not page.topped_up:
            size.shrink()
            crawl.client.back_off(max(failures.values()), "the server gave nothing of what was asked")


def _ask(crawl: Crawl, repo: str, waiting: Sequence[TopUp], size: BatchSize) -> tuple[HttpReply[_Home], int]:
    def build(count: int) -> GraphQuery[_Home]:
        return crawl.queries.top_ups(repo, waiting[:count])

    return ask_sized(crawl.client, size, build, crawl.settings.attempts)


def _take(page: Page, wanted: TopUp, node: Parts, pages: Pages) -> None:
    ref = wanted.ref
    connection: NodeConnection[Any] = getattr(node, wanted.part)
    with well_formed(f"{ref} {wanted.part}"):
        came = _put_parts(page, wanted, node)
    page.topped_up.append(wanted)
    again = next_top_up(ref, wanted.part, connection, wanted.have)
    missing = connection.total_count - wanted.have - len(connection.items)
    if again:
        pages.turn(came, again.before)
        page.top_ups.append(again)
    elif missing > 0:
        page.warnings.append(
            (ref.repo, f"{ref}: the server counts {missing} more {wanted.part} than it gives")
        )


def _put_parts(page: Page, wanted: TopUp, node: Parts) -> Iterable[Hashable]:
    """Put the items into the page; return what tells each from the others of its connection."""
    ref = wanted.ref
    if node.comments:
        comments = parse_comments(node.comments)
        page.comments.extend((ref, comment) for comment in comments)
        return [comment.id for comment in comments]
    if node.events:
        events = parse_events(node.events)
        first = -wanted.have - len(events)
        page.events.extend((ref, first + place, event) for place, event in enumerate(events))
        return range(first, first + len(events))
    labels = parse_labels(node.labels)
    page.labels.append((ref, labels))
    return labels


def _give_up(page: Page, wanted: TopUp) -> None:
    page.topped_up.append(wanted)
    page.warnings.append(
        (wanted.ref.repo, f"{wanted.ref}: only the last {wanted.have} {wanted.part} could be had")
    )


T = TypeVar("T")


class Fetcher:
    """Fetches issues by number; keeps the largest batch size that the server accepts."""

    def __init__(self, crawl: Crawl) -> None:
        self._crawl = crawl
        self._sizes = {
            True: BatchSize(crawl.settings.thread_batch),
            False: BatchSize(crawl.settings.issue_batch),
        }

    def batch(self, *, with_thread: bool) -> int:
        """Number of issues to resolve at once: those of one full query."""
        settings = self._crawl.settings
        return settings.thread_batch if with_thread else settings.issue_batch

    def resolve(self, refs: Sequence[IssueRef], *, with_thread: bool) -> Page:
        """Fetch all of `refs`."""
        page, failures = Page(), Counter[IssueRef]()
        waiting = sorted(set(refs))
        while waiting:
            size = self._sizes[with_thread]
            reply, count = self._ask(waiting, size, with_thread=with_thread)
            failed = self._take(page, waiting[:count], reply, with_thread=with_thread)
            self._note_failures(page, failures, failed)
            waiting = sorted([ref for ref in failed if ref not in page.missing] + waiting[count:])
            if failed:
                size.shrink()
        return page

    def _ask(
        self, refs: Sequence[IssueRef], size: BatchSize, *, with_thread: bool
    ) -> tuple[HttpReply[Found], int]:
        def build(count: int) -> GraphQuery[Found]:
            return self._crawl.queries.issues(refs[:count], with_thread=with_thread)

        return ask_sized(self._crawl.client, size, build, self._crawl.settings.attempts)

    def _take(
        self, page: Page, refs: Sequence[IssueRef], reply: HttpReply[Found], *, with_thread: bool
    ) -> dict[IssueRef, str]:
        """Put what came into the page; return what has to be asked for again, with the server's words."""
        failed: dict[IssueRef, str] = {}
        for place, (repo, group) in enumerate(groupby(refs, key=lambda ref: ref.repo)):
            home = part(reply.data, f"r{place}", repo)
            for ref in group:
                node = part(home, f"i{ref.number}", str(ref)) if home else None
                failure = failure_of(reply.errors, f"r{place}", f"i{ref.number}")
                if failure:
                    failed[ref] = failure
                elif home is None:
                    page.missing[ref] = (Absence.NO_REPOSITORY, "")
                elif node is None:
                    page.missing[ref] = (Absence.DELETED, "")
                else:
                    _must_be(repo, home)
                    _put(page, ref, node, with_thread=with_thread)
        return failed

    def _note_failures(self, page: Page, failures: Counter[IssueRef], failed: Mapping[IssueRef, str]) -> None:
        """Give up on those that fail again and again: one bad issue must not stop its repository."""
        if not failed:
            return
        failures.update(list(failed))
        for ref, words in failed.items():
            if failures[ref] >= self._crawl.settings.attempts:
                page.missing[ref] = (Absence.WITHHELD, "")
                page.warnings.append((ref.repo, f"{ref} is left out: the server fails on it ({words})"))
        self._crawl.client.back_off(max(failures[ref] for ref in failed), next(iter(failed.values())))


def fetch(crawl: Crawl, refs: Sequence[IssueRef]) -> None:
    """Fetch issues by number, of any repositories, a stored page at a time."""
    fetcher = Fetcher(crawl)
    size = fetcher.batch(with_thread=False)
    ordered = sorted(set(refs))
    for start in range(0, len(ordered), size):
        batch = ordered[start : start + size]
        crawl.save(_account(batch), fetcher.resolve(batch, with_thread=False))
        crawl.tell(_account(batch), "issues", start + len(batch), len(ordered))


def _account(refs: Sequence[IssueRef]) -> str:
    """The repository whose usage includes a batch; empty if several share it."""
    repos = {ref.repo for ref in refs}
    return repos.pop() if len(repos) == 1 else ""


def fetch_threads(crawl: Crawl, repo: str) -> None:
    """Fetch every pending thread, one stored page at a time."""
    fetcher = Fetcher(crawl)
    total = crawl.store.count_pending(repo)
    limit = fetcher.batch(with_thread=True)
    while refs := crawl.store.pending(repo, limit):
        page = fetcher.resolve(refs, with_thread=True)
        page.granted.extend(refs)
        crawl.save(repo, page)
        crawl.tell(repo, "threads", total - crawl.store.count_pending(repo), total)


def failure_of(errors: Sequence[GraphQLError], *alias: str) -> str:
    """The words of an error that spoilt what is under an alias; empty where none did."""
    for error in errors:
        if error.spoils and error.path[: len(alias)] == alias[: len(error.path)]:
            return f"{error.type}: {error.message}"
    return ""


def part(data: Mapping[str, T], alias: str, what: str) -> T:
    """The data under an alias."""
    if alias not in data:
        raise BadReply(f"{what}: the reply does not have it; run the same command again to continue")
    return data[alias]


def _must_be(repo: str, home: Found) -> None:
    name = home.get("nameWithOwner")
    if not isinstance(name, str):
        raise BadReply(f"{repo}: the reply does not have its name; run the same command again to continue")
    if name.lower() != repo.lower():
        raise RemoteError(f"{repo} became {one_line(name)} during the crawl: run the same command again")


def _put(page: Page, ref: IssueRef, node: Item, *, with_thread: bool) -> None:
    if isinstance(node, str):
        raise BadReply(
            f"{ref}: the reply does not have what was asked for; run the same command again to continue"
        )
    now = ref_of(node)
    if now.repo.lower() != ref.repo.lower():
        page.missing[ref] = (Absence.TRANSFERRED, str(now))
    elif now.number != ref.number:
        raise BadReply(f"{ref}: the reply is about {now}; run the same command again to continue")
    elif isinstance(node, FoundPull):
        page.issues.append(parse_pull(node))
    elif with_thread:
        parsed = parse_thread(node)
        page.threads.append(parsed.thread)
        page.top_ups.extend(parsed.top_ups)
    else:
        page.issues.append(parse_issue(node))
