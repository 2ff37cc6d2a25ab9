"""The strategies against the test server: complete, cheap, and unaffected by faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from gis_builder.crawl_progress import Advanced
from gis_builder.crawling.github.negative_sample import number_order
from gis_builder.store import RepoOutcome, Store
from gis_builder.store.issue_records import IssueRef, Kind
from pairkit import AuthError
from tests.support.github import FaultPlan, Options, Rule, Server, serve

from .conftest import issue, write_tracker
from .crawl_world import (
    LAST,
    STATION,
    comment_count,
    crawl_all,
    is_duplicate,
    is_pull,
    open_github,
    quick,
    station_rows,
)

ROCKET, FUEL = "acme/rocket", "acme/fuel"


@pytest.fixture(scope="module")
def undisturbed(station: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The content hash of an undisturbed crawl by strategy."""
    hashes = {}
    for strategy in ("search", "all"):
        path = tmp_path_factory.mktemp("undisturbed") / "store.sqlite"
        with Store.open(path, create=True) as store:
            crawl_all(quick(station.url), store, strategy)
            hashes[strategy] = store.content_hash()
    return hashes


def issue_numbers() -> list[int]:
    return [number for number in range(1, LAST + 1) if number % 17 and not is_pull(number)]


def test_each_repository_has_its_own_outcome(tiny: Server, store: Store) -> None:
    names = ["acme/missile", "acme/Rocket", "acme/vault", "acme/quiet", "acme/void", "acme/nowhere"]
    with open_github(quick(tiny.url), store) as github:
        rows = github.check(names)
        outcomes = [row.outcome.value for row in rows]
        assert outcomes == ["renamed", "ok", "not_found", "issues_disabled", "empty", "not_found"]
        assert [row.full_name for row in rows[:2]] == [ROCKET, ROCKET]
        assert (rows[0].max_number, rows[0].labels) == (9, ("Duplicate",))
        assert all(row.detail for row in rows if row.outcome is not RepoOutcome.OK)
        before = tiny.stats.points
        github.sweep(names)
        assert tiny.stats.points - before == 3  # one page and two top-ups; not repeated for the second name
    assert [thread.issue.number for thread in store.threads("acme/MISSILE")] == [1, 2, 4, 5, 6, 9]


def test_only_missing_repositories_are_checked_again(tiny: Server, store: Store) -> None:
    with open_github(quick(tiny.url), store) as github:
        github.check([ROCKET, FUEL])
        before = tiny.stats.requests
        github.check([ROCKET, FUEL])
        assert tiny.stats.requests == before
        github.check([ROCKET, "acme/nowhere"])
        github.check(["acme/nowhere"])
        assert tiny.stats.requests == before + 2


def test_a_sweep_stores_every_thread_completely(station: Server, store: Store) -> None:
    crawl_all(quick(station.url), store, "all")
    rows = station_rows()
    threads = {thread.issue.number: thread for thread in store.threads(STATION)}
    assert sorted(threads) == issue_numbers()
    for row in rows["issues"]:
        if row["number"] not in threads:
            continue
        thread = threads[row["number"]]
        assert len(thread.comments) == comment_count(row["number"])
        assert [comment.id for comment in thread.comments] == sorted(c.id for c in thread.comments)
        assert thread.issue.body == (row["body"] or "")
        assert list(thread.issue.labels) == [label["name"] for label in row["labels"]]
        events = [e for e in rows["events"] if e["issue_url"].endswith(f"/{row['number']}")]
        assert [(e.kind, e.created_at) for e in thread.events] == [
            (e["event"], e["created_at"]) for e in events
        ]
        assert thread.issue.closed_by == ("max" if row["closed_at"] and events else None)
    assert store.warnings() == []


def test_a_search_stores_only_candidates_completely(station: Server, store: Store, tmp_path: Path) -> None:
    crawl_all(quick(station.url), store, "search")
    threads = {thread.issue.number: thread for thread in store.threads(STATION)}
    expected = [n for n in issue_numbers() if is_duplicate(n) and comment_count(n)]
    assert sorted(threads) == expected
    assert len(expected) > 9  # above the limit of a search, so windows were split
    assert store.warnings() == []
    with Store.open(tmp_path / "sweep.sqlite", create=True) as other:
        crawl_all(quick(station.url), other, "all")
        assert all(other.thread(IssueRef(STATION, number)) == thread for number, thread in threads.items())


def test_a_too_frequent_phrase_is_skipped_with_a_warning(station: Server, store: Store) -> None:
    settings = quick(station.url, phrases=("remark", "duplicate"), max_phrase_share=0.4)
    with open_github(settings, store) as github:
        github.check([STATION])
        github.search([STATION])
    assert store.count_threads(STATION) < 25
    ((repo, words),) = store.warnings()
    assert repo == STATION
    assert '"remark" in:comments' in words


def test_usage_equals_the_count_of_the_server(station_dump: Path, store: Store) -> None:
    with serve(station_dump) as server:
        crawl_all(quick(server.url), store, "search")
        usage = store.usage().values()
        assert sum(spent.points for spent in usage) == server.stats.points
        assert sum(spent.requests for spent in usage) == server.stats.requests


def test_a_server_without_the_newer_fields(station_dump: Path, tiny_dump: Path, store: Store) -> None:
    with (
        serve(tiny_dump, options=Options(without_duplicate_of=True)) as server,
        open_github(quick(server.url), store) as github,
    ):
        github.check([ROCKET])
        github.sweep([ROCKET])
    marks = [event.target for event in store.thread(IssueRef(ROCKET, 2)).events if event.target]
    assert marks == [IssueRef(ROCKET, 1)]


def test_fetching_by_number(tiny: Server, store: Store) -> None:
    refs = [IssueRef(ROCKET, number) for number in (1, 3, 4, 7, 8)]
    refs += [
        IssueRef("acme/MISSILE", 2),
        IssueRef(FUEL, 1),
        IssueRef("acme/nowhere", 5),
        IssueRef("acme/vault", 1),
    ]
    with open_github(quick(tiny.url), store) as github:
        github.check([ROCKET])
        github.fetch(refs)
        kinds = [store.kind(ref) for ref in refs]
        assert kinds[:5] == [Kind.ISSUE, Kind.PULL, Kind.ISSUE, Kind.MISSING, Kind.MISSING]
        assert kinds[5:] == [Kind.ISSUE, Kind.ISSUE, Kind.MISSING, Kind.MISSING]
        assert [row.name for row in store.repos()] == [ROCKET]
        assert list(store.threads(ROCKET)) == []
        assert store.thread(IssueRef(ROCKET, 4)).comments == ()
        before = tiny.stats.requests
        github.fetch(refs)
        assert tiny.stats.requests == before


def test_invalid_repository_names_need_no_request(tiny: Server, store: Store) -> None:
    """References in texts may look like repositories, and must not end the crawl."""
    refs = [IssueRef(repo, 1) for repo in ("f\u00f6\u00f6/bar", "_a/b", "-x/y", "a/..", "a..b/c")]
    with open_github(quick(tiny.url), store) as github:
        github.check([ROCKET])
        before = tiny.stats.requests
        github.fetch(refs)
        assert tiny.stats.requests == before
    assert {store.kind(ref) for ref in refs} == {Kind.MISSING}


@pytest.mark.parametrize("batch", [9, 100])
def test_the_negative_sample_follows_the_random_order(station: Server, store: Store, batch: int) -> None:
    with open_github(quick(station.url, issue_batch=batch), store) as github:
        github.check([STATION])
        numbers = github.fetch_negative_sample({STATION: 20}, seed=5)[STATION]
        order = number_order(LAST, STATION, 5)
        expected = [number for number in order if number in set(issue_numbers())]
        assert numbers == expected[:20]
        stored = [issue.number for issue in store.issues(STATION)]
        assert stored == sorted(numbers)  # without the rest of the last batch
        assert github.fetch_negative_sample({STATION: 10}, seed=5)[STATION] == expected[:10]
        assert github.fetch_negative_sample({STATION: 30}, seed=5)[STATION] == expected[:30]
        assert github.fetch_negative_sample({STATION: 1000}, seed=5)[STATION] == expected


def test_an_update_equals_a_new_crawl(station: Server, tmp_path: Path, store: Store) -> None:
    crawl_all(quick(station.url), store, "all")
    rows = station_rows()
    changed = next(row for row in rows["issues"] if row["number"] == 8)
    changed |= {"title": "Renamed", "updated_at": "2021-01-01T00:00:00Z"}
    rows["comments"] = [row for row in rows["comments"] if row["id"] != 8000]
    rows["comments"].append(
        dict(rows["comments"][0], id=9_999_999, issue_url=changed["repository_url"] + "/issues/8")
    )
    new = issue(STATION, 1, created_at="2021-01-02T00:00:00Z", updated_at="2021-01-02T00:00:00Z") | {
        "number": LAST + 1
    }
    rows["issues"].append(new)
    write_tracker(tmp_path / "later", STATION, **rows)
    with serve(tmp_path / "later") as later, Store.open(tmp_path / "new.sqlite", create=True) as fresh:
        with open_github(quick(later.url), store) as github:
            github.update([STATION])
            assert later.stats.points <= 4  # schema, look-up, one page
            assert store.repo(STATION).max_number == LAST + 1
            before = later.stats.points
            github.update([STATION])
            assert later.stats.points - before <= 2
        crawl_all(quick(later.url), fresh, "all")
        for number in (8, LAST + 1):
            ref = IssueRef(STATION, number)
            assert store.thread(ref) == fresh.thread(ref)
        assert [t.issue for t in store.threads(STATION)] == [t.issue for t in fresh.threads(STATION)]


FAULTS = [
    "502",
    "rate_limited_200",
    "secondary_403",
    "partial",
    "truncated",
    "stalled",
    "too_many_429",
    "dropped",
]


@pytest.mark.parametrize("strategy", ["search", "all"])
@pytest.mark.parametrize(("kinds", "share"), [(FAULTS, 0.08), (["partial"], 0.25)], ids=["mixed", "partial"])
def test_faults_do_not_change_the_content(
    *,
    station_dump: Path,
    store: Store,
    undisturbed: dict[str, str],
    strategy: str,
    kinds: list[str],
    share: float,
) -> None:
    # Limits of the faults that cause real waits.
    limits = {"rate_limited_200": 1, "stalled": 2}
    rules = tuple(Rule(kind=kind, probability=share, limit=limits.get(kind)) for kind in kinds)
    with serve(station_dump, faults=FaultPlan(rules=rules, seed=3, retry_after_s=0.0, stall_s=20)) as server:
        crawl_all(quick(server.url, timeout_s=0.5), store, strategy)
        assert server.stats.faults
    assert store.content_hash() == undisturbed[strategy]
    assert store.warnings() == []


def test_a_crawl_continues_after_the_network_was_lost(
    station_dump: Path, store: Store, undisturbed: dict[str, str]
) -> None:
    server = serve(station_dump)
    port = int(server.url.rpartition(":")[2])

    def lose_network(event: object) -> None:
        if isinstance(event, Advanced):
            server.close()

    with open_github(quick(server.url, attempts=3), store, lose_network) as github:
        github.check([STATION])
        (row,) = github.sweep([STATION])
    assert row.outcome is RepoOutcome.FAILED
    assert "the connection failed" in row.detail
    with serve(station_dump, port=port) as again:
        crawl_all(quick(again.url), store, "all")
    assert store.content_hash() == undisturbed["all"]


def test_several_tokens_give_the_same_content(tiny: Server, tmp_path: Path) -> None:
    hashes = set()
    for tokens in ("one", "one,two,three"):
        with Store.open(tmp_path / f"{tokens}.sqlite", create=True) as store:
            with open_github(quick(tiny.url), store, token=tokens) as github:
                github.check([ROCKET, FUEL])
                github.sweep([ROCKET, FUEL])
                github.fetch_negative_sample({ROCKET: 3, FUEL: 1}, seed=0)
            hashes.add(store.content_hash())
    assert len(hashes) == 1


def test_a_rejected_token_ends_the_crawl(tiny: Server, store: Store) -> None:
    with open_github(quick(tiny.url), store, token="bad") as github, pytest.raises(AuthError):
        github.check([ROCKET])
    with open_github(quick(tiny.url), store, token="fine") as github:
        github.check([ROCKET, FUEL])
    with open_github(quick(tiny.url), store, token="bad,bad2") as github, pytest.raises(AuthError):
        github.sweep([ROCKET, FUEL])


def test_small_repositories_are_swept(station: Server, store: Store) -> None:
    """The station takes two or three pages, and a search with many phrases far more."""
    wordy = tuple(f"word{place}" for place in range(40))
    with open_github(quick(station.url, all_if_small=True, phrases=wordy), store) as github:
        github.check([STATION])
        github.search([STATION])
    assert store.tasks(STATION, "sweep", done=True)
    assert not store.tasks(STATION, "search")


def test_a_started_search_is_not_replaced_by_a_sweep(station: Server, store: Store) -> None:
    wordy = tuple(f"word{place}" for place in range(40))
    with open_github(quick(station.url, phrases=wordy), store) as github:
        github.check([STATION])
        github.search([STATION])
    with open_github(quick(station.url, all_if_small=True, phrases=wordy), store) as github:
        github.search([STATION])
    assert store.tasks(STATION, "search", done=True)
    assert not store.tasks(STATION, "sweep")
