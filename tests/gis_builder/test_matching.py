"""Negatives whose dates don't give them away."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gis_builder.pairing.dataset import make_rows
from gis_builder.pairing.sampler import Timeline, WantedGaps, mismatch, opening_times
from gis_builder.store.records import DuplicateCluster, IssueRef, IssueText
from pairkit.similarity.measures import gap_auc

from .pair_material import cluster, ref, text_of
from .test_negatives import draw, everything, use

DAY = 86_400


def at(seconds: int) -> str:
    return (datetime(2010, 1, 1) + timedelta(seconds=seconds)).isoformat() + "Z"


def years(
    clusters: int, singles: int
) -> tuple[list[DuplicateCluster], list[IssueRef], dict[IssueRef, IssueText]]:
    """Clusters of two that were opened within days of each other, over five years, and single issues."""
    chosen = random.Random(7)
    texts: dict[IssueRef, IssueText] = {}
    for k in range(clusters):
        start = chosen.randrange(5 * 360 * DAY)
        for place, late in enumerate((0, int(chosen.expovariate(1 / (20 * DAY))))):
            issue = ref(2 * k + 1 + place)
            texts[issue] = replace(text_of(issue), created_at=at(start + late))
    for number in range(2 * clusters + 1, 2 * clusters + singles + 1):
        texts[ref(number)] = replace(text_of(ref(number)), created_at=at(chosen.randrange(5 * 360 * DAY)))
    return [cluster(2 * k + 1, 2 * k + 2) for k in range(clusters)], list(texts), texts


@pytest.mark.parametrize("kind", ["random", "hard", "mixed"])
def test_gaps_of_negatives_are_those_of_positives(kind: str) -> None:
    clusters, issues, texts = years(150, 100)

    def auc(match: str) -> float:
        splits, made = draw(clusters, issues, texts, negatives=kind, match=match)
        assert not any(made.missing.values())
        assert {s: len(p) for s, p in made.pairs.items()} == splits.negatives_wanted
        positives = list(chain.from_iterable(splits.positives.values()))
        return gap_auc(make_rows(positives, everything(made), texts, 0)) or 0.0

    assert auc("none") > 0.85
    assert 0.4 <= auc("time") <= 0.6


def test_one_text_alone_still_says_little() -> None:
    clusters, issues, texts = years(150, 100)
    splits, made = draw(clusters, issues, texts, sizes="1,0,0")
    positive, negative = use(list(chain(*splits.positives.values()))), use(everything(made))
    differences = [abs(positive[issue] - negative[issue]) for issue in positive]
    assert sum(differences) / len(differences) < 0.15
    assert made.with_single == 0


def test_matching_is_decided_by_the_seed() -> None:
    clusters, issues, texts = years(60, 20)
    one, other, third = (
        draw(c, i, texts, negatives="mixed", seed=seed)[1]
        for c, i, seed in ((clusters, issues, 1), (clusters[::-1], issues[::-1], 1), (clusters, issues, 2))
    )
    assert one.pairs == other.pairs
    assert one.pairs != third.pairs


@given(
    st.lists(st.integers(0, 10**8), min_size=2, max_size=30),
    st.integers(0, 10**8),
    st.integers(0, 29),
)
def test_the_timeline_knows_the_nearest_gap(times: list[int], gap: int, anchor: int) -> None:
    refs = [ref(number + 1) for number in range(len(times))]
    texts = {r: replace(text_of(r), created_at=at(time)) for r, time in zip(refs, times, strict=True)}
    timeline, one = Timeline(opening_times(texts, refs), refs), refs[anchor % len(refs)]
    found = list(timeline.near(one, gap))
    assert sorted(other for _, other in found) == sorted(set(refs) - {one})
    assert [unlike for unlike, _ in found] == sorted(
        mismatch(timeline.gap(one, other), gap) for other in refs if other != one
    )
    assert list(islice(timeline.near(one, gap), 1)) == found[:1]


def test_the_gaps_that_fit_fewest_issues_come_first() -> None:
    assert WantedGaps([5, 1, 4, 2, 3], 5).hardest_first() == [1, 5, 2, 4, 3]
    assert WantedGaps([1, 2, 3, 4], 4).hardest_first() == [1, 4, 2, 3]


@given(st.lists(st.integers(0, 10**9), min_size=1), st.integers(1, 50))
def test_wanted_gaps_are_spread_as_the_positives(gaps: list[int], count: int) -> None:
    wanted = WantedGaps(gaps, count)
    assert len(wanted) == count
    assert set(wanted.hardest_first()) <= set(gaps)
    if count == len(gaps):
        assert sorted(wanted.hardest_first()) == sorted(gaps)
    for gap in wanted.hardest_first():
        assert wanted.nearest(gap) == gap
        wanted.take(gap)
    assert not wanted
    assert wanted.nearest(1.0) is None
