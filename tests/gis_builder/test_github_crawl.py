"""Crawls of the test server with either strategy: complete, cheap, and unaffected by faults."""

import json
import logging
from dataclasses import replace
from types import SimpleNamespace

import gis_builder
import pairkit
from gis_builder.crawling.github import repositories
from gis_builder.crawling.github.client import Crawl, GraphReply
from gis_builder.crawling.github.exchange import GraphQLError
from gis_builder.crawling.github.fetch import Fetcher
from gis_builder.crawling.github.repositories import recheck
from gis_builder.settings import CrawlSettings
from gis_builder.store import Absence, IssueRef
from pairkit import AuthError, RateLimited, RemoteError
from tests.contract.conftest import SAMPLE
from tests.support.github import FaultPlan, Options, Rule, resolvers, serve
from tests.support.shorthand import each_line, module_fixture, parametrize, raises

from .conftest import closed, comment, issue, write_tracker
from .crawl_world import (
    LAST,
    STATION,
    comment_count,
    crawled,
    is_duplicate,
    is_pull,
    station_rows,
)
from .working_folder import contents, imported, stored, verdicts

ROCKET, FUEL = "acme/rocket", "acme/fuel"
QUARRY = "quarryhq/quarry"


@module_fixture
def undisturbed(station, tmp_path_factory):
    """The working folder of an undisturbed crawl by strategy."""
    folders = {
        strategy: tmp_path_factory.mktemp("undisturbed") / "work"
        for strategy in ("search", "all")
    }
    for strategy, folder in folders.items():
        assert crawled(station, folder, strategy=strategy).status.warnings == ()
    return folders


def threads(work):
    """The numbers of complete threads."""
    return stored(
        work,
        "SELECT number FROM issues WHERE depth = 2 AND NOT is_pull ORDER BY number",
    )


def test_each_repository_has_its_own_outcome(tiny, work):
    expected = {
        "acme/missile": "renamed",
        "acme/Rocket": "ok",
        "acme/vault": "not_found",
        "acme/quiet": "issues_disabled",
        "acme/void": "empty",
        "acme/nowhere": "not_found",
    }
    before = tiny.stats.points
    done = crawled(tiny, work, list(expected), strategy="all")
    rows = done.repositories
    assert {row.name: row.outcome for row in rows} == expected
    assert [row.full_name for row in rows[:2]] == [ROCKET, ROCKET]
    assert (rows[0].max_number, rows[0].labels) == (9, ("Duplicate",))
    assert all(row.detail for row in rows if row.outcome != "ok")
    # The schema, the look-up, one page and two top-ups (not repeated for the second name), fuel#1 and #8.
    assert tiny.stats.points - before == 8
    assert threads(work) == [1, 2, 4, 5, 6, 9]
    assert done.to_dict()["issues"] == 6  # not for each of its names
    assert contents(work)["missing"] == [(ROCKET, 8, "transferred", "acme/fuel#2")]
    assert stored(work, f"SELECT number, depth FROM issues WHERE repo = '{FUEL}'") == [
        (1, 0)
    ]


def test_a_failure_on_other_repositories_does_not_change_a_missing_one(
    tiny, work, monkeypatch
):
    def fails(crawl, refs):
        raise RemoteError("the server fails")

    monkeypatch.setattr("gis_builder.crawling.github.crawler.fetch", fails)
    with raises(RemoteError, match="the server fails"):
        crawled(tiny, work, [ROCKET, "acme/nowhere"], strategy="all")
    rows = gis_builder.status(work).repositories
    outcomes = {repo.row.name: repo.row.outcome for repo in rows}
    assert outcomes["acme/nowhere"] == "not_found"


def test_only_missing_repositories_are_looked_up_again(tiny, work):
    crawled(tiny, work, [ROCKET, FUEL])
    before = tiny.stats.requests
    crawled(tiny, work, [ROCKET, FUEL])
    assert tiny.stats.requests == before
    for _ in range(2):
        crawled(tiny, work, [ROCKET, "acme/nowhere"])
    assert tiny.stats.requests == before + 2


def test_a_search_stores_only_candidates_completely(undisturbed):
    issues = [
        number for number in range(1, LAST + 1) if number % 17 and not is_pull(number)
    ]
    assert threads(undisturbed["all"]) == issues
    candidates = [
        number for number in issues if is_duplicate(number) and comment_count(number)
    ]
    assert threads(undisturbed["search"]) == candidates
    assert len(candidates) > 9  # above the limit of a search, so windows were split
    everything = contents(undisturbed["all"])
    for table, rows in contents(undisturbed["search"]).items():
        if table in ("issues", "comments", "events"):
            of_threads = {row for row in rows if row[1] in candidates}
            assert set() < of_threads <= set(everything[table])


def test_a_too_frequent_phrase_is_skipped_with_a_warning(station, work):
    done = crawled(station, work, phrases=("remark", "duplicate"), max_phrase_share=0.4)
    assert len(threads(work)) < 25
    ((repo, words),) = done.status.warnings
    assert repo == STATION
    assert '"remark" in:comments' in words


def test_the_cost_is_that_of_the_server(station_dump, work):
    with serve(station_dump) as server:
        cost = crawled(server, work).to_dict()
        assert (cost["points"], cost["requests"]) == (
            server.stats.points,
            server.stats.requests,
        )
    status = gis_builder.status(work)
    assert status.to_dict()["points_left"] == 5000 - cost["points"]
    assert f"{5000 - cost['points']:,} of 5,000 points left until" in repr(status)


def test_a_server_without_the_newer_fields(tiny_dump, work):
    with serve(tiny_dump, options=Options(without_duplicate_of=True)) as server:
        crawled(server, work, ROCKET, strategy="all")
    targets = "SELECT target_repo, target_number FROM events WHERE number = 2 AND target_number"
    assert stored(work, targets) == [(ROCKET, 1)]


@parametrize("hidden", [0, 1, 2])
def test_counted_comments_that_the_server_hides_are_a_warning(
    station, work, monkeypatch, hidden
):
    def connection(info, *args, **page):
        found = shown(info, *args, **page)
        counted = hidden if info.field_name == "comments" else 0
        return found | {"totalCount": found["totalCount"] + counted}

    shown = resolvers.connection
    monkeypatch.setattr(resolvers, "connection", connection)
    warnings = crawled(station, work, strategy="all").status.warnings
    expected = f"{STATION}#60: the server counts {hidden} more comments than it returns"
    assert ((STATION, expected) in warnings) is (hidden > 0)


def test_names_in_texts_that_are_no_repositories_need_no_request(tmp_path, work):
    """They must not end the crawl either."""
    names = ["f\u00f6\u00f6/bar", "_a/b", "-x/y", "a..b/c"]
    issues = [issue(ROCKET, number, **closed("max", 9)) for number in range(1, 5)]
    remarks = [
        comment(ROCKET, n, n, f"Duplicate of {name}#1", day=9)
        for n, name in enumerate(names, 1)
    ]
    write_tracker(tmp_path / "dump", ROCKET, issues=issues, comments=remarks)
    with serve(tmp_path / "dump") as server:
        crawled(server, work, ROCKET, strategy="all")
        assert server.stats.requests == 3  # schema, look-up, page
    assert [row[0] for row in contents(work)["missing"]] == sorted(names)


def test_the_sample_for_negatives_does_not_depend_on_batches(station, tmp_path):
    def sample(batch, count, folder):
        crawled(station, tmp_path / folder, issue_batch=batch, at_least=count)
        sql = "SELECT number FROM issues WHERE NOT is_pull ORDER BY number"
        return stored(tmp_path / folder, sql)

    small = sample(9, 20, "small")
    large = sample(9, 30, "large")
    assert sample(100, 20, "other") == small
    assert sample(9, 30, "small") == large
    assert 20 <= len(small) < len(large)
    assert set(small) < set(large)
    everything = [n for n in range(1, LAST + 1) if n % 17 and not is_pull(n)]
    assert sample(9, 1000, "all") == everything


def test_an_update_equals_a_new_crawl(station, tmp_path, work):
    crawled(station, work, strategy="all")
    rows = station_rows()
    changed = next(row for row in rows["issues"] if row["number"] == 8)
    changed |= {"title": "Renamed", "updated_at": "2021-01-01T00:00:00Z"}
    rows["comments"] = [row for row in rows["comments"] if row["id"] != 3_000_008_000]
    url = changed["repository_url"] + "/issues/8"
    rows["comments"].append(dict(rows["comments"][0], id=9_999_999, issue_url=url))
    late = "2021-01-02T00:00:00Z"
    rows["issues"].append(
        issue(STATION, 1, created_at=late, updated_at=late) | {"number": LAST + 1}
    )
    write_tracker(tmp_path / "later", STATION, **rows)
    with serve(tmp_path / "later") as later:
        for most in (5, 2):  # schema, two look-ups, page; nothing has changed
            before = later.stats.points
            assert (
                crawled(later, work, update=True).repositories[0].max_number == LAST + 1
            )
            assert later.stats.points - before <= most
        crawled(later, tmp_path / "fresh", strategy="all")
    assert contents(work) == contents(tmp_path / "fresh")


def test_issues_opened_during_an_update_do_not_count_as_gone(
    station, tmp_path, work, monkeypatch
):
    crawled(station, work, strategy="all")
    rows = station_rows()
    late = "2021-01-02T00:00:00Z"
    opened = issue(STATION, 1, created_at=late, updated_at=late)
    rows["issues"] = [*rows["issues"][:-1], opened | {"number": LAST + 1}]
    write_tracker(tmp_path / "later", STATION, **rows)

    def before_it_was_opened(crawl, name):
        now = recheck(crawl, name)
        return replace(now, max_number=LAST, issue_count=now.issue_count - 1)

    monkeypatch.setattr(repositories, "recheck", before_it_was_opened)
    with serve(tmp_path / "later") as later:
        ((_, warning),) = crawled(later, work, update=True).status.warnings
    assert warning.startswith("update: 1 stored issues no longer exist")  # the last one


@parametrize(
    "first, later", [("import", "import"), ("import", "update"), ("crawl", "update")]
)
def test_a_repository_that_is_renamed_twice(tmp_path, work, first, later):
    """It keeps its issues, and references may have a former name."""
    names = ["acme/boat", "acme/ship", "acme/vessel"]
    for count, name in enumerate(names):
        dump = tmp_path / str(count)
        issues = [issue(name, 1), issue(name, 2, **closed("max", 9))]
        remark = comment(name, 2, 1, "Duplicate of acme/ship#1", day=9)
        info = {"previous_names": names[:count]}
        write_tracker(dump, name, info, issues=issues, comments=[remark])
        way = later if count else first
        if way == "import":
            imported(dump, work)
            continue
        update = {"strategy": "all", "update": way == "update"}
        # It fails after the new name was stored.
        lost = FaultPlan(rules=(Rule(kind="truncated", at=(3,)),))
        with serve(dump, faults=lost) as server:
            with raises(gis_builder.IncompleteCrawlError):
                crawled(server, work, names[0], attempts=1, **update)
            crawled(server, work, names[0], **update)
    assert [row[:2] for row in contents(work)["issues"]] == [(name, 1), (name, 2)]
    assert verdicts(work)[f"{name}#2"][:2] == ("duplicate", [f"{name}#1"])


def test_each_skipped_issue_has_a_warning(station, work, monkeypatch):
    ask_sized = Crawl.ask_sized

    def without_two_issues(crawl, size, query):
        reply, count = ask_sized(crawl, size, query)
        listing = getattr(reply.data.get("r0"), "issues", None)
        for place, node in enumerate(listing.nodes if listing else ()):
            if node.number in (8, 9):
                listing.nodes[place] = None
        return reply, count

    monkeypatch.setattr(Crawl, "ask_sized", without_two_issues)
    warnings = crawled(station, work, strategy="all", attempts=2).status.warnings
    assert [words for _, words in warnings] == [
        f"sweep: the issue after the first {listed} was skipped: the server fails on it"
        for listed in (5, 6)
    ]


def test_an_update_of_an_inaccessible_repository_changes_nothing(
    station, tmp_path, work
):
    crawled(station, work, strategy="all")
    (row,) = stored(work, "SELECT * FROM repos")
    write_tracker(tmp_path / "other", "acme/other", issues=[])
    with (
        serve(tmp_path / "other") as gone,
        raises(
            gis_builder.IncompleteCrawlError, match="no such repository, or no access"
        ),
    ):
        crawled(gone, work, update=True)
    crawled(station, work, update=True)
    assert stored(work, "SELECT * FROM repos") == [row]


MIXED = ["502", "partial", "truncated", "stalled", "dropped"]
MIXED += ["rate_limited_200", "secondary_403", "too_many_429"]


@parametrize("strategy", ["search", "all"])
@parametrize(
    "kinds, share", [(MIXED, 0.08), (["partial"], 0.25)], ids=["mixed", "partial"]
)
def test_faults_do_not_change_the_content(
    *, station_dump, work, undisturbed, strategy, kinds, share
):
    # Limits of the faults that cause real waits.
    limits = {"rate_limited_200": 1, "stalled": 2}
    rules = tuple(
        Rule(kind=kind, probability=share, limit=limits.get(kind)) for kind in kinds
    )
    faults = FaultPlan(rules=rules, seed=3, retry_after_s=0.0, stall_s=20)
    with serve(station_dump, faults=faults) as server:
        done = crawled(server, work, strategy=strategy, timeout_s=0.5)
        assert server.stats.faults
    assert done.status.warnings == ()
    assert contents(work) == contents(undisturbed[strategy])


@parametrize(
    "repos, error, message",
    [
        (STATION, gis_builder.IncompleteCrawlError, "the connection failed"),
        # At once, without trying each.
        ([STATION, "acme/twin"], RemoteError, "can't be reached"),
    ],
)
def test_a_crawl_continues_after_the_network_was_lost(
    *, tmp_path, work, repos, error, message
):
    rows = station_rows()
    write_tracker(tmp_path / "dump", STATION, **rows)
    twin = [
        row | {"repository_url": row["repository_url"].replace("station", "twin")}
        for row in rows["issues"]
    ]
    write_tracker(tmp_path / "dump", "acme/twin", issues=twin)
    server = serve(tmp_path / "dump")
    port = int(server.url.rpartition(":")[2])

    def lose_network(at):
        if at.stage == f"{STATION}: sweeping" and at.done:
            server.close()

    lost = {"attempts": 3, "first_attempts": 2, "progress": lose_network}
    with raises(error, match=message):
        crawled(server, work, repos, strategy="all", **lost)
    with serve(tmp_path / "dump", port=port) as again:
        crawled(again, work, repos, strategy="all")
        crawled(again, tmp_path / "calm", repos, strategy="all")
    assert contents(work) == contents(tmp_path / "calm")


@each_line("""
    kind, error, message, plan, settings
    dropped | RemoteError | can't be reached .the connection failed .*again | {} | {"attempts": 3}
    truncated | BadReply | failed 3 consecutive times.*not a GraphQL resp | {} | {"attempts": 3}
    504 | RemoteError | too heavy for the server .*even for a single item | {} | {"attempts": 4}
    stalled | RemoteError | no response in time | {"stall_s": 9} | {"attempts": 1, "timeout_s": 0.2}
    too_many_429 | RateLimited | still .* after 2 waits | {"retry_after_s": 0} | {"attempts": 2}
    too_many_429 | RateLimited | still .* after 1100 waits | {"retry_after_s": 0} | {"attempts": 1100}
    too_many_429 | RateLimited | for 999 s more; run | {"retry_after_s": 999} | {"max_wait_s": 5}
""")
def test_a_fault_that_never_ends(
    *, tiny_dump, work, kind, error, message, plan, settings
):
    faults = FaultPlan(rules=(Rule(kind=kind, probability=1),), **json.loads(plan))
    quick = {"secondary_wait_s": 0.0, **json.loads(settings)}
    expected = getattr(pairkit, error)
    with serve(tiny_dump, faults=faults) as server, raises(expected, match=message):
        crawled(server, work, ROCKET, **quick)


def test_waits_double_if_a_limit_states_no_time(tiny_dump, work):
    rule = Rule(kind="secondary_403", probability=1, retry_after=False)
    with serve(tiny_dump, faults=FaultPlan(rules=(rule,))) as server:
        with raises(RateLimited):
            crawled(server, work, ROCKET, secondary_wait_s=0.01, max_wait_s=0.05)
        assert server.stats.requests == 4  # after 0.01, 0.02 and 0.04 seconds


def test_waits_for_points_follow_the_clock_of_the_server(tiny_dump, work):
    seen = []
    late, few = FaultPlan(clock_skew_s=-5000.0), Options(points=4, window_s=1)
    with serve(tiny_dump, faults=late, options=few) as server:
        crawled(
            server, work, ROCKET, strategy="all", max_wait_s=4, progress=seen.append
        )
    assert any(at.note.startswith("waiting until ") for at in seen)


def test_pages_shrink_until_the_server_can_answer(station_dump, undisturbed, work):
    rule = Rule(kind="502", page_over=46)
    # Without further pages of 100.
    whole = {"comments_inline": 45, "events_inline": 9, "labels_inline": 9}
    with serve(station_dump, faults=FaultPlan(rules=(rule,))) as server:
        crawled(server, work, strategy="all", thread_batch=100, **whole)
        assert 2 <= server.stats.faults.total() < 9
    assert contents(work) == contents(undisturbed["all"])


def test_progress_counts_every_thread_that_is_to_be_completed(station, work):
    """In a sweep, all incomplete threads are known when the first batch is completed."""
    seen = []
    crawled(station, work, strategy="all", progress=seen.append)
    completing = [
        at for at in seen if at.stage == f"{STATION}: completing threads" and at.total
    ]
    left = [at.total - at.done for at in completing]
    assert len(left) > 1
    assert left == sorted(left, reverse=True)
    assert left[0] > 0 == left[-1]


def test_several_tokens_give_the_same_content(tiny, tmp_path):
    works = [tmp_path / tokens for tokens in ("one", "one,two,three")]
    for work in works:
        crawled(tiny, work, [ROCKET, FUEL], token=work.name, strategy="all")
    assert contents(works[0]) == contents(works[1])


def test_a_rejected_token_ends_the_crawl(tiny, work):
    with raises(AuthError, match="rejects"):
        crawled(tiny, work, [ROCKET, FUEL], token="bad,bad2")


@parametrize("all_if_small, kind", [(True, "sweep"), (False, "search")])
def test_small_repositories_are_swept(station, work, all_if_small, kind):
    """The station takes two or three pages, and a search with many phrases far more."""
    phrases = [f"word{place}" for place in range(40)]
    crawled(station, work, phrases=phrases, all_if_small=all_if_small)
    kinds = stored(work, "SELECT DISTINCT kind FROM tasks WHERE kind <> 'pool'")
    assert kinds == [kind]


def test_logs_have_requests_and_verdicts_but_no_token(tmp_path, caplog):
    secret = "ghp_" + "s3cr3t" * 6
    with serve(SAMPLE) as server:
        access = {"api_url": server.url, "token": secret, "work": tmp_path / "w"}
        gis_builder.crawl([QUARRY], **access)
        assert not caplog.messages  # no logging by default
        caplog.set_level(logging.INFO, "gis_builder")
        usage = gis_builder.crawl([QUARRY], update=True, **access).status.usage
        requests = [said for said in caplog.messages if said.startswith("200 ok in ")]
        gis_builder.detect(tmp_path / "w")
    assert usage.requests > len(requests) > 0  # also those of the first crawl
    assert all(" points, " in said and " left: {" in said for said in requests)
    assert any(
        said.startswith(f"{QUARRY}: stored threads ") for said in caplog.messages
    )
    verdicts = [said for said in caplog.messages if said.startswith(f"{QUARRY}#")]
    assert any(": reused: duplicate (" in said for said in verdicts)
    assert secret not in caplog.text


WANTED = IssueRef("a/b", 1)


@each_line("""
    error, message, repository
    BadReply | a/b: its name is missing | {}
    BadReply | a/b#1: missing from the reply | {"nameWithOwner": "a/b"}
    RemoteError | a/b became other/name | {"nameWithOwner": "other/name", "i1": null}
""")
def test_replies_without_the_issue_do_not_make_it_deleted(error, message, repository):
    crawl, _ = canned_crawl(GraphReply({"r0": json.loads(repository)}))
    with raises(getattr(pairkit, error), match=message):
        Fetcher(crawl, with_thread=False).resolve([WANTED])


def test_no_wait_after_the_last_attempt():
    failure = GraphQLError(("r0", "i1"), "INTERNAL", "lost")
    reply = GraphReply({"r0": {"nameWithOwner": "a/b", "i1": None}}, (failure,))
    crawl, waits = canned_crawl(reply)
    page = Fetcher(crawl, with_thread=False).resolve([WANTED])
    assert page.missing == {WANTED: (Absence.WITHHELD, "")}
    assert waits == [1]
    failure = GraphQLError(("r0",), "INTERNAL", "lost")
    crawl, waits = canned_crawl(GraphReply({"r0": None}, (failure,)))
    assert (recheck(crawl, "a/b").outcome, waits) == ("failed", [1])


def canned_crawl(reply):
    """A crawl that gets this reply to each of two attempts, and its waits."""
    waits = []
    crawl = SimpleNamespace(
        settings=CrawlSettings(attempts=2),
        queries=SimpleNamespace(issues=list, repositories=list),
        back_off=lambda failures, _: waits.append(failures),
        ask=lambda _size, refs, _query: (reply, len(refs)),
    )
    return crawl, waits
