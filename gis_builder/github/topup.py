"""The beginnings of long threads: going back from what a first look gave, until every connection is whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from gis_builder.github.batches import BatchSize, ask_sized
from gis_builder.github.client import Reply
from gis_builder.github.crawl import Crawl
from gis_builder.github.fetch import failure_of
from gis_builder.github.pages import Pages
from gis_builder.github.parse import (
    next_top_up,
    parse_comments,
    parse_events,
    parse_labels,
    shortfall,
    well_formed,
)
from gis_builder.records import IssueRef
from gis_builder.store import Page, TopUp

_MOST_ITEMS = 100_000  # of one thread; GitHub itself takes no more than 2,500 comments


def top_up(crawl: Crawl, repo: str) -> None:
    """Complete every nested connection of the repository's threads that came in part."""
    size, failures, done = BatchSize(crawl.settings.thread_batch), Counter[TopUp](), 0
    lists: dict[tuple[IssueRef, str], Pages] = {}
    while waiting := crawl.store.top_ups(repo, crawl.settings.thread_batch):
        reply, count = _ask(crawl, repo, waiting, size)
        home = reply.data.get("r0") or {}
        page = Page()
        for place, wanted in enumerate(waiting[:count]):
            node = home.get(f"t{place}") or {}
            if node.get(wanted.part) and not failure_of(reply.errors, "r0", f"t{place}"):
                what = f"{wanted.ref} {wanted.part}"
                pages = Pages(what, wanted.before, most=_MOST_ITEMS)
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


def _ask(crawl: Crawl, repo: str, waiting: Sequence[TopUp], size: BatchSize) -> tuple[Reply, int]:
    def build(count: int) -> str:
        return crawl.queries.top_ups(repo, waiting[:count])

    return ask_sized(crawl.client, size, build, crawl.settings.attempts)


def _take(page: Page, wanted: TopUp, node: Mapping[str, Any], pages: Pages) -> None:
    ref = wanted.ref
    with well_formed(f"{ref} {wanted.part}"):
        connection = node[wanted.part]
        page.topped_up.append(wanted)
        if wanted.part == "comments":
            comments = parse_comments(connection)
            page.comments.extend((ref, comment) for comment in comments)
            came: Iterable[Hashable] = [comment.id for comment in comments]
        elif wanted.part == "labels":
            labels = parse_labels(connection)
            page.labels.append((ref, labels))
            came = labels
        else:
            events = parse_events(connection)
            first = -wanted.have - len(events)
            page.events.extend((ref, first + place, event) for place, event in enumerate(events))
            came = range(first, first + len(events))
    again = next_top_up(ref, wanted.part, connection, wanted.have)
    if again:
        pages.turn(came, again.before)
        page.top_ups.append(again)
    elif missing := shortfall(connection, wanted.have):
        page.warnings.append(
            (ref.repo, f"{ref}: the server counts {missing} more {wanted.part} than it gives")
        )


def _give_up(page: Page, wanted: TopUp) -> None:
    page.topped_up.append(wanted)
    page.warnings.append(
        (wanted.ref.repo, f"{wanted.ref}: only the last {wanted.have} {wanted.part} could be had")
    )
