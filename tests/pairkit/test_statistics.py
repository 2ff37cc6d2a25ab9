from hypothesis import given
from hypothesis import strategies as st

from pairkit.base.system.seeded import in_proportion, in_turns, keyed_hash
from pairkit.reviews.agreement import Figure, cohen_kappa, krippendorff_alpha, wilson
from tests.support.shorthand import approx, table


@table("""
    right, n, low, high
    8 | 10 | 0.4902 | 0.9433
    0 | 10 | 0.0 | 0.2775
    10 | 10 | 0.7225 | 1.0
    1 | 1 | 0.2065 | 1.0
""")
def test_wilson(right, n, low, high):
    assert wilson(right, n) == approx((low, high), abs=1e-4)
    assert wilson(0, 0) is None


# Krippendorff's own example with missing data: four judges, twelve units.
_NOBODY = None
JUDGES = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _NOBODY, _NOBODY, _NOBODY],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _NOBODY, 3],
    [_NOBODY, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _NOBODY],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _NOBODY],
]


def test_alpha():
    units = [
        [answer for answer in unit if answer is not None]
        for unit in zip(*JUDGES, strict=True)
    ]
    assert krippendorff_alpha(units).value == approx(0.743, abs=5e-4)
    assert krippendorff_alpha(units, "interval").value == approx(0.849, abs=5e-4)
    low, high = krippendorff_alpha(units).interval or (0, 0)
    assert 0.3 < low < 0.743 < high <= 1
    assert krippendorff_alpha(units).n == 11  # the twelfth was judged by one alone


def test_interval_of_perfect_agreement():
    assert cohen_kappa([], []) == Figure(None, None, 0)
    # Wilson's bound for 50 of 50 is 0.9287: of 50 pairs 3.57 may be disagreements, by chance half of them are
    found = cohen_kappa([1] * 25 + [0] * 25, [1] * 25 + [0] * 25)
    assert found.value == 1
    assert found.interval == approx((1 - (1 - 0.92865) / 0.5, 1), abs=1e-4)
    low, high = krippendorff_alpha([[1, 1]] * 25 + [[0, 0]] * 25).interval or (0, 0)
    assert (low, high) == approx((0.8587, 1), abs=1e-3)
    few = cohen_kappa([5, 0, 4], [5, 0, 4], "interval").interval or (1, 1)
    assert few[0] < 0.95


def test_keyed_hash():
    assert keyed_hash(0, "split", "o/n#1") == 8697922999653496411
    assert keyed_hash(0, "a", "b") != keyed_hash(0, "ab")
    assert keyed_hash(0, "a") != keyed_hash(1, "a")


SIZES = st.dictionaries(st.text(max_size=3), st.integers(0, 30), max_size=14)


@given(SIZES, st.integers(0, 40))
def test_in_turns(sizes, total):
    dealt = in_turns(sizes, total)
    filled = {kind: size for kind, size in sizes.items() if size}
    assert set(dealt) == set(filled)
    assert sum(dealt.values()) == min(total, sum(filled.values()))
    unfilled = [places for kind, places in dealt.items() if places < filled[kind]]
    assert max(dealt.values(), default=0) <= min(unfilled, default=99) + 1


@given(SIZES, st.integers(0, 400), st.integers(0, 3))
def test_any_proportions(sizes, total, least):
    dealt = in_proportion(sizes, total, least)
    assert dealt.keys() == sizes.keys()
    assert sum(dealt.values()) == min(total, sum(sizes.values()))
    assert all(0 <= dealt[kind] <= size for kind, size in sizes.items())
    if total >= least * len(sizes):
        assert all(dealt[kind] >= min(least, size) for kind, size in sizes.items())
