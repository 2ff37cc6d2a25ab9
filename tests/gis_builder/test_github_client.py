"""Waits for limits, retries, batch sizes, endless lists, and windows of searches."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.json import Decoder

from gis_builder.crawl_progress import Waiting
from gis_builder.crawling.github.access_tokens import Token
from gis_builder.crawling.github.client import Client, CrawlStopped, RequestRefused
from gis_builder.crawling.github.fetch_batches import (
    BatchSize,
    Pages,
    Window,
    ask_sized,
    split_window,
)
from gis_builder.crawling.github.graphql_queries import GraphQuery
from gis_builder.settings.crawl_settings import CrawlSettings
from gis_builder.store.decoding import Node
from pairkit import BadReply
from tests.support.github import FaultPlan, Options, Rule, serve

from .crawl_world import QUICK


class Viewer(Node, frozen=True):
    """The response to the test queries."""

    login: str = ""
    issues: dict[str, int] | None = None


VIEWER = Decoder(Viewer)
ASK = GraphQuery("{ viewer { login } rateLimit { cost } }", VIEWER)


@pytest.fixture
def asking(tiny_dump: Path):
    """A function that starts a server and returns a client and its reported waits."""
    servers = []

    def start(plan: FaultPlan, options: Options | None = None, token: str = "t", **changes: object):
        server = serve(tiny_dump, faults=plan, options=options)
        servers.append(server)
        waits: list[Waiting] = []
        return Client(
            CrawlSettings(api_url=server.url, **QUICK | changes),
            Token(token, server.url),
            listener=waits.append,
        ), waits

    yield start
    for server in servers:
        server.close()


def at(kind: str, *requests: int, **more: object) -> Rule:
    return Rule(kind=kind, at=requests, **more)


def test_waits_double_if_a_limit_has_no_time(asking) -> None:
    plan = FaultPlan(rules=(at("secondary_403", 1, 2, 3, retry_after=False),))
    client, waits = asking(plan, secondary_wait_s=0.01)
    client.ask(ASK)
    assert [wait.seconds for wait in waits] == [0.01, 0.02, 0.04]


def test_the_wait_for_a_quota_does_not_depend_on_the_local_clock(asking) -> None:
    client, waits = asking(FaultPlan(clock_skew_s=-5000.0), Options(points=2, window_s=1))
    for _ in range(3):
        assert client.ask(ASK).data["viewer"]
    assert waits
    assert all(0 < wait.seconds <= 4 for wait in waits)


def test_a_refused_query_is_not_retried(asking) -> None:
    client, waits = asking(FaultPlan())
    with pytest.raises(RequestRefused):
        client.ask(GraphQuery("{ nonsense }", VIEWER))
    assert waits == []


def test_stopping_ends_a_wait(asking) -> None:
    client, waits = asking(FaultPlan(rules=(at("secondary_403", 1),), retry_after_s=600))
    client._listener = lambda event: (waits.append(event), client._stop.set())
    with pytest.raises(CrawlStopped):
        client.ask(ASK)
    assert [wait.seconds for wait in waits] == [600.0]  # requested by the server


def test_batch_sizes_adapt_to_the_server(asking) -> None:
    client, _ = asking(FaultPlan(rules=(Rule(kind="502", page_over=10),)))
    size = BatchSize(64)

    def listing(count: int) -> GraphQuery[Viewer]:
        issues = f"issues(first: {count}) {{ totalCount }}"
        text = f'{{ repository(owner: "acme", name: "rocket") {{ {issues} }} rateLimit {{ cost }} }}'
        return GraphQuery(text, VIEWER)

    _, asked = ask_sized(client, size, listing, attempts=5)
    assert asked == 8
    assert size.now == 10
    size.grow()
    _, asked = ask_sized(client, size, listing, attempts=5)
    assert asked == 6


@pytest.mark.parametrize(
    ("root", "url"),
    [
        ("https://api.github.com", "https://api.github.com/graphql"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/graphql"),
        ("https://git.example/api/v3", "https://git.example/api/graphql"),
    ],
)
def test_graphql_urls(root: str, url: str) -> None:
    assert CrawlSettings(api_url=root).graphql_url == url


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        ([([1], "c1"), ([2], None)], "repeated a cursor"),
        ([([1], "c1"), ([2], "start")], "repeated a cursor"),
        ([([1], "c1"), ([2], "c1")], "repeated a cursor"),
        ([([1, 2], f"c{page}") for page in range(12)], "sent 11 pages without new items"),
        ([([page], f"c{page}") for page in range(6)], "sent more than 5 items"),
    ],
    ids=["no cursor", "the first cursor", "the last cursor", "the same items", "too many items"],
)
def test_an_endless_list_is_refused(pages: list[tuple[list[int], str | None]], message: str) -> None:
    progress = Pages("a/b issues", "start", limit=5)
    for items, cursor in pages[:-1]:
        progress.advance(items, cursor)
    with pytest.raises(BadReply, match=f"a/b issues: the server {message}"):
        progress.advance(*pages[-1])


SECONDS = st.integers(1_200_000_000, 1_900_000_000)


def holds(window: Window, second: int) -> bool:
    return (window.start is None or window.start <= second) and (window.end is None or second <= window.end)


@given(
    start=st.none() | SECONDS,
    end=st.none() | SECONDS,
    first=SECONDS,
    last=SECONDS,
    count=st.integers(1001, 10**6),
    second=SECONDS,
)
def test_split_windows_cover_every_second_once(
    start: int | None, end: int | None, first: int, last: int, count: int, second: int
) -> None:
    if start is not None and end is not None:
        start, end = min(start, end), max(start, end)
    window = Window(start, end)
    parts = split_window(window, count, 1000, first, last)
    if not parts:
        assert start == end
        return
    assert len(parts) >= 2
    assert sum(holds(part, second) for part in parts) == holds(window, second)
    edges = [moment for part in parts for moment in (part.start, part.end) if moment is not None]
    for edge in edges:
        assert sum(holds(part, edge) for part in parts) == 1


@given(start=SECONDS, length=st.integers(0, 10**9))
def test_splitting_ends_at_single_seconds(start: int, length: int) -> None:
    window, depth = Window(start, start + length), 0
    while parts := split_window(window, 10**6, 1000, start, start + length):
        window, depth = parts[0], depth + 1
    assert window.start == window.end
    assert depth < 40
