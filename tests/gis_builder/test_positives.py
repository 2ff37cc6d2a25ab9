from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gis_builder.pairing.positives import find_clusters, make_positives
from gis_builder.settings import PairSettings
from gis_builder.store.issue_records import Relation, Verdict, VerdictOutcome

from .pair_material import cluster, grounds, ref, text_of, texts_of


def test_each_edge_is_a_pair_with_its_grounds() -> None:
    chain = cluster(1, 5, 9, edges=((5, 1), (9, 5)))
    grounds_of = {(ref(5), ref(1)): grounds(ref(5))}
    positives = make_positives([chain], texts_of(ref(1), ref(5), ref(9)), grounds_of, PairSettings(), 0)
    assert [(p.first.number, p.second.number, p.label, p.cluster) for p in positives.pairs] == [
        (5, 1, 1, "o/n#1"),
        (9, 5, 1, "o/n#1"),
    ]
    assert [p.grounds for p in positives.pairs] == [grounds(ref(5)), None]
    assert positives.dropped == []


def test_two_issues_are_paired_once() -> None:
    cycle = cluster(1, 2, edges=((1, 2), (2, 1), (2, 2)))
    positives = make_positives([cycle], texts_of(ref(1), ref(2)), {}, PairSettings(), 0)
    assert len(positives.pairs) == 1
    assert Counter(drop.reason for drop in positives.dropped) == {"repeated": 1, "self": 1}


def test_unusable_texts_drop_the_pair_with_a_reason() -> None:
    texts = texts_of(ref(1), ref(2))
    texts.rejected[ref(3)] = "text_too_short"
    texts.usable[ref(5)] = replace(text_of(ref(5)), text=text_of(ref(1)).text)
    positives = make_positives([cluster(1, 2, 3, 4, 5)], texts, {}, PairSettings(), 0)
    assert [pair.first.number for pair in positives.pairs] == [2]
    assert {drop.first.number: drop.reason for drop in positives.dropped} == {
        3: "text_too_short",
        4: "not_fetched",
        5: "same_text",
    }


def test_all_within_cluster_with_a_cap_keeps_the_edges() -> None:
    numbers = range(1, 7)
    texts = texts_of(*map(ref, numbers))
    all_pairs = PairSettings(all_within_cluster=True)
    assert len(make_positives([cluster(*numbers)], texts, {}, all_pairs, 0).pairs) == 15
    capped = make_positives(
        [cluster(*numbers)], texts, {}, PairSettings(all_within_cluster=True, cluster_cap=7), 0
    )
    assert len(capped.pairs) == 7
    assert {(n, 1) for n in range(2, 7)} <= {(p.first.number, p.second.number) for p in capped.pairs}
    assert Counter(drop.reason for drop in capped.dropped) == {"cluster_cap": 8}


def test_only_selected_relations_make_pairs() -> None:
    """1 ← 2 duplicate, 2 ← 3 superseded, 3 ← 4 duplicate: an excluded edge separates two pairs."""
    chain = cluster(1, 2, 3, 4, edges=((2, 1), (3, 2), (4, 3)))
    grounds_of = {(ref(2), ref(1)): grounds(ref(2)), (ref(4), ref(3)): grounds(ref(4))}
    grounds_of[ref(3), ref(2)] = grounds(ref(3), Relation.SUPERSEDED)
    texts = texts_of(*map(ref, range(1, 5)))
    positives = make_positives([chain], texts, grounds_of, PairSettings(), 0)
    assert [(p.first.number, p.second.number) for p in positives.pairs] == [(2, 1), (4, 3)]
    assert [(d.first.number, d.reason) for d in positives.dropped] == [(3, "relation_superseded")]
    all_pairs = make_positives([chain], texts, grounds_of, PairSettings(all_within_cluster=True), 0)
    assert [(p.first.number, p.second.number) for p in all_pairs.pairs] == [(2, 1), (4, 3)]
    assert Counter(d.reason for d in all_pairs.dropped) == {"relation_superseded": 1, "relation_indirect": 3}
    both = PairSettings(relations="superseded, duplicate", all_within_cluster=True)
    assert both.relations == (Relation.DUPLICATE, Relation.SUPERSEDED)
    assert len(make_positives([chain], texts, grounds_of, both, 0).pairs) == 6


def test_invalid_relations() -> None:
    assert PairSettings(relations="all").relations == tuple(Relation)
    with pytest.raises(
        ValueError, match="unknown relation 'supersedes'; expected all, or some of duplicate,same"
    ):
        PairSettings(relations="duplicate,supersedes")
    with pytest.raises(ValueError, match="at least 1"):
        PairSettings(relations=())


def duplicate(number: int, *targets: int, outcome: VerdictOutcome = VerdictOutcome.DUPLICATE) -> Verdict:
    return Verdict(ref(number), outcome, tuple(map(ref, targets)), 0.9, "test")


def numbers(*verdicts: Verdict) -> list[tuple[str, list[int], int]]:
    return [
        (cluster.id, [member.number for member in cluster.members], cluster.canonical.number)
        for cluster in find_clusters(verdicts)
    ]


def test_clusters_of_pairs_chains_stars_and_cycles() -> None:
    assert numbers(duplicate(2, 1)) == [("o/n#1", [1, 2], 1)]
    assert numbers(duplicate(1, 2), duplicate(2, 3)) == [("o/n#1", [1, 2, 3], 3)]
    assert numbers(duplicate(5, 9), duplicate(7, 9)) == [("o/n#5", [5, 7, 9], 9)]
    assert numbers(duplicate(1, 2), duplicate(2, 1)) == [("o/n#1", [1, 2], 1)]
    assert numbers(duplicate(3, 1, 2)) == [("o/n#1", [1, 2, 3], 1)]
    assert numbers(duplicate(2, 1), duplicate(4, 3)) == [("o/n#1", [1, 2], 1), ("o/n#3", [3, 4], 3)]


def test_only_duplicates_of_other_issues_count() -> None:
    assert numbers(duplicate(2, 1, outcome=VerdictOutcome.UNCERTAIN), duplicate(3, 3), duplicate(4)) == []


edges = st.lists(st.tuples(st.integers(1, 12), st.lists(st.integers(1, 12), max_size=3)), max_size=12)


@given(edges, st.randoms(use_true_random=False))
def test_clusters_do_not_depend_on_the_order_of_verdicts(
    pairs: list[tuple[int, list[int]]], random: object
) -> None:
    verdicts = [duplicate(number, *targets) for number, targets in pairs]
    shuffled = list(verdicts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert find_clusters(shuffled) == find_clusters(verdicts)
    assert find_clusters([*verdicts, *shuffled]) == find_clusters(verdicts)


@given(edges)
def test_clusters_are_disjoint_and_clustering_is_idempotent(pairs: list[tuple[int, list[int]]]) -> None:
    clusters = find_clusters([duplicate(number, *targets) for number, targets in pairs])
    members = [member for cluster in clusters for member in cluster.members]
    assert len(members) == len(set(members))
    assert all(len(cluster.members) > 1 and cluster.canonical in cluster.members for cluster in clusters)
    stars = [
        duplicate(member.number, cluster.canonical.number)
        for cluster in clusters
        for member in cluster.members
        if member != cluster.canonical
    ]
    assert [(c.id, c.members, c.canonical) for c in find_clusters(stars)] == [
        (c.id, c.members, c.canonical) for c in clusters
    ]
