from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairkit.app.errors import ConfigError
from pairkit.system.shards import Shard


def test_a_shard_by_its_name() -> None:
    shard = Shard.named("2/8")
    assert (shard, str(shard), shard.mark) == (Shard(2, 8), "2/8", "2-of-8")


def test_shards_in_names() -> None:
    names = [
        "v+-2-of-2.npy",
        "v+-1-of-2.npy",
        "v+-2-of-2.npy.partial",
        "v+-0-of-0.npy",
        "v+-1-of-3.txt",
        "vv-1-of-4.npy",
    ]
    assert Shard.in_names(names, "v+", [".npy", ".npy.partial"]) == [Shard(1, 2), Shard(2, 2)]


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "a/b", "1/2/3", "-1/2", "", "٢/8"])
def test_what_names_no_shard(text: str) -> None:
    with pytest.raises(ConfigError, match="expected I/N with I from 1 to N, such as 2/8"):
        Shard.named(text)


@given(st.integers(0, 10**15), st.integers(1, 1000))
def test_shares_are_the_whole_together(total: int, of: int) -> None:
    shares = [Shard(number, of).share(total) for number in range(1, of + 1)]
    assert sum(shares) == total
    assert max(shares) - min(shares) <= 1
