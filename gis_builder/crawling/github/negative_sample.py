"""Fetches a random sample of a repository's issues, from which negatives are drawn.

The sample is the first n issues in a random order of all numbers. Issues of the last batch beyond the n-th
are discarded, so batch sizes and interruptions don't change the sample.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import islice

from gis_builder.crawling.github.fetch import Fetcher
from gis_builder.crawling.github.fetch_batches import Crawl
from gis_builder.store import CrawlTask, Page, RepoRow, Store
from gis_builder.store.issue_records import IssueRef, Kind


def fetch_negative_sample(crawl: Crawl, row: RepoRow, count: int, seed: int) -> None:
    """Fetch a sample without threads."""
    fetcher = Fetcher(crawl)
    if not any(task.key == str(seed) for task in crawl.store.tasks(row.full_name, "pool")):
        # Store the highest number, so that an update does not change the order.
        task = CrawlTask(row.full_name, "pool", str(seed), state={"max_number": row.max_number})
        crawl.save(row.full_name, Page(tasks=[task]))
    order = sample_order(crawl.store, row, seed)
    position = drawn = 0
    while drawn < count and position < len(order):
        kinds = _next_kinds(crawl, row.full_name, order, position, crawl.settings.issue_batch)
        used = _prefix(kinds, count - drawn)
        if not used:
            used = _fetch(crawl, fetcher, row.full_name, kinds, count - drawn)
        drawn += sum(kinds[number] is Kind.ISSUE for number in used)
        position += len(used)
        crawl.report(row.full_name, "pool", drawn, count)


def sample_order(store: Store, row: RepoRow, seed: int) -> list[int]:
    """The order of all numbers, as stored when the repository was first sampled."""
    stored = [task for task in store.tasks(row.full_name, "pool") if task.key == str(seed)]
    max_number = stored[0].state["max_number"] if stored else row.max_number
    return number_order(max_number, row.full_name, seed)


def number_order(max_number: int, repo: str, seed: int) -> list[int]:
    """Shuffle the numbers from 1 to `max_number`; seed and repository determine the order."""
    order = list(range(1, max_number + 1))
    random.Random(f"{seed} {repo}").shuffle(order)  # noqa: S311 - a sample, not a secret
    return order


def _next_kinds(crawl: Crawl, repo: str, order: Sequence[int], start: int, unknown: int) -> dict[int, Kind]:
    """The stored kinds of the numbers from `start`, up to the given count of unknown ones."""
    kinds: dict[int, Kind] = {}
    for number in islice(order, start, None):
        kinds[number] = crawl.store.kind(IssueRef(repo, number))
        unknown -= kinds[number] is Kind.UNKNOWN
        if not unknown:
            break
    return kinds


def _fetch(crawl: Crawl, fetcher: Fetcher, repo: str, kinds: dict[int, Kind], count: int) -> list[int]:
    """Fetch the unknown numbers, add their kinds, and store those in the sample."""
    unknown = [IssueRef(repo, number) for number, kind in kinds.items() if kind is Kind.UNKNOWN]
    page = fetcher.resolve(unknown, with_thread=False)
    kinds |= {issue.number: Kind.PULL if issue.is_pull else Kind.ISSUE for issue in page.issues}
    kinds |= {ref.number: Kind.MISSING for ref in page.missing}
    used = _prefix(kinds, count)
    kept = {IssueRef(repo, number) for number in used}
    page.issues = [issue for issue in page.issues if issue.ref in kept]
    page.missing = {ref: reason for ref, reason in page.missing.items() if ref in kept}
    crawl.save(repo, page)
    return used


def _prefix(kinds: Mapping[int, Kind], count: int) -> list[int]:
    """The numbers up to the `count`-th issue, or before the first unknown number."""
    prefix: list[int] = []
    for number, kind in kinds.items():
        if kind is Kind.UNKNOWN:
            break
        prefix.append(number)
        count -= kind is Kind.ISSUE
        if not count:
            break
    return prefix
