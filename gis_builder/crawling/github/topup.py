"""The beginnings of long threads: going back from what a first look gave, until every connection is whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from gis_builder.crawling.github.batches import MOST_OF_THREAD, BatchSize, Crawl, Pages, ask_sized
from gis_builder.crawling.github.client import HttpReply
from gis_builder.crawling.github.fetch import failure_of
from gis_builder.crawling.github.nodes import NodeConnection, Parts
from gis_builder.crawling.github.parse import (
    next_top_up,
    parse_comments,
    parse_events,
    parse_labels,
    well_formed,
)
from gis_builder.crawling.github.queries import GraphQuery
from gis_builder.store import Page, TopUp
from gis_builder.store.records import IssueRef

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
        came = _put(page, wanted, node)
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


def _put(page: Page, wanted: TopUp, node: Parts) -> Iterable[Hashable]:
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
