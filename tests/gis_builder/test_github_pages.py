"""A list that leads in a circle, stands still or never ends is refused; one that idles for a while is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gis_builder.crawling.github.batches import MOST_ITEMS, Pages, most_of
from pairkit.app.errors import BadReply


@given(st.integers(1, 300), st.integers(0, 10))
def test_a_list_that_gets_on_is_left_alone(count: int, idle: int) -> None:
    pages = Pages("a/b issues")
    for page in range(count):
        pages.turn([page // (idle + 1)], f"c{page}")


@pytest.mark.parametrize("cursor", [None, "start", "c1"])
def test_a_cursor_that_was_given_before_is_refused(cursor: str | None) -> None:
    pages = Pages("a/b issues", "start")
    pages.turn([1], "c1")
    with pytest.raises(BadReply, match=r"a/b issues: the server leads back to a page that it gave"):
        pages.turn([2], cursor)


def test_the_same_items_under_new_cursors_are_refused() -> None:
    pages = Pages("a/b issues")
    for page in range(11):
        pages.turn([1, 2], f"c{page}")
    with pytest.raises(BadReply, match="gave 11 pages without anything new"):
        pages.turn([1, 2], "c11")


def test_more_than_there_can_be_is_refused() -> None:
    pages = Pages("a/b issues", most=5)
    for page in range(5):
        pages.turn([page], f"c{page}")
    with pytest.raises(BadReply, match="gave more than 5 items"):
        pages.turn([5], "c5")


def test_a_list_may_grow_while_it_is_read() -> None:
    assert most_of(5) == 10_010
    assert most_of(2**31) == MOST_ITEMS
