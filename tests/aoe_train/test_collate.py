from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aoe_train.data.batch_plan import describe
from aoe_train.data.batches import Batches
from aoe_train.data.collate import Collate
from aoe_train.model.tokens.tokens import TokenStore
from aoe_train.records import ABSENT, Batch, Examples
from tests.aoe_train.tiny import wordpiece

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


def ids_of(batch: Batch) -> list[list[int]]:
    return [part.tolist() for part in batch["input_ids"].split(batch["lengths"].tolist())]


def test_by_hand(store: TokenStore) -> None:
    batch = Collate(PAIRS, store)([2, 0])
    assert batch["texts"].tolist() == [0, 1, 4]
    assert batch["rows"].tolist() == [[2, 0], [0, 1]]
    assert batch["labels"].tolist() == [0.5, 1]
    assert batch["lengths"].tolist() == [3, 4, 7]
    assert batch["pieces"].tolist() == [1, 1, 1]
    assert ids_of(batch) == [wordpiece()(WORDS[n]).input_ids for n in (0, 1, 4)]
    dtypes = {name: value.dtype for name, value in batch.items() if isinstance(value, torch.Tensor)}
    assert dtypes.pop("labels") == torch.float32
    assert set(dtypes.values()) == {torch.int64}


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8), st.booleans())
def test_rows_lead_to_their_texts(store: TokenStore, rows: list[int], dedup: bool) -> None:
    batch = Collate(PAIRS, store, dedup=dedup)(rows)
    assert batch["texts"][batch["rows"]].tolist() == PAIRS.rows[rows].tolist()
    assert batch["lengths"].tolist() == sorted(batch["lengths"].tolist())
    texts = batch["texts"].tolist()
    assert ids_of(batch) == [wordpiece()(WORDS[n]).input_ids for n in texts]
    assert len(texts) == (len(set(PAIRS.rows[rows].ravel())) if dedup else 2 * len(rows))


def test_triplets_have_no_labels(store: TokenStore) -> None:
    batch = Collate(Examples(WORDS, np.array([[0, 1, 2]]), None, "triplet"), store)([0])
    assert "labels" not in batch
    assert batch["rows"].shape == (1, 3)


@pytest.mark.parametrize("dedup", [True, False])
def test_a_negative_that_a_row_lacks_is_no_text_of_the_batch(store: TokenStore, *, dedup: bool) -> None:
    wide = Examples(WORDS, np.array([[0, 1, 2, 1], [3, 0, 5, ABSENT]]), None, "triplet")
    batch = Collate(wide, store, dedup=dedup)([1, 0])
    numbers = batch["texts"][batch["rows"]]
    assert numbers[batch["rows"] != ABSENT].tolist() == [3, 0, 5, 0, 1, 2, 1]
    assert batch["rows"].tolist()[0][3] == ABSENT
    assert len(batch["texts"]) == (5 if dedup else 7)
    assert ids_of(batch) == [wordpiece()(WORDS[n]).input_ids for n in batch["texts"].tolist()]


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
    columns = [[wordpiece()(WORDS[n]).input_ids for n in column] for column in PAIRS.rows.T]
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
