"""Negatives with the time gaps of positives."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gis_builder.pairing.pair_folder import make_rows
from gis_builder.pairing.sampler import Timeline, WantedGaps, mismatch, opening_times
from gis_builder.store.issue_records import DuplicateCluster, IssueRef, IssueText
from pairkit.similarity.measures import gap_auc

from .pair_material import cluster, ref, text_of
from .test_negatives import all_pairs, draw

DAY = 86_400


def at(seconds: int) -> str:
    return (datetime(2010, 1, 1) + timedelta(seconds=seconds)).isoformat() + "Z"


def years(
    clusters: int, singles: int
) -> tuple[list[DuplicateCluster], list[IssueRef], dict[IssueRef, IssueText]]:
    """Clusters of two issues opened within days of each other, and single issues, over five years."""
    generator = random.Random(7)
    texts: dict[IssueRef, IssueText] = {}
    for k in range(clusters):
        start = generator.randrange(5 * 360 * DAY)
        for index, delay in enumerate((0, int(generator.expovariate(1 / (20 * DAY))))):
            issue = ref(2 * k + 1 + index)
            texts[issue] = replace(text_of(issue), created_at=at(start + delay))
    for number in range(2 * clusters + 1, 2 * clusters + singles + 1):
        texts[ref(number)] = replace(text_of(ref(number)), created_at=at(generator.randrange(5 * 360 * DAY)))
    return [cluster(2 * k + 1, 2 * k + 2) for k in range(clusters)], list(texts), texts


@pytest.mark.parametrize("kind", ["random", "hard", "mixed"])
def test_negatives_have_the_gaps_of_positives(kind: str) -> None:
    clusters, issues, texts = years(150, 100)

    def auc(match: str) -> float:
        splits, negatives = draw(clusters, issues, texts, negatives=kind, match=match)
        assert not any(negatives.missing.values())
        assert {s: len(p) for s, p in negatives.pairs.items()} == splits.negatives_wanted
        positives = list(chain.from_iterable(splits.positives.values()))
        return gap_auc(make_rows(positives, all_pairs(negatives), texts, 0)) or 0.0

    assert auc("none") > 0.85
    assert 0.4 <= auc("time") <= 0.6


@given(st.lists(st.integers(0, 10**8), min_size=2, max_size=30), st.integers(0, 10**8), st.integers(0, 29))
def test_the_timeline_sorts_by_mismatch(times: list[int], gap: int, anchor: int) -> None:
    refs = [ref(number + 1) for number in range(len(times))]
    texts = {r: replace(text_of(r), created_at=at(time)) for r, time in zip(refs, times, strict=True)}
    timeline, one = Timeline(opening_times(texts, refs), refs), refs[anchor % len(refs)]
    near = list(timeline.near(one, gap))
    assert sorted(other for _, other in near) == sorted(set(refs) - {one})
    assert [difference for difference, _ in near] == sorted(
        mismatch(timeline.gap(one, other), gap) for other in refs if other != one
    )
    assert list(islice(timeline.near(one, gap), 1)) == near[:1]


def test_extreme_gaps_come_first() -> None:
    assert WantedGaps([5, 1, 4, 2, 3], 5).hardest_first() == [1, 5, 2, 4, 3]
    assert WantedGaps([1, 2, 3, 4], 4).hardest_first() == [1, 4, 2, 3]


@given(st.lists(st.integers(0, 10**9), min_size=1), st.integers(1, 50))
def test_wanted_gaps_are_quantiles_of_the_positives(gaps: list[int], count: int) -> None:
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
