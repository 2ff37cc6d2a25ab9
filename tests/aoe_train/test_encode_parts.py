"""Where inputs are cut, for whoever encodes them."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from aoe_train.encoding.parts import Shard, ends_of, parts, shards_beside

TEXTS = st.lists(st.text(max_size=3), max_size=40)


@given(TEXTS, st.integers(1, 9))
def test_parts_are_the_texts_and_their_ends(texts: list[str], most: int) -> None:
    cut = [*parts(texts, most)]
    assert [text for part in cut for text in part] == texts
    assert all(1 <= len(part) <= most for part in cut)
    assert ends_of(texts, most) == [sum(map(len, cut[: place + 1])) for place in range(len(cut))]


@given(TEXTS, TEXTS, st.integers(1, 9))
def test_what_comes_later_moves_no_end(texts: list[str], more: list[str], most: int) -> None:
    before = ends_of(texts, most)[:-1]
    assert ends_of(texts + more, most)[: len(before)] == before


def test_long_inputs_have_large_parts_and_short_ones_many() -> None:
    ends = ends_of(["a"] * 400_000)
    sizes = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    assert sizes[:32] == [1000] * 32
    assert sizes[-2] == 10_000
    assert len(ends_of(["a"] * 8_000)) == 8


@given(TEXTS.filter(bool), st.integers(1, 9), st.integers(1, 12))
def test_shards_are_whole_parts_one_behind_the_other(texts: list[str], most: int, of: int) -> None:
    ends = ends_of(texts, most)
    shares = [Shard(number, of).within(ends) for number in range(1, of + 1)]
    assert [start for start, _ in shares] == [0, *(end for _, end in shares[:-1])]
    assert shares[-1][1] == len(texts)
    assert all(end in (0, *ends) for share in shares for end in share)


def test_shards_are_of_like_size() -> None:
    ends = ends_of(["a"] * 400_000)
    sizes = [end - start for start, end in (Shard(number, 8).within(ends) for number in range(1, 9))]
    assert max(abs(size - 50_000) for size in sizes) <= 10_000


def test_names_of_shards(tmp_path: Path) -> None:
    assert Shard(2, 8).path(tmp_path / "v.parquet") == tmp_path / "v-2-of-8.npy"
    for name in (
        "v-1-of-2.npy",
        "v-2-of-2.npy.partial",
        "v-1-of-2.npy.run.json",
        "w-1-of-3.npy",
        "v-2-of-3.txt",
    ):
        (tmp_path / name).touch()
    assert shards_beside(tmp_path / "v.npy") == [Shard(1, 2), Shard(2, 2)]
