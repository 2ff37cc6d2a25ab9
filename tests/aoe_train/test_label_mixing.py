from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from aoe_train.data.batches import mix_labels, one_label_batches


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
