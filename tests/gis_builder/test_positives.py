from __future__ import annotations

from collections import Counter
from dataclasses import replace

from gis_builder.config import PairSettings
from gis_builder.pairs.positives import make_positives

from .pair_material import cluster, evidence, ref, text_of, texts_of


def test_each_edge_is_a_pair_with_its_evidence() -> None:
    found = cluster(1, 5, 9, edges=((5, 1), (9, 5)))
    told = {(ref(5), ref(1)): evidence(ref(5))}
    made = make_positives([found], texts_of(ref(1), ref(5), ref(9)), told, PairSettings(), 0)
    assert [(p.first.number, p.second.number, p.label, p.cluster) for p in made.pairs] == [
        (5, 1, 1, "o/n#1"),
        (9, 5, 1, "o/n#1"),
    ]
    assert [p.evidence for p in made.pairs] == [evidence(ref(5)), None]
    assert made.dropped == []


def test_two_issues_are_paired_once() -> None:
    found = cluster(1, 2, edges=((1, 2), (2, 1), (2, 2)))
    made = make_positives([found], texts_of(ref(1), ref(2)), {}, PairSettings(), 0)
    assert len(made.pairs) == 1
    assert Counter(drop.reason for drop in made.dropped) == {"repeated": 1, "self": 1}


def test_a_text_that_cannot_be_used_drops_the_pair_with_its_reason() -> None:
    texts = texts_of(ref(1), ref(2))
    texts.rejected[ref(3)] = "text_too_short"
    texts.usable[ref(5)] = replace(text_of(ref(5)), text=text_of(ref(1)).text)
    made = make_positives([cluster(1, 2, 3, 4, 5)], texts, {}, PairSettings(), 0)
    assert [pair.first.number for pair in made.pairs] == [2]
    assert {drop.first.number: drop.reason for drop in made.dropped} == {
        3: "text_too_short",
        4: "not_fetched",
        5: "same_text",
    }


def test_all_within_a_cluster_keeps_edges_and_a_cap() -> None:
    numbers = range(1, 7)
    texts = texts_of(*map(ref, numbers))
    everything = PairSettings(all_within_cluster=True)
    assert len(make_positives([cluster(*numbers)], texts, {}, everything, 0).pairs) == 15
    capped = make_positives(
        [cluster(*numbers)], texts, {}, PairSettings(all_within_cluster=True, cluster_cap=7), 0
    )
    assert len(capped.pairs) == 7
    assert {(n, 1) for n in range(2, 7)} <= {(p.first.number, p.second.number) for p in capped.pairs}
    assert Counter(drop.reason for drop in capped.dropped) == {"cluster_cap": 8}
