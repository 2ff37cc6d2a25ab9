import random
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pairkit.similarity import jaccard_join
from pairkit.similarity.groups import Groups
from pairkit.similarity.jaccard_join import tied_sets
from tests.support.linear import assert_linear

THRESHOLDS = [0.05, 0.5, 2 / 3, 0.75, 0.8, 0.9, 1.0]


def hashes(elements):
    return np.unique(np.array([*elements], np.uint64) * np.uint64(0x9E3779B97F4A7C15))


def by_pairs(sets, threshold):
    groups = Groups(range(len(sets)))
    for one, other in combinations(range(len(sets)), 2):
        if len(sets[one] & sets[other]) / len(sets[one] | sets[other]) >= threshold:
            groups.join(one, other)
    return [groups.find(place) for place in range(len(sets))]


def joined(sets, threshold):
    labels = tied_sets([hashes(elements) for elements in sets], threshold).tolist()
    first = {}
    return [first.setdefault(label, place) for place, label in enumerate(labels)]


@st.composite
def families(draw):
    """Random sets, variants of a template, and sets with slots of few values."""
    count = draw(st.integers(2, 40))
    random_ = random.Random(draw(st.integers(0, 2**32)))
    size = draw(st.sampled_from([4, 12, 40]))
    kept, values = (
        draw(st.sampled_from([0.6, 0.85, 0.95, 1.0])),
        draw(st.integers(2, 6)),
    )
    kind = draw(st.sampled_from(["any", "template", "slots"]))
    found = []
    for _ in range(count):
        if kind == "any":
            found.append(set(random_.sample(range(size), random_.randint(1, size))))
            continue
        elements = {element for element in range(size) if random_.random() < kept}
        for slot in range(3 if kind == "slots" else 0):
            value = 1000 + 100 * slot + 10 * random_.randrange(values)
            elements |= {value, value + 1, value + 2}
        found.append(elements | {500 + random_.randrange(30)})
    return found


@settings(max_examples=60)
@given(
    sets=families(),
    threshold=st.sampled_from(THRESHOLDS),
    few=st.sampled_from([0, 2, 12]),
    product=st.sampled_from([0.0, 7e-11, 1.0]),
    entries=st.sampled_from([8, 1 << 22]),
)
# The last set has exactly the needed weight in common with others.
@example([{1}, {1, 9}, {1, 2}, {0, 1, 2, 9}], 0.5, 12, 1.0, 8)
def test_groups_equal_those_of_all_pairs(sets, threshold, few, product, entries):
    with pytest.MonkeyPatch.context() as patch:  # so that every method is used
        patch.setattr(jaccard_join, "_FEW", few)
        patch.setattr(jaccard_join, "_SECONDS_PER_PRODUCT", product)
        patch.setattr(jaccard_join, "_BATCH_ENTRIES", entries)
        assert joined(sets, threshold) == by_pairs(sets, threshold)


def test_pair_at_the_threshold():
    assert joined([], 0.8) == []
    # Four of five elements; 17 of 20.
    assert joined([{1, 2, 3, 4}, {1, 2, 3, 4, 5}, {9}], 0.8) == [0, 0, 2]
    assert joined([set(range(17)), set(range(20)), {99}], 0.85) == [0, 0, 2]
    assert joined([set(range(17)), set(range(20)), {99}], 0.8500001) == [0, 1, 2]


@pytest.mark.parametrize("own", [5, 12, 30])
def test_similar_sets_are_not_compared_pairwise(own):
    """A template of 100 elements plus own elements: above, just below and far below the threshold."""
    sets = [{*range(100), *range(1000 * n, 1000 * n + own)} for n in range(1, 8001)]
    assert len(set(joined(sets[:50], 0.8))) == (1 if own <= 12 else 50)
    given_ = [hashes(elements) for elements in sets]
    assert_linear(
        lambda some: tied_sets(some, 0.8), lambda size: given_[:size], len(given_)
    )
