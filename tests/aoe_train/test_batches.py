"""Which rows make a batch, and what the batch is made of."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aoe_train.data.batches import Batches, Collate, budget_cuts, mix_labels, one_label_batches
from aoe_train.data.mixture import describe
from aoe_train.model.tokens.tokens import TokenStore
from aoe_train.records import ABSENT, Batch, Examples, Kind
from pairkit.app.errors import ConfigError, DataError
from tests.aoe_train.tiny import wordpiece

STRATEGIES: list[dict[str, Any]] = [
    {"strategy": "shuffle"},
    {"strategy": "length"},
    {"strategy": "tokens", "max_tokens": 60},
]


def make(count: int, kind: Kind = "positive", seed: int = 0) -> tuple[Examples, np.ndarray]:
    """`count` rows of two texts each, of 1 to 20 tokens."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, count).astype(np.float32) if kind == "binary" else None
    examples = Examples([str(n) for n in range(2 * count)], np.arange(2 * count).reshape(-1, 2), labels, kind)
    return examples, random.integers(1, 21, 2 * count)


@given(
    st.integers(4, 90), st.integers(1, 3), st.integers(1, 4), st.sampled_from(STRATEGIES), st.integers(0, 9)
)
def test_every_row_once_an_epoch(count: int, share: int, world: int, how: dict[str, Any], epoch: int) -> None:
    examples, lengths = make(count, "binary")
    sampler = Batches(examples, lengths, share * world, world=world, **how)
    sampler.set_epoch(epoch)
    found = list(sampler)
    rows = list(chain.from_iterable(found))
    assert len(rows) == len(set(rows)) == count - sampler.left_out
    assert set(rows) <= set(range(count))
    assert sampler.left_out == count % world
    assert len(found) == len(sampler)
    assert all(0 < len(batch) <= share * world and len(batch) % world == 0 for batch in found)


@given(st.integers(6, 60), st.integers(1, 3), st.integers(1, 4), st.sampled_from(STRATEGIES))
def test_the_ranks_slices_are_the_whole_batch(
    count: int, share: int, world: int, how: dict[str, Any]
) -> None:
    examples, lengths = make(count)
    how = {**how, "world": world, "seed": 3}
    whole = list(Batches(examples, lengths, share * world, **how))
    ranks = [list(Batches(examples, lengths, share * world, rank=rank, **how)) for rank in range(world)]
    assert [list(chain.from_iterable(slices)) for slices in zip(*ranks, strict=True)] == whole
    assert all(len({len(part) for part in slices}) == 1 for slices in zip(*ranks, strict=True))


@pytest.mark.parametrize("how", STRATEGIES)
def test_seed_and_epoch_alone_decide(how: dict[str, Any]) -> None:
    examples, lengths = make(300, "binary")

    def epochs(seed: int) -> list[list[list[int]]]:
        sampler = Batches(examples, lengths, 8, seed=seed, **how)
        found = []
        for epoch in range(3):
            sampler.set_epoch(epoch)
            found.append(list(sampler))
        return found

    assert epochs(1) == epochs(1)
    assert epochs(1) != epochs(2)
    first, second, third = epochs(1)
    assert first != second != third
    assert len(first) == len(second) == len(third)
    resumed = Batches(examples, lengths, 8, seed=1, **how)
    resumed.set_epoch(2)
    assert list(resumed)[3:] == third[3:]


@given(st.integers(20, 120), st.integers(2, 9), st.sampled_from(STRATEGIES))
def test_no_batch_of_one_label_that_could_have_two(count: int, size: int, how: dict[str, Any]) -> None:
    examples, lengths = make(count, "binary")
    labels = examples.labels
    assert labels is not None
    plan = Batches(examples, lengths, size, **how).plan(0)
    if one_label_batches(plan, labels):
        alone = next(rows for rows in plan if len(rows) > 1 and len(set(labels[rows])) == 1)
        assert max(np.count_nonzero(labels[rows] != labels[alone[0]]) for rows in plan) < 2
    elif size > 3:
        assert min(np.ptp(labels[rows]) for rows in plan if len(rows) > 1) == 1


def padding(plan: list[np.ndarray], tokens: np.ndarray) -> float:
    return 1 - tokens.sum() / sum(tokens[rows].max() * len(rows) for rows in plan)


def test_lengths_lie_together_and_the_longest_comes_first() -> None:
    examples, lengths = make(4000)
    tokens = lengths[examples.rows].sum(axis=1)
    plain, *grouped = (Batches(examples, lengths, 16, **how).plan(0) for how in STRATEGIES)
    for plan in grouped:
        assert padding(plan, tokens) < padding(plain, tokens) / 5
        sums = [tokens[rows].sum() for rows in plan]
        assert sums[0] == max(sums)
        middles = [np.median(tokens[rows]) for rows in plan[1:]]
        assert abs(np.corrcoef(np.arange(len(middles)), middles)[0, 1]) < 0.2  # no order of length


def test_cuts_by_hand() -> None:
    lengths = np.array([2, 3, 4, 5, 9, 20])
    assert budget_cuts(lengths, 9, 6, 1).tolist() == [3, 4, 5]
    assert budget_cuts(lengths, 9, 2, 1).tolist() == [2, 4, 5]
    assert budget_cuts(lengths, 14, 6, 2).tolist() == [4]
    assert budget_cuts(lengths, 1, 6, 3).tolist() == [3]


def test_single_texts_count_twice() -> None:
    examples = Examples(list("abcd"), np.arange(4).reshape(-1, 1), None, "single")
    plan = Batches(examples, np.full(4, 5), 4, strategy="tokens", max_tokens=20).plan(0)
    assert [len(rows) for rows in plan] == [2, 2]


def test_a_budget_counts_the_negatives_that_there_are() -> None:
    rows = np.array([[0, 1, 2, 3], [4, 5, 6, ABSENT], [7, 8, 9, ABSENT]])
    wide = Examples([str(n) for n in range(10)], rows, None, "triplet")
    lengths = np.array([1, 2, 3, 4, 1, 1, 1, 2, 2, 9])  # rows of 10, 3 and 13 tokens
    sampler = Batches(wide, lengths, 3, strategy="tokens", max_tokens=13)
    assert sorted(sorted(batch) for batch in sampler) == [[0, 1], [2]]


def test_a_smaller_last_batch() -> None:
    examples, lengths = make(10)
    assert [len(rows) for rows in Batches(examples, lengths, 4, strategy="shuffle")] == [4, 4, 2]
    dropped = Batches(examples, lengths, 4, drop_last=True)
    assert [len(rows) for rows in dropped] == [4, 4]
    assert (len(dropped), dropped.left_out) == (2, 2)
    dropped.set_epoch(1)
    assert {row for rows in dropped for row in rows} != {row for rows in dropped.plan(0) for row in rows}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"batch_size": 0}, "batch size 0: expected a multiple"),
        ({"batch_size": 3, "world": 2}, "a multiple of the 2 processes"),
        ({"batch_size": 4, "strategy": "tokens"}, "needs a number of tokens"),
        ({"batch_size": 4, "max_tokens": 5}, "nothing else takes one"),
        ({"batch_size": 4, "strategy": "tokens", "max_tokens": 0}, "expected 1 or more"),
        ({"batch_size": 4, "strategy": "tokens", "max_tokens": 9, "drop_last": True}, "leave it out"),
    ],
)
def test_sizes_that_dont_fit(more: dict[str, Any], message: str) -> None:
    examples, lengths = make(10)
    with pytest.raises(ConfigError, match=message):
        Batches(examples, lengths, **more)


def test_too_few_rows() -> None:
    examples, lengths = make(3)
    with pytest.raises(DataError, match="3 rows, expected at least 4"):
        Batches(examples, lengths, 8, world=4)
    with pytest.raises(DataError, match="3 rows, expected at least 8"):
        Batches(examples, lengths, 8, drop_last=True)


def test_the_nearest_batch_gives() -> None:
    labels = np.array([1, 0, 0, 1, 1, 1, 0, 0, 0, 0], dtype=np.float32)
    batches = [np.array([0, 1, 2]), np.array([3, 4, 5]), np.array([6, 7]), np.array([8, 9])]
    mix_labels(batches, labels)
    assert [rows.tolist() for rows in batches] == [[0, 1, 2], [3, 8, 6], [5, 7], [4, 9]]


def test_by_hand() -> None:
    labels = np.array([0, 0, 0, 1, 1, 0], dtype=np.float32)
    batches = [np.array([0, 1, 2]), np.array([3, 4, 5])]
    mix_labels(batches, labels)
    assert [rows.tolist() for rows in batches] == [[0, 1, 3], [2, 4, 5]]


@given(st.lists(st.lists(st.sampled_from([0, 1, 2.5]), min_size=1, max_size=6), min_size=1, max_size=12))
def test_as_many_batches_as_can_be_hold_two_labels(wanted: list[list[float]]) -> None:
    labels = np.concatenate(wanted).astype(np.float32)
    cuts = np.cumsum([len(part) for part in wanted])[:-1]
    batches = np.split(np.arange(len(labels)), cuts)
    before = one_label_batches(batches, labels)
    mix_labels(batches, labels)
    assert [len(rows) for rows in batches] == [len(part) for part in wanted]
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(labels)))
    left = one_label_batches(batches, labels)
    assert left <= before
    if left:  # then no other batch can spare an unlike row and stay mixed itself
        label = next(labels[rows[0]] for rows in batches if len(rows) > 1 and len(set(labels[rows])) == 1)
        assert max(np.count_nonzero(labels[rows] != label) for rows in batches) < 2


WORDS = ["cat", "the cat", "a cat", "the red cat", "a dog in the city", "dog"]
PAIRS = Examples(
    WORDS,
    np.array([[0, 1], [1, 1], [4, 0], [2, 5], [3, 1]]),
    np.array([1, 0, 0.5, 3, 2], np.float32),
    "graded",
)


@pytest.fixture(scope="module")
def store() -> TokenStore:
    return TokenStore.build(WORDS, wordpiece(), max_length=16)


IDS = [wordpiece()(text).input_ids for text in WORDS]


def ids_of(batch: Batch) -> list[list[int]]:
    return [part.tolist() for part in batch["input_ids"].split(batch["lengths"].tolist())]


def test_by_hand_of_collate(store: TokenStore) -> None:
    batch = Collate(PAIRS, store)([2, 0])
    assert batch["texts"].tolist() == [0, 1, 4]
    assert batch["rows"].tolist() == [[2, 0], [0, 1]]
    assert batch["labels"].tolist() == [0.5, 1]
    assert batch["lengths"].tolist() == [3, 4, 7]
    assert batch["pieces"].tolist() == [1, 1, 1]
    assert ids_of(batch) == [IDS[n] for n in (0, 1, 4)]
    dtypes = {name: value.dtype for name, value in batch.items() if isinstance(value, torch.Tensor)}
    assert dtypes.pop("labels") == torch.float32
    assert set(dtypes.values()) == {torch.int64}


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8), st.booleans())
def test_rows_lead_to_their_texts(store: TokenStore, rows: list[int], dedup: bool) -> None:
    batch = Collate(PAIRS, store, dedup=dedup)(rows)
    assert batch["texts"][batch["rows"]].tolist() == PAIRS.rows[rows].tolist()
    assert batch["lengths"].tolist() == sorted(batch["lengths"].tolist())
    texts = batch["texts"].tolist()
    assert ids_of(batch) == [IDS[n] for n in texts]
    assert len(texts) == (len(set(PAIRS.rows[rows].ravel())) if dedup else 2 * len(rows))


@pytest.mark.parametrize("dedup", [True, False])
def test_a_negative_that_a_row_lacks_is_no_text_of_the_batch(store: TokenStore, *, dedup: bool) -> None:
    wide = Examples(WORDS, np.array([[0, 1, 2, 1], [3, 0, 5, ABSENT]]), None, "triplet")
    batch = Collate(wide, store, dedup=dedup)([1, 0])
    numbers = batch["texts"][batch["rows"]]
    assert numbers[batch["rows"] != ABSENT].tolist() == [3, 0, 5, 0, 1, 2, 1]
    assert batch["rows"].tolist()[0][3] == ABSENT
    assert len(batch["texts"]) == (5 if dedup else 7)
    assert ids_of(batch) == [IDS[n] for n in batch["texts"].tolist()]


def test_a_plan_counts_the_texts_that_there_are(store: TokenStore) -> None:
    wide = Examples(WORDS, np.array([[0, 1, 2, 1], [3, 0, 5, ABSENT]]), None, "triplet")
    plan = describe(Batches(wide, store.lengths, 2), store)
    lengths = store.lengths
    assert plan["tokens_max"] == sum(lengths[[0, 1, 2, 3, 5]])
    assert plan["distinct_share"] == 5 / 7
    padded = 2 * (max(lengths[[0, 3]]) + max(lengths[[1, 0]]) + max(lengths[[2, 5]]) + lengths[1])
    own = sum(lengths[[0, 1, 2, 1, 3, 0, 5]])
    assert plan["padding_share"] == pytest.approx(1 - own / padded)


def test_a_single_text_comes_twice(store: TokenStore) -> None:
    single = Examples(WORDS, np.array([[4], [0], [4]]), None, "single")
    batch = Collate(single, store)([0, 1])
    assert batch["texts"].tolist() == [0, 0, 4, 4]
    assert sorted(batch["rows"].ravel().tolist()) == [0, 1, 2, 3]
    assert batch["texts"][batch["rows"]].tolist() == [[4, 4], [0, 0]]


def test_a_plan_in_numbers(store: TokenStore) -> None:
    plan = describe(Batches(PAIRS, store.lengths, 5), store)
    columns = [[IDS[n] for n in column] for column in PAIRS.rows.T]
    padded = sum(5 * max(map(len, column)) for column in columns)
    own = sum(len(ids) for column in columns for ids in column)
    assert plan == {
        "steps": 1,
        "rows_mean": 5,
        "rows_max": 5,
        "tokens_mean": store.lengths.sum(),
        "tokens_max": store.lengths.sum(),
        "distinct_share": 6 / 10,
        "padding_share": pytest.approx(1 - own / padded),
        "one_label_batches": 0,
        "left_out": 0,
        "truncated_texts": 0,
    }


def test_a_plan_counts_single_texts_twice(store: TokenStore) -> None:
    single = Examples(WORDS, np.arange(6).reshape(-1, 1), None, "single")
    plan = describe(Batches(single, store.lengths, 6), store)
    assert plan["tokens_max"] == 2 * store.lengths.sum() == len(Collate(single, store)(range(6))["input_ids"])
    assert plan["distinct_share"] == 1
    once = describe(Batches(single, store.lengths, 6, views=False), store)
    ids = Collate(single, store, views=False)(range(6))["input_ids"]
    assert once["tokens_max"] == store.lengths.sum() == len(ids)
