"""The order of several datasets' batches, and their share of an epoch."""

from collections import Counter
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aoe_train.data.defaults import epoch_passes
from aoe_train.data.mixture import Mixture, format_epoch_share
from aoe_train.settings.run_settings import MixSettings
from tests.aoe_train.test_batches import batches_of, make

SIZES = st.lists(st.integers(4, 40), min_size=2, max_size=4)
ORDERS = st.sampled_from(["proportional", "round-robin"])


def mixture(rows: list[int], *, weights: list[float] | None = None, batch: int = 4, **flags: Any) -> Mixture:
    dealt = {name: flags.pop(name) for name in ("seed", "world", "rank") if name in flags}
    each = [batches_of(*make(count, seed=place), batch, **dealt) for place, count in enumerate(rows)]
    return Mixture(each, weights or [1] * len(rows), MixSettings(**flags), **dealt)


def whose(made: Mixture, epoch: int = 0) -> list[int]:
    return made.turns(epoch).tolist()


@given(SIZES, ORDERS, st.integers(0, 9))
def test_each_row_once_per_epoch(rows, order, epoch):
    for made in (mixture(rows, order=order, epoch="once"), mixture(rows)):
        assert sorted(chain.from_iterable(made.plan(epoch))) == list(range(sum(rows)))


@settings(max_examples=30)
@given(SIZES, ORDERS, st.integers(1, 2), st.integers(0, 3))
def test_batch_has_one_dataset_on_all_ranks(rows, order, share, epoch):
    whole = mixture(rows, batch=2 * share, order=order, world=2)
    ranks = [mixture(rows, batch=2 * share, order=order, world=2, rank=rank) for rank in range(2)]
    for made in (whole, *ranks):
        made.set_epoch(epoch)
    for batch, *slices in zip(whole, *ranks, strict=True):
        assert list(chain.from_iterable(slices)) == batch
        assert len({np.searchsorted(whole.starts, row, side="right") for row in batch}) == 1
    assert len(list(whole)) == len(whole) == sum(whole.counts)


@settings(max_examples=30)
@given(
    SIZES,
    ORDERS,
    st.sampled_from(["shortest", "longest"]),
    st.lists(st.floats(0.2, 5), min_size=4, max_size=4),
)
def test_epoch_continues_the_previous_pass(rows, order, until, weights):
    made = mixture(rows, order=order, epoch=until, weights=weights[: len(rows)])
    found: list[list[np.ndarray]] = [[] for _ in rows]
    for epoch in range(3):
        for dataset, batch in zip(made.turns(epoch), made.plan(epoch), strict=True):
            found[dataset].append(batch - made.starts[dataset])
    for own, batches in zip(found, made.batches, strict=True):
        through = -(-len(own) // len(batches))
        expected = chain.from_iterable(batches.plan(number) for number in range(through))
        assert all(np.array_equal(one, other) for one, other in zip(own, expected, strict=False))
    whole = [count / len(batches) for count, batches in zip(made.counts, made.batches, strict=True)]
    assert max(whole) <= 1 if until == "shortest" else min(whole) >= 1
    assert 1 in whole


@pytest.mark.parametrize(
    ("how", "weights", "passes"),
    [
        ({}, [1, 1], [1, 1]),
        # rows^(1/2): 10 to 100, so that the first is seen ten times where the second is seen once
        ({"temperature": 2}, [1, 1], [10, 1]),
        ({"temperature": 2, "epoch": "shortest"}, [1, 1], [1, 0.1]),
        ({}, [3, 1], [3, 1]),
        ({"order": "round-robin"}, [1, 1], [1, 0.01]),
        ({"order": "round-robin", "epoch": "longest"}, [2, 1], [200, 1]),
    ],
)
def test_epoch_passes_by_hand(how, weights, passes):
    assert epoch_passes(MixSettings(**how), weights, [100, 10_000]) == pytest.approx(passes)


def test_turns():
    rows = [8, 16, 12]  # two, four and three batches
    in_turns = mixture(rows, order="round-robin")
    first = whose(in_turns)[0]
    assert whose(in_turns) == [(first + turn) % 3 for turn in range(3)] * 2
    assert whose(in_turns) == whose(in_turns, 1)
    once = whose(mixture(rows, order="round-robin", epoch="once"))
    assert Counter(once) == {0: 2, 1: 4, 2: 3}
    assert {*once[:3]} == {*once[3:6]} == {0, 1, 2}
    assert once[-1] == 1
    twice = mixture([40, 40], order="round-robin", weights=[2, 1], epoch="shortest")
    assert Counter(whose(twice)) == {0: 10, 1: 5}
    assert max(len(run) for run in "".join(map(str, whose(twice))).split("1")) <= 3
    shuffled = mixture(rows)
    assert sorted(whose(shuffled)) == sorted(whose(shuffled, 1))
    assert whose(shuffled) != whose(shuffled, 1)
    assert whose(shuffled) == whose(mixture(rows))
    assert any(whose(shuffled) != whose(mixture(rows, seed=seed)) for seed in (1, 2, 3))


@pytest.mark.parametrize("order", ["proportional", "round-robin"])
def test_largest_batch_comes_first(order):
    made = mixture([40, 44, 36], order=order, batch=8)
    lengths = [batches._lengths for batches in made.batches]
    sizes = [
        sum(lengths[dataset][batch - made.starts[dataset]])
        for dataset, batch in zip(made.turns(0), made.plan(0), strict=True)
    ]
    assert sizes[0] == max(sizes)


def test_repeated_and_waiting_rows_are_counted():
    made = mixture([10, 30], weights=[2, 1], batch=5)
    assert [made.epoch_share(dataset) for dataset in (0, 1)] == [
        {"batches": 4, "passes": 2, "rows_seen": 20, "rows_repeated": 10, "rows_waiting": 0},
        {"batches": 6, "passes": 1, "rows_seen": 30, "rows_repeated": 0, "rows_waiting": 0},
    ]
    assert made.rows_seen(3) == 3 * 50
    short = mixture([10, 30], batch=5, order="round-robin")
    assert short.epoch_share(1)["rows_waiting"] == 20
    words = [
        format_epoch_share(one.epoch_share(dataset)) for one, dataset in ((made, 0), (made, 1), (short, 1))
    ]
    assert words == [
        "4 batches an epoch, 2 times each row (10 rows repeat)",
        "6 batches an epoch, each row once",
        "2 batches an epoch, 10 rows (20 wait for a later epoch)",
    ]


def test_rows_are_numbered_over_all_datasets():
    made = mixture([8, 12])
    assert made.locate([8, 19]) == (1, [0, 11])
    assert made.locate([7]) == (0, [7])
