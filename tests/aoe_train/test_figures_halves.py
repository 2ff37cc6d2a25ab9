"""Real against imaginary halves: the zone, the distances, and what t-SNE needs."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy.spatial import distance

from aoe_train._figures.distances import distances
from aoe_train._figures.halves import check_even, halves
from aoe_train._figures.pairs import Gold, Scored
from aoe_train._figures.tsne import Tsne, to_plane
from aoe_train._figures.zone import Rule, Zone
from pairkit.errors import ConfigError, DataError


def random_scored(count: int = 40, dim: int = 8) -> Scored:
    """Pairs of vectors that are alike, graded from 0 to 5."""
    draw = np.random.default_rng(0)
    first = draw.normal(size=(count, dim))
    vectors = np.concatenate([first, first + 0.3 * draw.normal(size=(count, dim))]).astype(np.float32)
    pairs = np.stack([np.arange(count), np.arange(count) + count], axis=1)
    labels = np.linspace(0, 5, count)
    texts = [f"text {number}" for number in range(2 * count)]
    gold = Gold("pairs", texts[:count], texts[count:], labels)
    return Scored(gold, vectors, pairs, np.linspace(-1, 1, count))


@pytest.mark.parametrize(
    ("rule", "above", "expected"),
    [
        ("gold", 0.95, [3, 5]),  # 4.8 of 5, as in the paper's example, but not 4.75
        ("gold", 0.9, [1, 3, 5]),
        ("cosine", 0.95, [0, 2]),
        ("all", 0.95, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_the_zone(rule: Rule, above: float, expected: list[int]) -> None:
    labels, cosines = np.array([2.0, 4.75, 3.0, 5.0, 0.0, 4.8]), np.array([0.96, 0.95, -0.97, 0.2, 0.0, 0.5])
    gold = Gold("pairs", [""] * 6, [""] * 6, labels)
    one = Scored(gold, np.zeros((1, 2)), np.zeros((6, 2), int), cosines)
    assert Zone(rule, above).members(one).tolist() == expected


def test_positives_are_the_zone_of_binary_labels() -> None:
    gold = Gold("pairs", [""] * 3, [""] * 3, np.array([1.0, 0.0, 1.0]))
    assert Zone().members(Scored(gold, np.zeros((1, 2)), np.zeros((3, 2), int), np.zeros(3))).tolist() == [
        0,
        2,
    ]


def test_distances_half_by_half() -> None:
    one = random_scored()
    real, imaginary = np.split(one.vectors.astype(float), 2, axis=1)
    found = distances(real, imaginary, one.pairs)
    expected = [distance.euclidean(real[i], real[j]) for i, j in one.pairs]
    assert found.real.values == pytest.approx(expected)
    assert found.real.mean == pytest.approx(np.mean(expected))
    others = [distance.euclidean(imaginary[i], imaginary[j]) for i, j in one.pairs]
    assert found.imaginary_larger == np.mean(np.array(others) > np.array(expected))
    assert np.trapezoid(found.real.density.y, found.real.density.x) == pytest.approx(1, abs=0.02)


def test_texts_that_coincide_have_a_place_on_a_logarithmic_axis() -> None:
    points = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 0.0]])
    found = distances(points, 10 * points, np.array([[0, 1], [0, 2]]), logarithmic=True)
    assert found.real.values.tolist() == [5, 0]
    assert (found.real.density.x[0], found.real.density.x[-1]) == (-5, 2)  # 50 / 1,000,000 to 100
    nothing = distances(points[:1], points[:1], np.array([[0, 0]]), logarithmic=True)
    assert np.isfinite(nothing.real.density.y).all()


def test_the_figures_numbers_are_of_the_zone_and_come_out_again() -> None:
    one, zone, tsne = random_scored(), Zone("gold", 0.5), Tsne(perplexity=5, seed=1)
    found = halves(one, zone, tsne, model="M")
    assert (one.gold.labels[found.numbers] > 2.5).all()
    assert found.in_zone == len(found.numbers) == 20
    assert found.real.shape == found.imaginary.shape == (40, 2)
    assert len({sample.pair for sample in found.samples}) == 5
    for sample in found.samples:
        row = found.numbers[sample.pair]
        assert (sample.text1, sample.gold) == (one.gold.text1[row], one.gold.labels[row])
        i, j = found.pairs[sample.pair]
        between = distance.euclidean(found.imaginary[i], found.imaginary[j])
        assert found.plane.imaginary.values[sample.pair] == pytest.approx(between)
        halved = one.vectors[one.pairs[row], 4:].astype(float)
        assert found.original.imaginary.values[sample.pair] == pytest.approx(distance.euclidean(*halved))
    again = halves(one, zone, tsne, model="M")
    assert (again.real == found.real).all()
    assert again.samples == found.samples


def test_too_many_pairs_are_thinned_by_the_seed() -> None:
    one, zone = random_scored(), Zone("all", most=20)
    first, same, other = (halves(one, zone, Tsne(5, seed), model="M") for seed in (0, 0, 1))
    assert (len(first.numbers), first.in_zone) == (20, 40)
    assert first.numbers.tolist() == same.numbers.tolist() != other.numbers.tolist()


def test_fewer_pairs_than_tsne_needs() -> None:
    said = (
        r"pairs: 2 pairs \(4 texts\) with gold score / highest > 0\.95; t-SNE at perplexity 30 needs 92 texts"
        r" or more: lower --above, lower --perplexity, or give --zone all"
    )
    with pytest.raises(DataError, match=said):
        halves(random_scored(), Zone(), Tsne(), model="M")


def test_an_odd_dimension_has_no_halves() -> None:
    with pytest.raises(ConfigError, match=r"M: its vectors have 7 numbers, an odd dimension; .* even one"):
        halves(random_scored(dim=7), Zone("all"), Tsne(5), model="M")
    check_even(8, "M")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Zone("some"), "--zone some: expected gold, cosine, all"),  # type: ignore[arg-type]
        (lambda: Zone(above=1), "--above 1: expected 0 or more and less than 1"),
        (lambda: Tsne(perplexity=float("nan")), "--perplexity nan: expected 2 or more"),
        (lambda: Tsne(perplexity=float("inf")), "--perplexity inf: expected 2 or more"),
    ],
    ids=["zone", "above", "perplexity", "endless"],
)
def test_settings_that_mean_nothing(make: type, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()


def test_without_scikit_learn_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.manifold", None)
    with pytest.raises(ConfigError, match=r"t-SNE needs scikit-learn: pip install 'aoe-toolkit\[figures\]'"):
        to_plane(np.zeros((4, 2)), Tsne())
