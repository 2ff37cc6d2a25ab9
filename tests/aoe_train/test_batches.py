"""Rows in batches, the tensors of a batch, and the order and share of several datasets."""

from itertools import chain, count

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from aoe_train.data.defaults import epoch_passes
from aoe_train.data.token_batches import Batches as Planned
from aoe_train.data.token_batches import (
    Mixture,
    budget_cuts,
    collate,
    describe,
    format_epoch_share,
    mix_labels,
)
from aoe_train.model.tokenised import TokenStore
from aoe_train.objectives.training_rows import ABSENT, Examples
from aoe_train.settings.run_settings import BatchSettings, MixSettings
from tests.aoe_train.tiny import wordpiece
from tests.support.shorthand import (
    approx,
    module_fixture,
    parametrize,
    table,
    text_lines,
    values,
)


def by_tokens(most):
    return {"strategy": "tokens", "max_tokens": most}


STRATEGIES = [{"strategy": "shuffle"}, {"strategy": "length"}, by_tokens(60)]


def batches_of(examples, lengths, size, how=None, **others):
    """Batches with these settings."""
    return Planned(examples, lengths, size, BatchSettings(**how or {}), **others)


def alone(batches, **place):
    return Mixture([batches], [1], MixSettings(), **place)


def make(count, kind="positive", seed=0):
    """`count` rows of two texts each, of 1 to 20 tokens."""
    random = np.random.default_rng(seed)
    labels = (
        random.integers(0, 2, count).astype(np.float32) if kind == "binary" else None
    )
    examples = Examples(
        [str(n) for n in range(2 * count)],
        np.arange(2 * count).reshape(-1, 2),
        labels,
        kind,
    )
    return examples, random.integers(1, 21, 2 * count)


@given(
    st.integers(4, 90),
    st.integers(1, 3),
    st.integers(1, 4),
    st.sampled_from(STRATEGIES),
    st.integers(0, 9),
)
def test_each_row_once_per_epoch_and_equal_slices_per_rank(
    count, share, world, how, epoch
):
    examples, lengths = make(count, "binary")
    whole = batches_of(examples, lengths, share * world, how, world=world, seed=3)
    ranks = [alone(whole, world=world, rank=rank) for rank in range(world)]
    for sampler in ranks:
        sampler.set_epoch(epoch)
    found = [batch.tolist() for batch in whole.plan(epoch)]
    rows = [*chain(*found)]
    assert len(rows) == len({*rows}) == count - whole.left_out
    assert {*rows} <= {*range(count)}
    assert whole.left_out == count % world
    assert len(found) == len(whole)
    slices = [*zip(*ranks, strict=True)]
    assert [[*chain(*parts)] for parts in slices] == found
    for batch, parts in zip(found, slices, strict=True):
        assert 0 < len(batch) <= share * world
        assert {len(part) for part in parts} == {len(batch) / world}


@parametrize("how", STRATEGIES)
def test_plan_depends_only_on_seed_and_epoch(how):
    def plans(seed, epochs=range(3)):
        sampler = batches_of(*make(300, "binary"), 8, how, seed=seed)
        return [[rows.tolist() for rows in sampler.plan(epoch)] for epoch in epochs]

    first, second, third = plans(1)
    assert plans(1) == [first, second, third] != plans(2)
    assert first != second != third
    assert len(first) == len(second) == len(third)
    assert plans(1, [2]) == [third]  # as of a resumed run


def one_could_give(batches, labels):
    """Whether a batch with two labels could give a row to a batch with one label."""
    same = [rows for rows in batches if len(rows) > 1 and len(set(labels[rows])) == 1]
    return bool(same) and any(
        np.count_nonzero(labels[rows] != labels[same[0][0]]) > 1 for rows in batches
    )


def test_batches_group_similar_lengths_and_the_largest_comes_first():
    examples, lengths = make(4000)
    tokens = lengths[examples.rows].sum(axis=1)
    plain, *grouped = (
        batches_of(examples, lengths, 16, how).plan(0) for how in STRATEGIES
    )

    def padding(plan):
        return 1 - tokens.sum() / sum(tokens[rows].max() * len(rows) for rows in plan)

    for plan in grouped:
        assert padding(plan) < padding(plain) / 5
        first, *sums = (tokens[rows].sum() for rows in plan)
        assert first >= max(sums)
        middles = [np.median(tokens[rows]) for rows in plan[1:]]
        order = np.corrcoef(range(len(middles)), middles)
        assert abs(order[0, 1]) < 0.2  # no order of length


@table(
    """
    most, rows, world, cuts
    9 | 6 | 1 | [3, 4, 5]
    9 | 2 | 1 | [2, 4, 5]
    14 | 6 | 2 | [4]
    1 | 6 | 3 | [3]
    """,
)
def test_budget_cuts_by_hand(most, rows, world, cuts):
    found = budget_cuts(np.array([2, 3, 4, 5, 9, 20]), most, rows, world)
    assert found.tolist() == cuts


def test_budget_ignores_absent_negatives():
    rows = values(
        """
        0 | 1 | 2 | 3
        4 | 5 | 6 | ABSENT
        7 | 8 | 9 | ABSENT
        """,
        ABSENT=ABSENT,
    )
    wide = Examples([*"0123456789"], np.array(rows), None, "triplet")
    lengths = np.array([1, 2, 3, 4, 1, 1, 1, 2, 2, 9])  # rows of 10, 3 and 13 tokens
    plan = batches_of(wide, lengths, 3, by_tokens(13)).plan(0)
    assert sorted(sorted(batch) for batch in plan) == [[0, 1], [2]]
    single = Examples([*"abcd"], np.arange(4).reshape(-1, 1), None, "single")
    plan = batches_of(single, np.full(4, 5), 4, by_tokens(20)).plan(0)
    assert [len(rows) for rows in plan] == [2, 2]  # a single text counts twice


@given(
    st.lists(
        st.lists(st.sampled_from([0, 1, 2.5]), min_size=1, max_size=6),
        min_size=1,
        max_size=12,
    )
)
def test_mix_labels_leaves_no_avoidable_single_label(wanted):
    labels = np.concatenate(wanted).astype(np.float32)
    sizes = [len(part) for part in wanted]
    batches = np.split(np.arange(len(labels)), np.cumsum(sizes)[:-1])
    mix_labels(batches, labels)
    assert [len(rows) for rows in batches] == sizes
    assert sorted(chain(*batches)) == [*range(len(labels))]
    assert not one_could_give(batches, labels)


WORDS = text_lines("""
    cat
    the cat
    a cat
    the red cat
    a dog in the city
    dog
""")
PAIRS = Examples(
    WORDS,
    np.array(
        values("""
        0 | 1
        1 | 1
        4 | 0
        2 | 5
        3 | 1
        """)
    ),
    np.float32([1, 0, 0.5, 3, 2]),
    "graded",
)


WIDE = Examples(WORDS, np.array([[0, 1, 2, 1], [3, 0, 5, ABSENT]]), None, "triplet")


@module_fixture
def store():
    return TokenStore.build(WORDS, wordpiece(), max_length=16)


IDS = [wordpiece()(text).input_ids for text in WORDS]


def ids_of(batch):
    return [
        part.tolist() for part in batch["input_ids"].split(batch["lengths"].tolist())
    ]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8))
def test_rows_of_a_batch_index_its_texts(store, rows):
    batch = collate(rows, PAIRS, store)
    assert batch["texts"][batch["rows"]].tolist() == PAIRS.rows[rows].tolist()
    assert batch["labels"].tolist() == PAIRS.labels[rows].tolist()
    lengths = batch["lengths"].tolist()
    assert lengths == sorted(lengths)
    texts = batch["texts"].tolist()
    assert ids_of(batch) == [IDS[n] for n in texts]
    assert len(texts) == len({*PAIRS.rows[rows].ravel()})
    dtypes = {
        name: value.dtype
        for name, value in batch.items()
        if isinstance(value, torch.Tensor)
    }
    assert dtypes.pop("labels") == torch.float32
    assert {*dtypes.values()} == {torch.int64}


def test_absent_negatives_are_not_in_the_batch(store):
    batch = collate([1, 0], WIDE, store)
    numbers = batch["texts"][batch["rows"]]
    assert numbers[batch["rows"] != ABSENT].tolist() == [3, 0, 5, 0, 1, 2, 1]
    assert batch["rows"].tolist()[0][3] == ABSENT
    assert len(batch["texts"]) == 5
    assert ids_of(batch) == [IDS[n] for n in batch["texts"].tolist()]


def test_statistics_ignore_absent_negatives(store):
    lengths = store.lengths
    plan = describe(alone(batches_of(WIDE, lengths, 2)), [store])
    assert plan["tokens_max"] == sum(lengths[[0, 1, 2, 3, 5]])
    padded = 2 * (
        max(lengths[[0, 3]]) + max(lengths[[1, 0]]) + max(lengths[[2, 5]]) + lengths[1]
    )
    own = sum(lengths[[0, 1, 2, 1, 3, 0, 5]])
    assert plan["padding_share"] == approx(1 - own / padded)


def test_single_texts_are_encoded_twice(store):
    single = Examples(WORDS, np.array([[4], [0], [4]]), None, "single")
    batch = collate([0, 1], single, store)
    assert batch["texts"].tolist() == [0, 0, 4, 4]
    assert sorted(batch["rows"].ravel().tolist()) == [0, 1, 2, 3]
    assert batch["texts"][batch["rows"]].tolist() == [[4, 4], [0, 0]]
    whole = Examples(WORDS, np.arange(6).reshape(-1, 1), None, "single")
    for views, times in ((True, 2), (False, 1)):
        batches = batches_of(whole, store.lengths, 6, views=views)
        plan = describe(alone(batches), [store])
        ids = collate(range(6), whole, store, views=views)["input_ids"]
        assert plan["tokens_max"] == times * store.lengths.sum() == len(ids)


SIZES = st.lists(st.integers(4, 40), min_size=2, max_size=4)
ORDERS = st.sampled_from(["proportional", "round-robin"])


def mixture(rows, weights=None, batch=4, world=1, rank=None, **flags):
    each = [
        batches_of(*make(count, seed=place), batch, world=world)
        for place, count in enumerate(rows)
    ]
    mix = MixSettings(**flags)
    place = {} if rank is None else {"rank": rank, "world": world}
    return Mixture(each, weights or [1] * len(rows), mix, **place)


@given(SIZES, ORDERS, st.integers(0, 9))
def test_each_row_once_per_epoch(rows, order, epoch):
    for made in (mixture(rows, order=order, epoch="once"), mixture(rows)):
        assert sorted(chain.from_iterable(made.plan(epoch))) == list(range(sum(rows)))


@settings(max_examples=30)
@given(SIZES, ORDERS, st.integers(1, 2), st.integers(0, 3))
def test_batch_has_one_dataset_on_all_ranks(rows, order, share, epoch):
    how = {"batch": 2 * share, "order": order, "world": 2}
    whole, *ranks = (mixture(rows, rank=rank, **how) for rank in (None, 0, 1))
    for made in (whole, *ranks):
        made.set_epoch(epoch)
    for batch, *slices in zip(whole, *ranks, strict=True):
        assert [*chain(*slices)] == batch
        assert len({*np.searchsorted(whole.starts, batch, side="right")}) == 1
    assert len([*whole]) == len(whole) == sum(whole.counts)


@settings(max_examples=30)
@given(
    SIZES,
    ORDERS,
    st.sampled_from(["shortest", "longest"]),
    st.lists(st.floats(0.2, 5), min_size=4, max_size=4),
)
def test_epoch_continues_the_previous_pass(rows, order, until, weights):
    made = mixture(rows, order=order, epoch=until, weights=weights[: len(rows)])
    found = [[] for _ in rows]
    for epoch in range(3):
        for dataset, batch in zip(made.turns(epoch), made.plan(epoch), strict=True):
            found[dataset].append(batch - made.starts[dataset])
    for own, batches in zip(found, made.batches, strict=True):
        expected = chain.from_iterable(map(batches.plan, count()))
        assert all(map(np.array_equal, own, expected))
    whole = np.divide(made.counts, [*map(len, made.batches)])
    assert max(whole) <= 1 if until == "shortest" else min(whole) >= 1
    assert 1 in whole


def test_an_epoch_starts_with_the_largest_batch():
    for order, weights in (("proportional", [1, 1]), ("round-robin", [9, 1])):
        # Batches of the second dataset have two rows more.
        small, large = (batches_of(*make(40, seed=1), size) for size in (2, 4))
        made = Mixture([small, large], weights, MixSettings(order=order))
        for epoch in range(3):
            assert len(made.plan(epoch)[0]) == 4


@table(
    """
    how, weights, passes
    {} | [1, 1] | [1, 1]
    # rows^(1/2): 10 to 100, so that the first is seen ten times where the second is seen once
    {'temperature': 2} | [1, 1] | [10, 1]
    {'temperature': 2, 'epoch': 'shortest'} | [1, 1] | [1, 0.1]
    {} | [3, 1] | [3, 1]
    {'order': 'round-robin'} | [1, 1] | [1, 0.01]
    {'order': 'round-robin', 'epoch': 'longest'} | [2, 1] | [200, 1]
    """,
)
def test_epoch_passes_by_hand(how, weights, passes):
    assert epoch_passes(MixSettings(**how), weights, [100, 10_000]) == approx(passes)


def test_repeated_and_waiting_rows_are_counted():
    made = mixture([10, 30], weights=[2, 1], batch=5)
    names = ("batches", "passes", "rows_seen", "rows_repeated", "rows_waiting")
    one, two = made.epoch_share(0), made.epoch_share(1)
    assert [one[name] for name in names] == [4, 2, 20, 10, 0]
    assert [two[name] for name in names] == [6, 1, 30, 0, 0]
    assert made.rows_seen(3) == 3 * 50
    short = mixture([10, 30], batch=5, order="round-robin").epoch_share(1)
    assert short["rows_waiting"] == 20
    assert [*map(format_epoch_share, (one, two, short))] == text_lines("""
        4 batches an epoch, 2 times each row (10 rows repeat)
        6 batches an epoch, each row once
        2 batches an epoch, 10 rows (20 wait for a later epoch)
    """)
