"""Endless lists are refused; split windows cover every second once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gis_builder.crawling.github.fetch_batches import (
    MAX_ITEMS,
    Pages,
    Window,
    epoch,
    iso,
    list_limit,
    split_window,
)
from pairkit.base.errors import BadReply


@given(st.integers(1, 300), st.integers(0, 10))
def test_a_list_with_progress_is_accepted(count: int, idle: int) -> None:
    pages = Pages("a/b issues")
    for page in range(count):
        pages.advance([page // (idle + 1)], f"c{page}")


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


def test_a_list_may_grow_while_it_is_read() -> None:
    assert list_limit(5) == 10_010
    assert list_limit(2**31) == MAX_ITEMS


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


def test_qualifiers() -> None:
    day = epoch("2015-01-31T23:59:59Z")
    assert iso(day) == "2015-01-31T23:59:59Z"
    assert Window().qualifier == ""
    assert Window(None, day).qualifier == "created:<=2015-01-31T23:59:59Z"
    assert Window(day, None).qualifier == "created:>=2015-01-31T23:59:59Z"
    assert Window(day, day + 1).qualifier == "created:2015-01-31T23:59:59Z..2015-02-01T00:00:00Z"
