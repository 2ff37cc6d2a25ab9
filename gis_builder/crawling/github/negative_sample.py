"""Fetches a random sample of a repository's issues, from which negatives are drawn.

The sample is the first n issues in a random order of all numbers. Issues of the last batch beyond the n-th
are discarded, so batch sizes and interruptions don't change the sample.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping

from gis_builder.crawling.github.fetch import Fetcher
from gis_builder.crawling.github.fetch_batches import Crawl
from gis_builder.store import CrawlTask, IssueRef, Kind, Page, RepoRow, Store


def fetch_negative_sample(crawl: Crawl, row: RepoRow, count: int, seed: int) -> None:
    """Fetch a sample without threads."""
    repo = row.full_name
    if _stored_sample(crawl.store, repo, seed) is None:
        # Store the highest number, so that an update does not change the order.
        task = CrawlTask(repo, "pool", str(seed), state={"max_number": row.max_number})
        crawl.save(repo, Page(tasks=[task]))
    fetcher = Fetcher(crawl, with_thread=False)
    remaining = sample_order(crawl.store, row, seed)
    missing = count
    while missing and remaining:
        kinds = _next_kinds(crawl, repo, remaining, missing)
        page = fetcher.resolve(
            [IssueRef(repo, n) for n in kinds if kinds[n] is Kind.UNKNOWN]
        )
        for issue in page.issues:
            kinds[issue.number] = Kind.PULL if issue.is_pull else Kind.ISSUE
        used = _prefix(kinds, missing)
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
    stored = _stored_sample(store, row.full_name, seed)
    max_number = stored.state["max_number"] if stored else row.max_number
    return number_order(max_number, row.full_name, seed)


def _stored_sample(store: Store, repo: str, seed: int) -> CrawlTask | None:
    tasks = store.tasks(repo, "pool")
    return next((task for task in tasks if task.key == str(seed)), None)


def number_order(max_number: int, repo: str, seed: int) -> list[int]:
    """Shuffle the numbers from 1 to `max_number`; seed and repository determine the order."""
    order = list(range(1, max_number + 1))
    random.Random(f"{seed} {repo}").shuffle(order)  # noqa: S311 - a sample, not a secret
    return order


def _next_kinds(
    crawl: Crawl, repo: str, numbers: Iterable[int], count: int
) -> dict[int, Kind]:
    """The stored kinds of the first numbers, up to the `count`-th issue or a batch of unknown ones."""
    kinds = {}
    unknown = 0
    for number in numbers:
        kind = crawl.store.kind(IssueRef(repo, number))
        kinds[number] = kind
        count -= kind is Kind.ISSUE
        unknown += kind is Kind.UNKNOWN
        if not count or unknown == crawl.settings.issue_batch:
            break
    return kinds


def _prefix(kinds: Mapping[int, Kind], count: int) -> dict[int, Kind]:
    """The numbers up to the `count`-th issue, with their kinds."""
    prefix = {}
    for number, kind in kinds.items():
        prefix[number] = kind
        count -= kind is Kind.ISSUE
        if not count:
            break
    return prefix
