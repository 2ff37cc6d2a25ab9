"""Clusters, positives, and splits of whole groups in the requested sizes."""

import random
from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gis_builder.pairing.positives import find_clusters, make_positives
from gis_builder.pairing.split import (
    RefTable,
    group_near_duplicates,
    split_issues,
)
from gis_builder.settings import PAPER_RATIO, BuildSettings, PairSettings
from gis_builder.store.decoding import MAX_NUMBER
from gis_builder.store.issue_records import IssueRef, Relation, Verdict, VerdictOutcome
from tests.support.shorthand import config_error, each_line, raises, table

from .pair_material import cluster, grounds, ref, text_of, texts_of, tracker


def positives_of(clusters, issues):
    return make_positives(clusters, texts_of(*issues), {}, PairSettings(), 0).pairs


def split(clusters, issues, sizes=None, ties=(), ratio=1.0, seed=0):
    return split_issues(
        positives_of(clusters, issues),
        clusters,
        issues,
        ties,
        BuildSettings(split={"sizes": sizes}, pair={"ratio": ratio}, seed=seed),
    )


def numbers(drawn):
    """The numbers of the two issues of each pair."""
    return [(pair.first.number, pair.second.number) for pair in drawn]


def sizes_of(splits):
    return {name: len(pairs) for name, pairs in splits.positives.items()}


@each_line("""
    clusters, sizes, expected
    100 | 0.8,0.1,0.1 | train 80 validation 10 test 10
    # the largest remainders round up
    7 | 0.5,0.25,0.25 | train 3 validation 2 test 2
    11 | 0.75,0.15,0.1 | train 8 validation 2 test 1
    # no split is empty
    5 | 0.9,0.05,0.05 | train 3 validation 1 test 1
    3 | | train 1 validation 1 test 1
    3 | 1,0,0 | train 3
    20 | 0.9,0,0.1 | train 18 test 2
    100 | 160,20,20 | train 80 validation 10 test 10
""")
def test_sizes(clusters, sizes, expected):
    found = sizes_of(split(*tracker(int(clusters)), sizes or None))
    assert " ".join(f"{name} {count}" for name, count in found.items()) == expected


def test_an_impossible_size_names_the_largest_possible_ones():
    with config_error(r"needs 30 positives, but there are 20; .* are 32,4,4$"):
        split(*tracker(20), "48,6,6")


def test_the_papers_counts():
    clusters, issues = tracker(11100)
    splits = split(clusters, issues, "18565,1547,1548", ratio=PAPER_RATIO)
    rows = {
        name: len(pairs) + splits.negatives_wanted[name]
        for name, pairs in splits.positives.items()
    }
    assert rows == {"train": 18565, "validation": 1547, "test": 1548}
    assert {(drop.label, drop.reason) for drop in splits.dropped} == {
        (1, "beyond_requested_size")
    }
    assert len(splits.dropped) == 11100 - sum(sizes_of(splits).values())


def test_clusters_that_do_not_fit_are_trimmed_or_refused():
    issues = [ref(n) for n in range(1, 12)]
    large = cluster(*range(1, 12))  # ten pairs in one group
    splits = split([large], issues, "8,0,0")
    assert sizes_of(splits) == {"train": 4}
    assert len(splits.dropped) == 6
    with config_error("whole clusters give"):
        split([large], issues, "6,2,2")


def test_repositories_are_spread_evenly():
    parts = [tracker(40, repo=f"o/{name}") for name in "abcde"]
    clusters = [c for part, _ in parts for c in part]
    issues = [i for _, part in parts for i in part]
    splits = split(clusters, issues, "0.8,0.1,0.1")
    for pairs, expected in (
        (splits.positives["train"], 32),
        (splits.positives["test"], 4),
    ):
        by_repo = Counter(pair.first.repo for pair in pairs)
        assert all(abs(count - expected) <= 1 for count in by_repo.values())


@settings(max_examples=40)
@given(
    st.lists(st.integers(2, 6), min_size=1, max_size=25),
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=8),
    st.integers(0, 2**40),
)
def test_groups_are_never_divided(members, tied, seed):
    clusters, number = [], 1
    for size in members:
        clusters.append(cluster(*range(number, number + size)))
        number += size
    issues = [ref(n) for n in range(1, number + 20)]
    ties = tuple((issues[a % len(issues)], issues[b % len(issues)]) for a, b in tied)
    splits = split(clusters, issues, ties=ties, seed=seed)
    for together in [*(c.members for c in clusters), *ties]:
        assert len({splits.of.get(issue) for issue in together}) == 1
        assert len({splits.group[issue] for issue in together}) == 1
    assert sum(sizes_of(splits).values()) == sum(size - 1 for size in members)
    for name, pairs in splits.positives.items():
        assert all(
            splits.of[pair.first] == splits.of[pair.second] == name for pair in pairs
        )


def test_the_order_of_input_does_not_matter_and_the_seed_does():
    clusters, issues = tracker(60, singles=60)
    shuffled, mixed = clusters[:], issues[:]
    random.Random(1).shuffle(shuffled)
    random.Random(2).shuffle(mixed)
    assert split(clusters, issues).of == split(shuffled, mixed).of
    assert split(clusters, issues).of != split(clusters, issues, seed=1).of


def test_more_data_moves_few_issues():
    clusters, issues = tracker(300, singles=300)
    before = split(clusters, issues).of
    more = [*clusters, cluster(9001, 9002)]
    after = split(more, [*issues, ref(9001), ref(9002)]).of
    moved = sum(before[issue] != after[issue] for issue in issues)
    assert moved <= 6


def test_near_identical_texts_are_tied_across_repositories():
    texts = {issue: text_of(issue) for issue in (ref(1), ref(2), ref(3), ref(1, "p/q"))}
    texts[ref(3)] = replace(texts[ref(3)], text=texts[ref(1)].text + " again")
    texts[ref(1, "p/q")] = replace(texts[ref(1, "p/q")], text=texts[ref(1)].text)
    assert group_near_duplicates(texts, 0.8) == [[ref(1), ref(3), ref(1, "p/q")]]
    assert group_near_duplicates({}, 0.8) == []


# The order differs in lower case.
REFS = st.builds(
    IssueRef,
    st.sampled_from(["a/b", "A/b", "a/b-", "ä/ö", "z/z"]),
    st.one_of(st.integers(1, 20), st.integers(1, MAX_NUMBER)),
)


@given(st.lists(REFS, max_size=40))
def test_a_table_of_references_is_sorted(refs):
    table = RefTable(refs)
    expected = sorted(set(refs))
    assert list(table.at(np.arange(len(table)))) == expected
    assert table.indices(refs).tolist() == [expected.index(ref) for ref in refs]
    assert table.repos == sorted({ref.repo for ref in refs})
    assert [table.repos[rank] for rank in table.repo_at(np.arange(len(table)))] == [
        r.repo for r in expected
    ]
    for repo in {"a/b", "z/z", "none/here"}:
        assert list(table.at(table.of_repo(repo))) == [
            r for r in expected if r.repo == repo
        ]


def test_each_edge_is_a_pair_with_its_grounds():
    chain = cluster(1, 5, 9, edges=((5, 1), (9, 5)))
    grounds_of = {(ref(5), ref(1)): grounds(ref(5))}
    positives = make_positives(
        [chain], texts_of(ref(1), ref(5), ref(9)), grounds_of, PairSettings(), 0
    )
    assert numbers(positives.pairs) == [(5, 1), (9, 5)]
    assert {(p.label, p.cluster) for p in positives.pairs} == {(1, "o/n#1")}
    assert [p.grounds for p in positives.pairs] == [grounds(ref(5)), None]
    assert positives.dropped == []


def test_two_issues_are_paired_once():
    cycle = cluster(1, 2, edges=((1, 2), (2, 1)))
    positives = make_positives([cycle], texts_of(ref(1), ref(2)), {}, PairSettings(), 0)
    assert len(positives.pairs) == 1
    assert [drop.reason for drop in positives.dropped] == ["repeated"]


def test_unusable_texts_drop_the_pair_with_a_reason():
    texts = texts_of(ref(1), ref(2))
    texts.rejected[ref(3)] = "text_too_short"
    texts.usable[ref(5)] = replace(text_of(ref(5)), text=text_of(ref(1)).text)
    positives = make_positives([cluster(1, 2, 3, 4, 5)], texts, {}, PairSettings(), 0)
    assert [pair.first.number for pair in positives.pairs] == [2]
    dropped = {drop.first.number: drop.reason for drop in positives.dropped}
    assert dropped == {3: "text_too_short", 4: "not_fetched", 5: "same_text"}


def test_all_within_cluster_with_a_cap_keeps_the_edges():
    def positives(**cap):
        pairing = PairSettings(all_within_cluster=True, **cap)
        return make_positives([six], texts_of(*six.members), {}, pairing, 0)

    six = cluster(*range(1, 7))
    assert len(positives().pairs) == 15
    capped = positives(cluster_cap=7)
    assert len(capped.pairs) == 7
    assert {(n, 1) for n in range(2, 7)} <= {*numbers(capped.pairs)}
    assert Counter(drop.reason for drop in capped.dropped) == {"cluster_cap": 8}


def test_only_selected_relations_make_pairs():
    """1 ← 2 duplicate, 2 ← 3 superseded, 3 ← 4 duplicate: an excluded edge separates two pairs."""
    chain = cluster(1, 2, 3, 4, edges=((2, 1), (3, 2), (4, 3)))
    grounds_of = {(ref(2), ref(1)): grounds(ref(2)), (ref(4), ref(3)): grounds(ref(4))}
    grounds_of[ref(3), ref(2)] = grounds(ref(3), Relation.SUPERSEDED)
    texts = texts_of(*map(ref, range(1, 5)))

    def positives(**fields):
        pairing = PairSettings(**fields)
        return make_positives([chain], texts, grounds_of, pairing, 0)

    edges_only = positives()
    dropped = [(d.first.number, d.reason) for d in edges_only.dropped]
    assert dropped == [(3, "relation_superseded")]
    all_pairs = positives(all_within_cluster=True)
    assert numbers(edges_only.pairs) == numbers(all_pairs.pairs) == [(2, 1), (4, 3)]
    assert Counter(d.reason for d in all_pairs.dropped) == {
        "relation_superseded": 1,
        "relation_indirect": 3,
    }
    both = "superseded, duplicate"
    assert len(positives(relations=both, all_within_cluster=True).pairs) == 6
    parsed = PairSettings(relations=both).relations
    assert parsed == (Relation.DUPLICATE, Relation.SUPERSEDED)


def test_invalid_relations():
    assert PairSettings(relations="all").relations == tuple(Relation)
    with raises(
        ValueError,
        match="unknown relation 'supersedes'; expected all, or some of duplicate",
    ):
        PairSettings(relations="duplicate,supersedes")
    with raises(ValueError, match="at least 1"):
        PairSettings(relations=())


def duplicate(number, *targets):
    outcome = VerdictOutcome.DUPLICATE
    return Verdict(ref(number), outcome, tuple(map(ref, targets)), 0.9, "test")


@table("""
    targets, expected
    # a pair, chains, a star, a cycle and two clusters
    {2: [1]} | [('o/n#1', [1, 2], 1)]
    {1: [2], 2: [3]} | [('o/n#1', [1, 2, 3], 3)]
    {5: [9], 7: [9]} | [('o/n#5', [5, 7, 9], 9)]
    {1: [2], 2: [1]} | [('o/n#1', [1, 2], 1)]
    {3: [1, 2]} | [('o/n#1', [1, 2, 3], 1)]
    {2: [1], 4: [3]} | [('o/n#1', [1, 2], 1), ('o/n#3', [3, 4], 3)]
    # an issue is not a duplicate of itself
    {3: [3], 4: []} | []
""")
def test_clusters(targets, expected):
    verdicts = [duplicate(number, *others) for number, others in targets.items()]
    assert [
        (
            cluster.id,
            [member.number for member in cluster.members],
            cluster.canonical.number,
        )
        for cluster in find_clusters(verdicts)
    ] == expected


edges = st.lists(
    st.tuples(st.integers(1, 12), st.lists(st.integers(1, 12), max_size=3)), max_size=12
)


@given(edges, st.randoms(use_true_random=False))
def test_clusters_do_not_depend_on_the_order_of_verdicts(pairs, random):
    verdicts = [duplicate(number, *targets) for number, targets in pairs]
    shuffled = list(verdicts)
    random.shuffle(shuffled)
    assert find_clusters(shuffled) == find_clusters(verdicts)
    assert find_clusters([*verdicts, *shuffled]) == find_clusters(verdicts)
