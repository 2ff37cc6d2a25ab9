"""Windows of searches: no second is lost, and none is searched twice."""

from hypothesis import given
from hypothesis import strategies as st

from gis_builder.crawling.github.search import Window, split_window

SECONDS = st.integers(1_200_000_000, 1_900_000_000)
EDGES = st.none() | SECONDS


def holds(window, second):
    return (window.start is None or window.start <= second) and (
        window.end is None or second <= window.end
    )


@given(EDGES, EDGES, SECONDS, SECONDS, st.integers(1001, 10**6), SECONDS)
def test_split_windows_cover_every_second_once(start, end, first, last, count, second):
    if start is not None and end is not None:
        start, end = min(start, end), max(start, end)
    window = Window(start, end)
    parts = split_window(window, count, 1000, first, last)
    if not parts:
        assert start == end
        return
    assert len(parts) >= 2
    assert sum(holds(part, second) for part in parts) == holds(window, second)
    edges = [
        moment
        for part in parts
        for moment in (part.start, part.end)
        if moment is not None
    ]
    for edge in edges:
        assert sum(holds(part, edge) for part in parts) == 1


@given(start=SECONDS, length=st.integers(0, 10**9))
def test_splitting_ends_at_single_seconds(start, length):
    window, depth = Window(start, start + length), 0
    while parts := split_window(window, 10**6, 1000, start, start + length):
        window, depth = parts[0], depth + 1
    assert window.start == window.end
    assert depth < 40
