"""A fair sample of a repository's issues, from which negatives are drawn.

The sample is the first n issues in an order of all numbers that the seed decides. What the batches bring
beyond the n-th is thrown away, so neither batch sizes nor interruptions can change which issues are in it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import islice

from gis_builder.crawling.github.batches import Crawl
from gis_builder.crawling.github.fetch import Fetcher
from gis_builder.store import CrawlTask, Page, RepoRow, Store
from gis_builder.store.records import IssueRef, Kind


def fetch_negative_sample(crawl: Crawl, row: RepoRow, count: int, seed: int) -> list[int]:
    """Fetch a sample, light, and return its numbers in sample order."""
    fetcher = Fetcher(crawl)
    _fix_order(crawl, row, seed)
    order = sample_order(crawl.store, row, seed)
    place = 0
    numbers: list[int] = []
    while len(numbers) < count and place < len(order):
        kinds = _known_run(crawl, row.full_name, order, place, fetcher.batch(with_thread=False))
        used = _prefix(kinds, count - len(numbers))
        if not used:
            used = _fetch(crawl, fetcher, row.full_name, kinds, count - len(numbers))
        numbers.extend(number for number in used if kinds[number] is Kind.ISSUE)
        place += len(used)
        crawl.tell(row.full_name, "pool", len(numbers), count)
    return numbers


def sample_order(store: Store, row: RepoRow, seed: int) -> list[int]:
    """The order of numbers that a sample is taken in: as it was fixed when first drawn, if it was."""
    tasks = _tasks(store, row, seed)
    newest = tasks[0].state["max_number"] if tasks else row.max_number
    return number_order(newest, row.full_name, seed)


def number_order(max_number: int, repo: str, seed: int) -> list[int]:
    """All numbers from 1 to `max_number` in an order that the seed and the repository decide."""
    order = list(range(1, max_number + 1))
    random.Random(f"{seed} {repo}").shuffle(order)  # noqa: S311 - a sample, not a secret
    return order


def _fix_order(crawl: Crawl, row: RepoRow, seed: int) -> None:
    """Fix the order when it is first drawn: a later update must not shuffle it anew."""
    if not _tasks(crawl.store, row, seed):
        task = CrawlTask(row.full_name, "pool", str(seed), state={"max_number": row.max_number})
        crawl.save(row.full_name, Page(tasks=[task]))


def _tasks(store: Store, row: RepoRow, seed: int) -> list[CrawlTask]:
    return [task for task in store.tasks(row.full_name, "pool") if task.key == str(seed)]


def _known_run(crawl: Crawl, repo: str, order: Sequence[int], place: int, unknown: int) -> dict[int, Kind]:
    """What the store knows of the next numbers, in order, as many as hold so many that it does not know."""
    kinds: dict[int, Kind] = {}
    for number in islice(order, place, None):
        kinds[number] = crawl.store.kind(IssueRef(repo, number))
        unknown -= kinds[number] is Kind.UNKNOWN
        if not unknown:
            break
    return kinds


def _fetch(crawl: Crawl, fetcher: Fetcher, repo: str, kinds: dict[int, Kind], wanted: int) -> list[int]:
    """Ask for the unknown numbers, note what they are, and store those that the sample uses."""
    unknown = [IssueRef(repo, number) for number, kind in kinds.items() if kind is Kind.UNKNOWN]
    page = fetcher.resolve(unknown, with_thread=False)
    kinds |= {issue.number: Kind.PULL if issue.is_pull else Kind.ISSUE for issue in page.issues}
    kinds |= {ref.number: Kind.MISSING for ref in page.missing}
    used = _prefix(kinds, wanted)
    kept = {IssueRef(repo, number) for number in used}
    page.issues = [issue for issue in page.issues if issue.ref in kept]
    page.missing = {ref: why for ref, why in page.missing.items() if ref in kept}
    crawl.save(repo, page)
    return used


def _prefix(kinds: Mapping[int, Kind], wanted: int) -> list[int]:
    """The numbers up to the last issue that is wanted, or up to the first that nothing is known of."""
    prefix: list[int] = []
    for number, kind in kinds.items():
        if kind is Kind.UNKNOWN:
            break
        prefix.append(number)
        wanted -= kind is Kind.ISSUE
        if not wanted:
            break
    return prefix
