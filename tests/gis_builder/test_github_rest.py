"""The REST route over HTTP against the emulator: the same threads as over GraphQL, whatever goes wrong."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread as BackgroundThread
from typing import ClassVar
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from gis_builder._emulator import FaultPlan, Rule, Server, serve
from gis_builder._github import GitHub, RestRoute, Token, Waiting
from gis_builder._github.client import Denied
from gis_builder._github.rest_client import COMMENTS, ISSUES, REPOSITORY, RestClient
from gis_builder._records import IssueRef, Kind, Thread
from gis_builder._settings import DetectSettings
from gis_builder._store import Absence, Page, RepoOutcome, Store, Task
from pairkit.errors import AuthError, BadReply, ConfigError, DataError, RateLimited, RemoteError

from .conftest import comment, issue, judge, write_tracker
from .crawl_world import LAST, STATION, is_pull, open_github, quick, station_rows

ROCKET, FUEL = "acme/rocket", "acme/fuel"
SAMPLE = Path(__file__).resolve().parents[2] / "data" / "sample"


def over_rest(
    url: str, store: Store, listener=lambda event: None, token: str = "one", **changes: object
) -> GitHub:
    return open_github(quick(url, **changes), store, listener, token, route=RestRoute)


def sweep(url: str, store: Store, *names: str, **changes: object) -> None:
    with over_rest(url, store, **changes) as github:
        github.check(names)
        github.sweep(names)


@pytest.fixture(scope="module")
def undisturbed(station: Server, tmp_path_factory: pytest.TempPathFactory) -> str:
    with Store.open(tmp_path_factory.mktemp("undisturbed") / "store.sqlite", create=True) as store:
        sweep(station.url, store, STATION)
        return store.content_hash()


def what_rest_knows(thread: Thread) -> Thread:
    """A thread without the canonical issues of marks, which only GraphQL names."""
    events = tuple(replace(event, target=None, target_is_pull=False) for event in thread.events)
    return replace(thread, issue=replace(thread.issue, duplicate_of=None), events=events)


def test_each_repository_has_its_own_outcome(tiny: Server, store: Store) -> None:
    names = ["acme/missile", "acme/Rocket", "acme/vault", "acme/quiet", "acme/void", "acme/nowhere"]
    with over_rest(tiny.url, store) as github:
        rows = github.check(names)
        outcomes = [row.outcome.value for row in rows]
        assert outcomes == ["renamed", "ok", "not_found", "issues_disabled", "empty", "not_found"]
        assert [row.full_name for row in rows[:2]] == [ROCKET, ROCKET]
        assert rows[0].max_number == 9
        assert rows[0].as_of == "2020-01-26T12:00:00Z"
        assert all(row.detail for row in rows if row.outcome is not RepoOutcome.OK)
        before = tiny.stats.requests
        github.check(names[:2])
        assert tiny.stats.requests == before
        with pytest.raises(ConfigError, match="expected owner/name"):
            github.check(["rust"])


def test_a_sweep_has_the_same_threads_as_over_graphql(station: Server, store: Store, tmp_path: Path) -> None:
    sweep(station.url, store, STATION)
    with Store.open(tmp_path / "graphql.sqlite", create=True) as other:
        with open_github(quick(station.url), other) as github:
            github.check([STATION])
            github.sweep([STATION])
        expected = list(other.threads(STATION))
    assert list(store.threads(STATION)) == expected
    assert store.warnings() == []
    assert store.top_ups(STATION, 10) == []
    assert store.repo(STATION).issue_count == len(expected)
    assert all(store.kind(IssueRef(STATION, n)) is Kind.PULL for n in range(1, LAST) if n % 17 and is_pull(n))
    usage = store.usage()
    assert usage[STATION].points == usage[STATION].requests < 30


def test_verdicts_on_the_sample_are_those_of_graphql(tmp_path: Path) -> None:
    names = sorted(f"{path.parent.parent.name}/{path.parent.name}" for path in SAMPLE.glob("*/*/repo.json"))
    verdicts, threads = [], []
    with serve(SAMPLE) as server:
        for route in ("rest", "graphql"):
            with Store.open(tmp_path / f"{route}.sqlite", create=True) as store:
                make = over_rest if route == "rest" else lambda url, store: open_github(quick(url), store)
                with make(server.url, store) as github:
                    github.check(names)
                    github.sweep(names)
                    refs = {
                        ref for verdict in judge(store, names, DetectSettings()) for ref in verdict.targets
                    }
                    github.fetch(sorted(refs))
                threads.append([what_rest_knows(thread) for name in names for thread in store.threads(name)])
                verdicts.append({verdict.ref: verdict for verdict in judge(store, names, DetectSettings())})
                marked = {
                    thread.issue.ref
                    for name in names
                    for thread in store.threads(name)
                    if thread.issue.duplicate_of or any(event.target for event in thread.events)
                }
    assert threads[0] == threads[1]
    assert len(verdicts[0]) > 300
    differing = {ref for ref, found in verdicts[0].items() if found != verdicts[1][ref]}
    assert differing <= marked


def test_a_search_is_a_sweep_and_says_so(station: Server, store: Store, undisturbed: str) -> None:
    with over_rest(station.url, store) as github:
        github.check([STATION])
        github.search([STATION])
        before = station.stats.requests
        github.search([STATION])
        github.sweep([STATION])
        assert station.stats.requests == before
    ((repo, words),) = store.warnings()
    assert (repo, "is a sweep" in words) == (STATION, True)
    assert store.content_hash() == undisturbed


def test_the_pool_is_that_of_graphql_and_free_after_a_sweep(
    station: Server, store: Store, tmp_path: Path
) -> None:
    with (
        Store.open(tmp_path / "graphql.sqlite", create=True) as other,
        open_github(quick(station.url), other) as g,
    ):
        g.check([STATION])
        expected = g.pool({STATION: 15}, seed=5)
    with over_rest(station.url, store) as github:
        github.check([STATION])
        assert github.pool({STATION: 15}, seed=5) == expected
        github.sweep([STATION])
        before = station.stats.requests
        assert github.pool({STATION: 15}, seed=5) == expected
        assert len(github.pool({STATION: 1000}, seed=5)[STATION]) == store.count_threads(STATION)
        assert station.stats.requests == before


def test_fetching_by_number(tiny: Server, store: Store) -> None:
    refs = [IssueRef(ROCKET, number) for number in (1, 3, 4, 7, 8)]
    refs += [IssueRef("acme/MISSILE", 2), IssueRef(FUEL, 1), IssueRef("acme/nowhere", 5)]
    with over_rest(tiny.url, store) as github:
        github.check([ROCKET])
        github.fetch(refs)
        kinds = [store.kind(ref) for ref in refs]
        assert kinds[:5] == [Kind.ISSUE, Kind.PULL, Kind.ISSUE, Kind.MISSING, Kind.MISSING]
        assert kinds[5:] == [Kind.ISSUE, Kind.ISSUE, Kind.MISSING]
        assert store.absences(ROCKET) == {
            7: (Absence.DELETED, ""),
            8: (Absence.TRANSFERRED, "acme/fuel#2"),
        }
        assert list(store.threads(ROCKET)) == []
        github.fetch([IssueRef(ROCKET, 4), IssueRef(ROCKET, 3)], with_thread=True)
    thread = store.thread(IssueRef(ROCKET, 4))
    assert len(thread.comments) == 120  # in two pages
    assert (thread.issue.closed_by, [event.kind for event in thread.events]) == ("max", ["closed"])


def test_a_sweep_over_another_routes_beginnings(tiny: Server, store: Store) -> None:
    with open_github(quick(tiny.url), store) as github:
        github.check([ROCKET])
        github.fetch([IssueRef(ROCKET, 5)], with_thread=True)
        github.fetch([IssueRef(ROCKET, 4)])
    sweep(tiny.url, store, ROCKET)
    threads = {thread.issue.number: thread for thread in store.threads(ROCKET)}
    assert sorted(threads) == [1, 2, 4, 5, 6, 9]
    assert [event.kind for event in threads[5].events] == [
        "marked_as_duplicate",
        "closed",
        "unmarked_as_duplicate",
        "reopened",
    ]
    assert len(threads[4].comments) == 120
    assert (threads[6].issue.author, threads[6].issue.is_bot) == ("helper", True)


def test_an_update_makes_the_store_what_a_new_sweep_would(
    station: Server, tmp_path: Path, store: Store
) -> None:
    sweep(station.url, store, STATION)
    rows = station_rows()
    late = "2021-01-01T00:00:00Z"
    changed = [row for row in rows["issues"] if row["number"] in (8, 12, 30)]
    for row in changed:
        row |= {"title": "Renamed", "updated_at": late}
    address = f"{changed[0]['repository_url']}/issues"
    gone = next(row for row in rows["comments"] if row["issue_url"] == f"{address}/12")
    rows["comments"].remove(gone)
    rows["comments"].append(comment(STATION, 8, 9_999_999, "new") | {"created_at": late, "updated_at": late})
    rows["events"].append(
        {**rows["events"][0], "issue_url": f"{address}/30", "event": "reopened", "created_at": late}
    )
    rows["issues"].append(issue(STATION, 1, created_at=late, updated_at=late) | {"number": LAST + 1})
    write_tracker(tmp_path / "later", STATION, **rows)
    with serve(tmp_path / "later") as later, Store.open(tmp_path / "new.sqlite", create=True) as fresh:
        with over_rest(later.url, store) as github:
            github.update([STATION])
            assert later.stats.requests <= 10  # look-up, three lists, one thread's comments
            assert store.repo(STATION).max_number == LAST + 1
            before = later.stats.requests
            github.update([STATION])
            assert later.stats.requests - before <= 7
        sweep(later.url, fresh, STATION)
        assert list(store.threads(STATION)) == list(fresh.threads(STATION))
        assert store.content_hash() == fresh.content_hash()


def test_an_update_of_a_search_over_graphql_fetches_what_it_lacks(
    station: Server, tmp_path: Path, store: Store
) -> None:
    with open_github(quick(station.url), store) as github:
        github.check([STATION])
    row = store.repo(STATION)
    with over_rest(station.url, store) as github, Store.open(tmp_path / "all.sqlite", create=True) as other:
        github.update([STATION])
        sweep(station.url, other, STATION)
        changed = [t for t in other.threads(STATION) if t.issue.updated_at >= row.as_of]
    assert list(store.threads(STATION)) == changed != []


FAULTS = [
    "502",
    "504",
    "rate_limited_200",
    "secondary_403",
    "too_many_429",
    "truncated",
    "dropped",
    "stalled",
]


def faulty(*kinds: str, probability: float) -> FaultPlan:
    # A spent quota is waited for, a second each time: once is enough.
    limits = {"rate_limited_200": 1, "stalled": 2}
    rules = tuple(Rule(kind=kind, probability=probability, limit=limits.get(kind)) for kind in kinds)
    return FaultPlan(rules=rules, seed=3, retry_after_s=0.0, stall_s=20)


@pytest.mark.parametrize(
    "kinds", [*[(kind,) for kind in FAULTS], tuple(FAULTS)], ids=lambda kinds: "+".join(kinds)
)
def test_no_fault_changes_what_is_stored(
    station_dump: Path, store: Store, undisturbed: str, kinds: tuple[str, ...]
) -> None:
    plan = faulty(*kinds, probability=0.25 if len(kinds) == 1 else 0.04)
    with serve(station_dump, faults=plan) as server:
        sweep(server.url, store, STATION, timeout_s=1.5 if "stalled" in kinds else 60)
        assert server.stats.faults
        assert sum(spent.requests for spent in store.usage().values()) == server.stats.requests
    assert store.content_hash() == undisturbed
    assert store.warnings() == []


class Killed(BaseException):
    """Ends a crawl as a kill would: at a page, which is stored wholly or not at all."""


def test_killed_between_any_two_pages(
    station_dump: Path, tmp_path: Path, undisturbed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw, save, path = random.Random(1), Store.save, tmp_path / "store.sqlite"
    kills = 0
    while True:
        left = draw.randrange(1, 5)

        def dying(self: Store, page: object) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Killed
            save(self, page)

        # Another port each time: what is remembered must not depend on the server's address.
        with serve(station_dump) as server, Store.open(path, create=True) as store:
            monkeypatch.setattr(Store, "save", dying if kills < 9 else save)
            try:
                sweep(server.url, store, STATION)
            except Killed:
                kills += 1
                continue
            break
    assert kills == 9
    with Store.open(path) as store:
        assert store.content_hash() == undisturbed


def test_a_refused_token_ends_everything_and_is_not_shown(tiny: Server, store: Store) -> None:
    with over_rest(tiny.url, store, token="bad") as github, pytest.raises(AuthError) as caught:
        github.check([ROCKET])
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert "'bad'" not in repr(caught.value)


def test_a_token_that_the_server_echoes_is_masked(canned) -> None:
    token = "ghp_0123456789abcdef0123456789abcdef0123"
    url = canned(lambda path, query: (403, {}, {"message": f"no access for Bearer {token}"}))
    with pytest.raises(Denied) as caught:
        RestClient(quick(url), Token(token, url)).get("/repos/acme/rocket", REPOSITORY)
    assert token not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_token_that_may_see_nothing(tiny: Server, store: Store) -> None:
    with over_rest(tiny.url, store, token="noaccess") as github:
        (row,) = github.check([ROCKET])
    assert row.outcome is RepoOutcome.NOT_FOUND


def test_it_gives_up_in_the_end_and_names_the_server(tiny_dump: Path, store: Store) -> None:
    plan = FaultPlan(rules=(Rule(kind="truncated", probability=1),))
    words = "failed 2 times .* run the same command again"
    with serve(tiny_dump, faults=plan) as server, over_rest(server.url, store, attempts=2) as github:
        for names in ([ROCKET], [ROCKET, FUEL]):
            with pytest.raises(RemoteError, match=f"{server.url} {words}"):
                github.check(names)
    plan = FaultPlan(rules=(Rule(kind="truncated", at=(4, 5)),))
    with serve(tiny_dump, faults=plan) as server, over_rest(server.url, store, attempts=2) as github:
        outcomes = [row.outcome.value for row in github.check([FUEL, ROCKET, "acme/void"])]
        assert outcomes == ["ok", "failed", "empty"]
        assert github.check([ROCKET])[0].outcome is RepoOutcome.OK


def test_no_server_at_all(tiny_dump: Path, store: Store) -> None:
    with serve(tiny_dump) as server:
        url = server.url
    with over_rest(url, store) as github, pytest.raises(RemoteError, match=f"{url} can't be reached"):
        github.check([ROCKET, FUEL])


def test_waits_are_told_and_limited(tiny_dump: Path, store: Store) -> None:
    heard: list[object] = []
    rule = Rule(kind="rate_limited_200", at=(1,))
    plan = FaultPlan(rules=(rule,), retry_after_s=1.0)
    with serve(tiny_dump, faults=plan) as server, over_rest(server.url, store, heard.append) as github:
        github.check(["acme/void"])
    assert any(isinstance(event, Waiting) and event.seconds >= 1 for event in heard)
    plan = FaultPlan(rules=(rule,), retry_after_s=50.0)
    with serve(tiny_dump, faults=plan) as server, over_rest(server.url, store, max_wait_s=9.0) as github:
        with pytest.raises(RateLimited) as caught:
            github.check([FUEL])
        assert 45 < caught.value.retry_after_s < 55


class Canned(BaseHTTPRequestHandler):
    """Answers a path as a function says: status, headers, value."""

    answer: ClassVar[Callable[[str, dict[str, str]], tuple[int, dict[str, str], object]]]

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        status, headers, value = type(self).answer(url.path, dict(parse_qsl(url.query)))
        body = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def canned():
    """A function that starts a server which answers as another function says; gives its address."""
    servers = []

    def start(answer: Callable[[str, dict[str, str]], tuple[int, dict[str, str], object]]) -> str:
        handler = type("Handler", (Canned,), {"answer": staticmethod(answer)})
        server = HTTPServer(("127.0.0.1", 0), handler)
        servers.append(server)
        BackgroundThread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_redirect_to_another_host_is_not_followed(canned, tiny: Server, store: Store) -> None:
    before = tiny.stats.requests
    url = canned(lambda path, query: (301, {"location": f"{tiny.url}{path}"}, {}))
    client = RestClient(quick(url), Token("t", url))
    with pytest.raises(BadReply, match="redirects to another host"):
        client.get("/repos/acme/rocket", REPOSITORY)
    assert tiny.stats.requests == before
    url = canned(lambda path, query: (302, {"location": path}, {}))
    with pytest.raises(BadReply, match="in a circle"):
        RestClient(quick(url), Token("t", url)).get("/repos/acme/rocket", REPOSITORY)


@pytest.fixture
def evil(canned):
    """Another server, and what it was asked."""
    heard: list[str] = []
    url = canned(lambda path, query: heard.append(path) or (200, {}, []))
    return url.removeprefix("http://"), heard


SECRET = "ghp_0123456789abcdef0123456789abcdef0123"


@pytest.mark.parametrize("shape", ["@{}/x", "http://{}/x", "//{}/x", "http://me@{}/x", "\\\\{}/x", ".{}"])
def test_no_redirect_or_link_leads_to_another_host(canned, evil, shape: str) -> None:
    host, heard = evil
    url = canned(lambda path, query: (301, {"location": shape.format(host)}, {}))
    with pytest.raises(BadReply, match="redirects to "):
        RestClient(quick(url), Token(SECRET, url)).get("/repos/acme/rocket", REPOSITORY)
    url = canned(lambda path, query: (200, {"link": f'<{shape.format(host)}>; rel="next"'}, []))
    client = RestClient(quick(url, attempts=2), Token(SECRET, url))
    with pytest.raises(BadReply, match=r"a next page that is nowhere on it|leads back to a page"):
        list(client.get_all("/repos/acme/rocket/issues", COMMENTS))
    assert heard == []


@pytest.mark.parametrize("shape", ["@{}/x", "http://{}/x", "//{}/x"])
def test_no_stored_cursor_leads_to_another_host(tiny: Server, store: Store, evil, shape: str) -> None:
    host, heard = evil
    with over_rest(tiny.url, store) as github:
        github.check([ROCKET])
        task = Task(ROCKET, "rest sweep", "issues", shape.format(host), {"got": 0, "run": 0})
        store.save(Page(tasks=[task]))
        with pytest.raises(
            DataError, match=r"store\.sqlite: table tasks: the cursor .* is no path on a server"
        ):
            github.sweep([ROCKET])
    assert heard == []


@pytest.mark.parametrize(
    "value", [[], {"full_name": 5}, {"full_name": "@evil/x y"}, {"full_name": None}, "x"]
)
def test_what_is_no_repository_is_a_bad_reply(canned, value: object) -> None:
    url = canned(lambda path, query: (200, {}, value))
    with pytest.raises(BadReply, match="the reply does not have what was asked for"):
        RestClient(quick(url, attempts=2), Token("t", url)).get("/repos/acme/rocket", REPOSITORY)


def test_a_redirect_keeps_its_query(tiny: Server) -> None:
    client = RestClient(quick(tiny.url), Token("t", tiny.url))
    path = "/repos/acme/missile/issues?state=all&per_page=3&sort=created&direction=asc"
    items, _ = client.get_list(path, ISSUES)
    assert [item.number for item in items] == [1, 2, 3]
    assert client.take_usage().requests == 2


def test_below_another_path_as_enterprise_servers_have_it(
    station: Server, store: Store, undisturbed: str
) -> None:
    sweep(f"{station.url}/api/v3", store, STATION)
    assert store.content_hash() == undisturbed


class Shallow:
    """A server whose lists end after a few pages and which keeps few events."""

    def __init__(self, issues: int, pages: int) -> None:
        self.issues = [issue(ROCKET, 1, closed_at=None) | self._fields(n) for n in range(1, issues + 1)]
        self.comments = [self._comment(n) for n in range(1, issues + 1) for _ in range(1)]
        self.pages = pages

    def _fields(self, number: int) -> dict[str, object]:
        at = f"2020-01-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}Z"
        closed = {"state": "closed", "closed_at": at, "closed_by": {"login": "max"}} if number % 2 else {}
        return {"number": number, "comments": 1, "created_at": at, "updated_at": at, **closed}

    def _comment(self, number: int) -> dict[str, object]:
        return comment(ROCKET, number, number, "hm", day=1) | {
            "created_at": self._fields(number)["created_at"]
        }

    def __call__(self, path: str, query: dict[str, str]) -> tuple[int, dict[str, str], object]:
        if path.endswith(ROCKET):
            return 200, {}, {"full_name": ROCKET, "private": False, "has_issues": True, "created_at": None}
        page = int(query.get("page", 1))
        if path.endswith("/events"):
            return (
                (422, {}, {"message": "too deep"})
                if page > 1
                else (200, self._link(path, query, 2), [{}] * 100)
            )
        items = self.comments if path.endswith("/comments") else self.issues
        found = [item for item in items if item["created_at"] >= query.get("since", "")]
        found = found[::-1] if query.get("direction") == "desc" else found
        size = int(query["per_page"])
        more = page < min(self.pages, -(-len(found) // size))
        return 200, self._link(path, query, page + 1) if more else {}, found[(page - 1) * size : page * size]

    def _link(self, path: str, query: dict[str, str], page: int) -> dict[str, str]:
        return {"link": f'<https://elsewhere.example{path}?{urlencode({**query, "page": page})}>; rel="next"'}


def test_lists_that_end_early_are_begun_anew_and_closings_are_inferred(
    canned, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gis_builder._github.rest_lists._SURE_DEPTH", 200)
    sweep(canned(Shallow(issues=730, pages=2)), store, ROCKET)
    threads = list(store.threads(ROCKET))
    assert [thread.issue.number for thread in threads] == list(range(1, 731))
    assert all(len(thread.comments) == 1 for thread in threads)
    assert [event.actor for event in threads[0].events] == ["max"]
    assert threads[1].events == ()
    words = sorted(words for _, words in store.warnings())
    assert words[0].startswith("the server does not list every closing")
    assert words[1] == "the server lists no more than 100 events"


def test_comments_that_a_list_lacks_are_fetched_by_number(canned, store: Store) -> None:
    shallow = Shallow(issues=3, pages=1)
    lost = shallow.comments.pop(1)

    def answer(path: str, query: dict[str, str]) -> tuple[int, dict[str, str], object]:
        if path.endswith("/issues/2/comments"):
            return 200, {}, [lost]
        return shallow(path, query)

    sweep(canned(answer), store, ROCKET)
    assert [len(thread.comments) for thread in store.threads(ROCKET)] == [1, 1, 1]


def test_a_redirect_to_no_path_is_called_what_it_is(canned) -> None:
    url = canned(lambda path, query: (302, {"location": "repos/o/r"}, {}))
    with pytest.raises(BadReply, match="redirects to 'repos/o/r', which is no URL and no path from the root"):
        RestClient(quick(url), Token("t", url)).get("/repos/acme/rocket", REPOSITORY)


def test_a_list_of_ever_new_pages_ends(canned, tmp_path: Path) -> None:
    """One more comment on each page, and a next page for ever."""
    asked: list[str] = []

    def answer(path: str, query: dict[str, str]) -> tuple[int, dict[str, str], object]:
        asked.append(path)
        return (
            200,
            {"link": f'</x?page={len(asked)}>; rel="next"'},
            [{"id": len(asked), "created_at": "2020-01-01T00:00:00Z"}],
        )

    url = canned(answer)
    client = RestClient(quick(url), Token("t", url))
    with pytest.raises(BadReply, match="gave no more than 100 items on 100 pages"):
        list(client.get_all("/x", COMMENTS))
    assert len(asked) == 100
