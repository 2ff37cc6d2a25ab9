"""Negatives: which pairs are allowed, how often issues are used, their time gaps, and what is dropped."""

import random
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from gis_builder.pairing.build_pairs import mentions_of
from gis_builder.pairing.negatives import make_negatives
from gis_builder.pairing.pair_folder import make_rows
from gis_builder.pairing.positives import make_positives
from gis_builder.pairing.sampler import Timeline, WantedGaps
from gis_builder.pairing.split import split_issues
from gis_builder.settings import BuildSettings, PairSettings
from gis_builder.store.issue_records import DuplicateCluster, IssueRef, Relation
from pairkit.similarity.measures import gap_auc
from tests.support.shorthand import parametrize, values

from .detect_threads import said, thread
from .pair_material import cluster, grounds, ref, text_of, texts_of, tracker


def draw(
    clusters,
    issues,
    texts=None,
    linked=frozenset(),
    ties=(),
    sizes=None,
    seed=0,
    grounds_of=None,
    **fields,
):
    settings = PairSettings(**{"ratio": 1.0} | fields)
    usable = texts_of(*issues)
    usable.usable.update(texts or {})
    positives = make_positives(clusters, usable, grounds_of or {}, settings, seed)
    build = BuildSettings(split={"sizes": sizes}, pair=settings, seed=seed)
    splits = split_issues(positives.pairs, clusters, issues, ties, build)
    negatives = make_negatives(splits, clusters, usable.usable, linked, settings, seed)
    return splits, negatives


def all_pairs(negatives):
    return list(chain.from_iterable(negatives.pairs.values()))


def uses(pairs):
    return Counter(chain.from_iterable((pair.first, pair.second) for pair in pairs))


def change(texts, *numbers, form):
    """Put the text of each issue into a form."""
    for number in numbers:
        known = texts[ref(number)]
        texts[ref(number)] = replace(known, text=form.format(known.text))


BOTH = parametrize("match", ["time", "none"])


@BOTH
@parametrize("kind", ["random", "hard", "mixed"])
def test_negatives_are_allowed_pairs_in_the_requested_number(kind, match):
    parts = [tracker(60, singles=40, repo=f"o/{name}") for name in "abc"]
    clusters = [c for part, _ in parts for c in part]
    issues = [i for _, part in parts for i in part]
    splits, negatives = draw(clusters, issues, negatives=kind, match=match)
    assert negatives.missing == {"train": 0, "validation": 0, "test": 0}
    home = {member: c.id for c in clusters for member in c.members}
    seen = set()
    for split, pairs in negatives.pairs.items():
        assert len(pairs) == splits.negatives_wanted[split]
        for pair in pairs:
            assert pair.label == 0
            assert pair.first.repo == pair.second.repo
            assert splits.of[pair.first] == splits.of[pair.second] == split
            assert home.get(pair.first, 1) != home.get(pair.second, 2)
            assert frozenset((pair.first, pair.second)) not in seen
            seen.add(frozenset((pair.first, pair.second)))
    kinds = Counter(pair.negative_kind for pair in all_pairs(negatives))
    assert kinds.total() == 180
    assert abs(kinds["hard"] - {"random": 0, "hard": 180, "mixed": 90}[kind]) <= 5


@BOTH
@parametrize("kind", ["random", "hard"])
def test_issues_are_used_equally_often_for_both_labels(kind, match):
    clusters, issues = tracker(100, singles=200, size=3)
    splits, negatives = draw(clusters, issues, negatives=kind, match=match)
    positive, negative = (
        uses(list(chain(*splits.positives.values()))),
        uses(all_pairs(negatives)),
    )
    assert negatives.with_single == 0
    differences = [abs(positive[issue] - negative[issue]) for issue in positive]
    assert sum(differences) / len(differences) < 0.1
    assert max(differences) <= 2


@BOTH
def test_the_draw_depends_on_the_seed_not_on_the_order(match):
    clusters, issues = tracker(50, singles=10)
    _, one = draw(clusters, issues, negatives="mixed", match=match)
    _, other = draw(clusters[::-1], issues[::-1], negatives="mixed", match=match)
    _, third = draw(clusters, issues, negatives="mixed", match=match, seed=1)
    assert one.pairs == other.pairs
    assert one.pairs != third.pairs


@BOTH
def test_more_negatives_than_positives(match):
    clusters, issues = tracker(40)
    _, negatives = draw(clusters, issues, ratio=3.0, match=match)
    assert len(all_pairs(negatives)) == 120
    assert not any(negatives.missing.values())
    assert negatives.with_single == 0
    assert {3} <= {*uses(all_pairs(negatives)).values()} <= {2, 3, 4}


@BOTH
def test_a_single_cluster_needs_issues_without_duplicates(match):
    clusters, issues = tracker(1, singles=30)
    _, negatives = draw(clusters, issues, sizes="1,0,0", match=match)
    assert negatives.with_single == len(all_pairs(negatives)) == 1
    _, several = draw(clusters, issues, sizes="1,0,0", ratio=10.0, match=match)
    assert several.with_single == len({*all_pairs(several)}) == 10
    assert (
        max(n for issue, n in uses(all_pairs(several)).items() if issue.number > 2) <= 2
    )
    _, mixed = draw(*tracker(2, singles=30), sizes="1,0,0", ratio=5.0, match=match)
    assert mixed.with_single < len(all_pairs(mixed)) == 10
    _, none = draw(*tracker(1), sizes="1,0,0", match=match)
    assert none.missing == {"train": 1}


def test_other_repositories_replace_missing_negatives():
    small, small_issues = tracker(1, repo="o/a")
    large, large_issues = tracker(20, repo="o/b")
    _, negatives = draw(small + large, small_issues + large_issues, sizes="1,0,0")
    assert negatives.missing == {"train": 0}
    assert Counter(pair.first.repo for pair in all_pairs(negatives)) == {"o/b": 21}


def test_hard_negatives_are_the_most_similar():
    clusters = [cluster(1, 2), cluster(3, 4), cluster(5, 6), cluster(7, 8)]
    issues = [ref(n) for n in range(1, 9)]
    texts = texts_of(*issues).usable
    change(texts, 1, 5, form="{} linker symbol undefined reference windows")
    hard = {"negatives": "hard", "sizes": "1,0,0", "guard_share": 1.0}
    _, negatives = draw(clusters, issues, texts, ratio=0.25, **hard)
    _, several = draw(clusters, issues, texts, **hard)
    assert [pair.negative_kind for pair in all_pairs(negatives)] == ["hard"]
    assert {ref(1), ref(5)} in [
        {pair.first, pair.second} for pair in all_pairs(several)
    ]


def test_likely_duplicates_are_dropped_with_a_reason():
    clusters = [cluster(1, 2), cluster(3, 4)]
    issues = [ref(n) for n in range(1, 5)]
    texts = texts_of(*issues).usable
    change(texts, 1, form="Crash on Start!\n\n{}")
    change(texts, 3, form="crash on start\n\n{}")
    texts[ref(4)] = replace(texts[ref(4)], text=texts[ref(2)].text)
    change(texts, 4, form="Other\n\n{} and little else")
    linked = {frozenset((ref(1), ref(4)))}
    _, negatives = draw(
        clusters,
        issues,
        texts,
        linked=linked,
        sizes="1,0,0",
        ratio=2.0,
        guard_share=0.5,
    )
    assert [{p.first.number, p.second.number} for p in all_pairs(negatives)] == [{2, 3}]
    dropped = [
        (*sorted((d.first.number, d.second.number)), d.reason)
        for d in negatives.dropped
    ]
    assert sorted(dropped) == values("""
        1 | 3 | same_title
        1 | 4 | linked
        2 | 4 | too_similar
    """)
    assert negatives.missing == {"train": 3}


def test_a_mention_by_a_former_name_is_a_link():
    talk = thread(said("bob", "See x/old#1 and a/b#2."), body="It is #3.")
    mentions = mentions_of(talk, {"x/old": "x/new", "a/b": "a/b", "o/n": "o/n"}.get)
    assert mentions == {IssueRef("x/new", 1), IssueRef("a/b", 2), IssueRef("o/n", 3)}


def test_near_identical_issues_are_not_negatives():
    clusters = [cluster(1, 2), cluster(3, 4)]
    _, negatives = draw(
        clusters, [ref(n) for n in range(1, 5)], ties=((ref(1), ref(3)),), sizes="1,0,0"
    )
    assert all_pairs(negatives) == []
    assert {drop.reason for drop in negatives.dropped} == {"near_identical"}


def test_excluded_relations_still_tie_issues():
    """1 ← 2 is a pair, 3 has an excluded relation: all are in one split and never a negative."""
    others, _ = tracker(40)
    moved = [cluster(*(member.number + 10 for member in c.members)) for c in others]
    tied = cluster(1, 2, 3, edges=((2, 1), (3, 1)))
    grounds_of = {(ref(3), ref(1)): grounds(ref(3), Relation.SUPERSEDED)}
    issues = [ref(n) for n in (1, 2, 3)] + [
        member for c in moved for member in c.members
    ]
    for seed in range(5):
        splits, negatives = draw(
            [tied, *moved], issues, grounds_of=grounds_of, ratio=3.0, seed=seed
        )
        positives = list(chain.from_iterable(splits.positives.values()))
        assert len(positives) == 41
        assert len({splits.of[member] for member in tied.members}) == 1
        assert not [
            p for p in all_pairs(negatives) if {p.first, p.second} <= set(tied.members)
        ]


DAY = 86_400


def at(seconds):
    return (datetime(2010, 1, 1) + timedelta(seconds=seconds)).isoformat() + "Z"


@given(
    st.lists(st.integers(0, 10**6), min_size=2, max_size=30),
    st.integers(0, 29),
    st.one_of(st.just(0), st.integers(0, 10**6)),
)
def test_issues_are_offered_by_how_well_their_gap_fits(times, place, gap):
    opened = {ref(number): float(time) for number, time in enumerate(times)}
    anchor = ref(place % len(times))
    offered = list(Timeline(opened, opened.keys()).near(anchor, gap))
    assert sorted(issue for _, issue in offered) == sorted(opened.keys() - {anchor})
    differences = [difference for difference, _ in offered]
    assert differences == sorted(differences)


def test_the_extremes_of_the_gaps_come_first():
    wanted = WantedGaps([3.0, 1, 5, 2, 4], 5)
    assert wanted.hardest_first() == [1, 5, 2, 4, 3]
    wanted.take(5)
    assert (wanted.hardest_first(), len(wanted)) == ([1, 4, 2, 3], 4)


def years(clusters, singles):
    """Clusters of two issues opened within days of each other, and single issues, over five years."""
    generator = random.Random(7)
    texts = {}
    for k in range(clusters):
        start = generator.randrange(5 * 360 * DAY)
        for index, delay in enumerate((0, int(generator.expovariate(1 / (20 * DAY))))):
            issue = ref(2 * k + 1 + index)
            texts[issue] = replace(text_of(issue), created_at=at(start + delay))
    for number in range(2 * clusters + 1, 2 * clusters + singles + 1):
        texts[ref(number)] = replace(
            text_of(ref(number)), created_at=at(generator.randrange(5 * 360 * DAY))
        )
    return [cluster(2 * k + 1, 2 * k + 2) for k in range(clusters)], list(texts), texts


@parametrize("kind", ["random", "hard", "mixed"])
def test_negatives_have_the_gaps_of_positives(kind):
    clusters, issues, texts = years(150, 100)

    def auc(match):
        splits, negatives = draw(clusters, issues, texts, negatives=kind, match=match)
        assert not any(negatives.missing.values())
        assert {
            s: len(p) for s, p in negatives.pairs.items()
        } == splits.negatives_wanted
        positives = list(chain.from_iterable(splits.positives.values()))
        return gap_auc(make_rows([*positives, *all_pairs(negatives)], texts, 0)) or 0.0

    assert auc("none") > 0.85
    assert 0.4 <= auc("time") <= 0.6


@BOTH
@parametrize("kind", ["random", "hard", "mixed"])
def test_positives_across_repositories(kind, match):
    """Their issues are in negatives of their own repositories, as often, with the gaps of positives."""
    within, issues, texts = years(300, 200)

    def moved(issue):
        return issue._replace(repo="o/other") if issue.number % 2 else issue

    clusters = []
    for c in within:
        first, second = map(moved, c.members)
        members, edges = (first, second), ((second, first),)
        clusters.append(replace(c, members=members, canonical=first, edges=edges))
    texts = {
        moved(issue): replace(text, ref=moved(issue)) for issue, text in texts.items()
    }
    splits, negatives = draw(
        clusters, list(map(moved, issues)), texts, negatives=kind, match=match
    )
    assert not any(negatives.missing.values())
    assert all(pair.first.repo == pair.second.repo for pair in all_pairs(negatives))
    positives = list(chain(*splits.positives.values()))
    assert all(pair.first.repo != pair.second.repo for pair in positives)
    positive, negative = uses(positives), uses(all_pairs(negatives))
    assert sum(
        abs(positive[issue] - negative[issue]) for issue in positive
    ) < 0.3 * len(positive)
    if match == "time":
        assert (
            0.4
            <= (gap_auc(make_rows([*positives, *all_pairs(negatives)], texts, 0)) or 0)
            <= 0.6
        )


@BOTH
def test_the_only_two_issues_of_a_repository_are_a_negative(match):
    clusters = []
    for number in (1, 2):
        members = (ref(number, "o/a"), ref(number, "o/b"))
        clusters.append(
            DuplicateCluster(str(members[0]), members, members[0], (members[::-1],))
        )
    issues = [member for each in clusters for member in each.members]
    _, negatives = draw(clusters, issues, sizes="4,0,0", match=match)
    found = sorted(
        sorted((str(pair.first), str(pair.second))) for pair in all_pairs(negatives)
    )
    assert found == [["o/a#1", "o/a#2"], ["o/b#1", "o/b#2"]]
