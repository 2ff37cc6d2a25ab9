from __future__ import annotations

from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aoe_train.model.tokens.tokens import head_tail, pieces, windows
from pairkit.app.errors import ConfigError

IDS = list(range(10))


def test_each_mode_by_hand() -> None:
    assert pieces(IDS, 4) == [[0, 1, 2, 3]]
    assert pieces(IDS, 4, "head-tail") == [[0, 7, 8, 9]]
    assert pieces(IDS, 4, "chunks") == [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert pieces(IDS, 4, "chunks", 1) == [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9]]
    assert pieces(IDS, 10, "chunks", 5) == [IDS]
    assert pieces([], 4, "chunks", 2) == [[]]


def test_the_papers_head_and_tail() -> None:
    assert head_tail(510) == (128, 382)
    assert pieces(IDS, 1, "head-tail") == [[9]]


@given(st.integers(1, 300), st.integers(1, 40), st.data())
def test_windows_cover_a_text_evenly_with_as_few_as_can_be(
    length: int, room: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, room - 1))
    spans = windows(length, room, overlap)
    sizes = [stop - start for start, stop in spans]
    assert spans[0][0] == 0
    assert spans[-1][1] == length
    assert max(sizes) <= room
    assert max(sizes) - min(sizes) <= 1
    assert all(before[1] - after[0] == overlap for before, after in pairwise(spans))
    fewer = len(spans) - 1
    assert fewer == 0 or fewer * room - (fewer - 1) * overlap < length


@given(st.lists(st.integers(0, 9)), st.integers(1, 12), st.sampled_from(["truncate", "head-tail", "chunks"]))
def test_a_text_that_fits_is_left_alone(ids: list[int], room: int, mode: str) -> None:
    cut = pieces(ids, room, mode)  # type: ignore[arg-type]
    assert max(map(len, cut)) <= room
    if len(ids) <= room:
        assert cut == [ids]
    if mode == "chunks":
        assert list(chain.from_iterable(cut)) == ids


def test_an_overlap_that_means_nothing() -> None:
    with pytest.raises(ConfigError, match="only chunks overlap"):
        pieces(IDS, 4, "truncate", 1)
    for overlap in (-1, 3, 4):
        with pytest.raises(ConfigError, match="expected 0 to 2, at most half"):
            pieces(IDS, 4, "chunks", overlap)


@given(st.integers(1, 2000), st.integers(1, 600), st.data())
def test_no_overlap_makes_a_text_more_than_twice_the_work(
    length: int, room: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, room // 2))
    cut = pieces(list(range(length)), room, "chunks", overlap)
    assert sum(map(len, cut)) <= 2 * length
