"""The store: pages and threads, snapshots, hashes, and invalid files."""

from __future__ import annotations

import resource
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gis_builder.store import CrawlTask, Page, Store, TopUp, Usage
from gis_builder.store.issue_records import Comment, Event, Issue, IssueRef, Thread
from pairkit import ConfigError, DataError

from .detect_threads import thread

REPO = "acme/rocket"


def an_issue(number: int, **changes: object) -> Issue:
    return thread(**{"repo": REPO, "number": number, "title": f"title {number}", **changes}).issue


def a_comment(identity: int, body: str = "hello") -> Comment:
    return Comment(identity, "bob", "MEMBER", "2020-01-01T00:00:00Z", body)


def an_event(kind: str, second: int = 0) -> Event:
    return Event(kind, "bob", f"2020-01-01T00:00:{second:02}Z")


def test_a_thread_is_restored(store: Store) -> None:
    target = IssueRef("acme/other", 7)
    thread = Thread(
        an_issue(3, labels=("bug", "dup"), duplicate_of=target, is_bot=True, author=None),
        (a_comment(1, "a\x00b\r\n\N{PILE OF POO}"), replace(a_comment(2), is_bot=True, author=None)),
        (
            an_event("closed"),
            Event("marked_as_duplicate", None, "2020-01-01T00:00:00Z", target, state_reason="duplicate"),
        ),
    )
    store.save(Page(threads=[thread]))
    assert store.thread(IssueRef(REPO, 3)) == thread
    assert list(store.threads(REPO)) == [thread]


def test_threads_are_sorted_and_without_pulls_and_incomplete_ones(store: Store) -> None:
    whole, unfinished = Thread(an_issue(2), (a_comment(5),)), Thread(an_issue(9), (a_comment(6),))
    store.save(
        Page(
            threads=[unfinished, whole],
            issues=[an_issue(4), an_issue(1, is_pull=True)],
            top_ups=[TopUp(IssueRef(REPO, 9), "comments", "cursor", 1)],
        )
    )
    assert [thread.issue.number for thread in store.threads(REPO)] == [2]
    assert [thread.issue.number for thread in store.threads(REPO, only_complete=False)] == [2, 4, 9]
    assert [issue.number for issue in store.issues(REPO)] == [2, 4, 9]


def test_a_top_up_prepends_items_and_completes_the_thread(store: Store) -> None:
    ref = IssueRef(REPO, 1)
    late, early = an_event("closed"), an_event("reopened")
    wanted = TopUp(ref, "events", "cursor", 1)
    store.save(Page(threads=[Thread(an_issue(1), events=(late,))], top_ups=[wanted]))
    assert list(store.threads(REPO)) == []
    store.save(Page(topped_up=[wanted], events=[(ref, -3, early), (ref, -2, early)]))
    (thread,) = store.threads(REPO)
    assert thread.events == (early, early, late)
    assert store.top_ups(REPO, 9) == []


def test_threads_replace_issues_but_not_the_reverse(store: Store) -> None:
    store.save(Page(threads=[Thread(an_issue(1), (a_comment(1), a_comment(2)), (an_event("closed"),))]))
    store.save(Page(issues=[an_issue(1, title="newer")]))
    assert store.thread(IssueRef(REPO, 1)).issue.title == "title 1"
    store.save(Page(threads=[Thread(an_issue(1, title="newest"), (a_comment(2),))]))
    thread = store.thread(IssueRef(REPO, 1))
    assert (thread.issue.title, len(thread.comments), thread.events) == ("newest", 1, ())


def test_pending_threads_are_distinct_and_not_stored_yet(store: Store) -> None:
    store.save(Page(threads=[Thread(an_issue(1))], issues=[an_issue(2), an_issue(3, is_pull=True)]))
    for numbers in ((1, 2, 5), (1, 2, 3, 5)):
        store.save(Page(pending=[IssueRef(REPO, number) for number in numbers]))
    wished = store.pending(REPO, limit=9)
    assert [ref.number for ref in wished] == [2, 5]
    store.save(Page(fetched=wished))
    assert store.count_pending(REPO) == 0


def test_tasks_keep_their_cursor_until_deleted(store: Store) -> None:
    begun = CrawlTask(REPO, "sweep", "a", state={"got": 0})
    store.save(Page(tasks=[begun, CrawlTask(REPO, "sweep", "b", state={"got": 9}, done=True)]))
    store.save(Page(tasks=[replace(begun, cursor="cursor", state={"got": 3})]))
    assert store.tasks(REPO, "sweep", done=False) == [CrawlTask(REPO, "sweep", "a", "cursor", {"got": 3})]
    store.save(Page(dropped=[(REPO, "all")]))
    assert store.tasks(REPO, "all") == []


def test_a_page_is_one_transaction(store: Store) -> None:
    broken = replace(a_comment(1), body=None)  # the column forbids null
    with pytest.raises(DataError):
        store.save(Page(threads=[Thread(an_issue(1), (broken,))], usage={REPO: Usage(1, 1)}))
    assert store.thread(IssueRef(REPO, 1)) is None
    assert store.usage() == {}
    store.save(Page(threads=[Thread(an_issue(1))]))  # the store is still usable


@settings(max_examples=12)
@given(order=st.permutations(range(1, 7)), cuts=st.lists(st.integers(1, 6), max_size=3))
def test_the_content_hash_does_not_depend_on_the_order_of_pages(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], cuts: list[int]
) -> None:
    def filled(numbers: list[int], breaks: set[int]) -> str:
        path = tmp_path_factory.mktemp("hash") / "store.sqlite"
        with Store.open(path, create=True) as store:
            page = Page()
            for place, number in enumerate(numbers):
                page.threads.append(Thread(an_issue(number), (a_comment(number),), (an_event("closed"),)))
                if place in breaks:
                    page.usage = {REPO: Usage(place, 1)}
                    store.save(page)
                    page = Page()
            store.save(page)
            return store.content_hash()

    assert filled(list(order), set(cuts)) == filled(list(range(1, 7)), set())


def test_the_content_hash_depends_on_texts(store: Store) -> None:
    store.save(Page(threads=[Thread(an_issue(1), (a_comment(1, "one"),))]))
    before = store.content_hash()
    store.save(Page(threads=[Thread(an_issue(1), (a_comment(1, "two"),))]))
    assert store.content_hash() != before


def test_only_its_owner_can_read_it(store: Store) -> None:
    store.save(Page(issues=[an_issue(1)]))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in store.path.parent.iterdir()}
    assert set(modes.values()) == {0o600}, modes


def test_reading_uses_a_snapshot(store: Store) -> None:
    store.save(Page(threads=[Thread(an_issue(n)) for n in range(1, 4)]))
    reader = store.threads(REPO)
    first = next(reader)
    store.save(Page(threads=[Thread(an_issue(n, title="newer")) for n in range(1, 6)]))
    assert [first.issue.number, *(t.issue.number for t in reader)] == [1, 2, 3]


def of_a_newer_version(path: Path) -> None:
    Store.open(path, create=True).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")


def of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE songs (name)")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda _: None, "no such store; run `gis import` or `gis crawl` first"),
        (of_a_newer_version, r"made by a newer version \(99, here 1\): update aoe-toolkit, or choose"),
        (of_another_program, "not a crawl store"),
    ],
    ids=["absent", "newer", "another program's"],
)
def test_invalid_stores_end_in_a_one_line_error(
    tmp_path: Path, make: Callable[[Path], object], message: str
) -> None:
    path = tmp_path / "store.sqlite"
    make(path)
    with pytest.raises((ConfigError, DataError), match=message) as caught:
        read_all(path)
    assert "\n" not in str(caught.value)


def read_all(path: Path) -> None:
    with Store.open(path) as store:
        store.all_repos()
        store.tasks(REPO, "all")
        list(store.threads(REPO))


def test_memory_does_not_grow_with_the_repository(store: Store) -> None:
    body = "x" * 50_000
    for start in range(1, 601, 50):
        store.save(Page(threads=[Thread(an_issue(n, body=body)) for n in range(start, start + 50)]))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert sum(len(thread.issue.body) for thread in store.threads(REPO)) == 600 * len(body)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 20_000, f"{grown} kB for reading 30 MB"
