"""Whole groups in splits of the requested sizes."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pairkit.dataset.making.group_splits import (
    NOWHERE,
    draw_splits,
    fill_splits,
    split_targets,
    text_groups,
)
from tests.support.shorthand import each_line

WEIGHTS = st.lists(st.integers(1, 12), max_size=30).map(
    lambda weights: np.array(weights, np.int64)
)
SHARES = st.lists(
    st.sampled_from([0.0, 0.01, 0.1, 0.3, 0.5, 2.0]), min_size=3, max_size=3
).filter(any)
DRAWS = st.lists(st.floats(0, 1, exclude_max=True), max_size=30).map(np.array)


@given(st.integers(0, 500), SHARES, st.integers(0, 9))
def test_targets(total, shares, groups):
    groups = min(groups, total)
    targets = split_targets(total, shares, groups)
    assert sum(targets) == total
    for target, share in zip(targets, shares, strict=True):
        assert abs(target - total * share / sum(shares)) < 1 + 2 * (groups >= 3)
        assert target == 0 if share == 0 else target > 0 or groups < 3


def sizes_of(splits, weights):
    return [int(weights[splits == split].sum()) for split in range(3)]


@given(WEIGHTS, SHARES, st.randoms(use_true_random=False))
def test_filled_splits_are_as_large_as_whole_groups_allow(weights, shares, random):
    order = np.arange(len(weights))
    random.shuffle(order)
    targets = split_targets(int(weights.sum()), shares, len(weights))
    splits = fill_splits(order, weights, targets)
    assert (splits != NOWHERE).all()
    largest = max(range(3), key=lambda split: (targets[split], -split))
    sizes = sizes_of(splits, weights)
    for split in {0, 1, 2} - {largest}:
        lightest_left = weights[splits == largest].min(initial=10**6)
        if targets[split] == 0:
            assert sizes[split] == 0
        elif sizes[split] <= targets[split]:  # no group of the largest split fits
            assert (
                lightest_left > targets[split] - sizes[split]
                or (splits == largest).sum() == 1
            )
        else:  # the only group of the split, since none was light enough
            assert (splits == split).sum() == 1
    if len(weights) >= 3:
        assert all(
            size > 0 or share == 0 for size, share in zip(sizes, shares, strict=True)
        )


@given(WEIGHTS, st.lists(st.integers(0, 40), min_size=3, max_size=3))
def test_exact_splits_reach_their_targets_or_use_all_groups(weights, targets):
    splits = fill_splits(np.arange(len(weights)), weights, targets, exact=True)
    for split, size in enumerate(sizes_of(splits, weights)):
        lightest = weights[splits == split].min(initial=10**6)
        assert (
            size >= targets[split] or not (splits == NOWHERE).any() or len(weights) == 0
        )
        assert size <= targets[split] or size - targets[split] < lightest + max(weights)
        assert targets[split] > 0 or size == 0


@each_line("""
    weights, targets, expected
    1 1 1 1 1 1 1 1 1 1 | 8 1 1 | 2 1 0 0 0 0 0 0 0 0
    # the first doesn't fit
    5 1 1 1 1 1 | 6 2 2 | 0 2 2 1 1 0
    # no wanted split is empty
    9 8 7 | 22 1 1 | 0 1 2
    3 3 1 | 3 2 2 | 1 0 2
    4 4 4 | 0 0 12 | 2 2 2
    7 | 3 2 2 | 0
    | 0 0 0 |
""")
def test_smallest_splits_are_filled_first(weights, targets, expected):
    heavy = np.array(weights.split(), np.int64)
    splits = fill_splits(np.arange(len(heavy)), heavy, [*map(int, targets.split())])
    assert splits.tolist() == [*map(int, expected.split())]


@given(DRAWS, SHARES)
def test_a_draw_decides_alone(draws, shares):
    splits = draw_splits(draws, shares).tolist()
    assert splits == [
        int(draw_splits(draws[[place]], shares)[0]) for place in range(len(draws))
    ]
    assert all(shares[split] > 0 for split in splits)


def test_draws_follow_the_shares():
    draws = np.arange(0, 1, 0.001)
    assert Counter(draw_splits(draws, (0.5, 0, 0.2, 0.3)).tolist()) == {
        0: 500,
        2: 200,
        3: 300,
    }


SENTENCES = st.lists(
    st.text(st.sampled_from("ab A.Ｂ"), min_size=1, max_size=4), max_size=20
)


@given(SENTENCES)
def test_same_texts_are_one_group(texts):
    groups = text_groups(texts).tolist()
    keys = [" ".join(text.lower().replace("Ｂ".lower(), "b").split()) for text in texts]
    for one, key in enumerate(keys):
        assert groups[one] == groups[keys.index(key)] or "." in key


def test_groups_of_texts_name_their_first_member():
    long = " ".join(f"word{number}" for number in range(40))
    texts = [
        "Ｔea  is hot.",
        long,
        "other",
        "tea is HOT",
        long + " indeed",
        "tea is not hot",
        "?",
        "!",
    ]
    assert text_groups(texts).tolist() == [0, 1, 2, 0, 1, 5, 6, 7]
    assert text_groups([]).tolist() == []
