from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest

from gis_builder.pairing.negatives import Negatives, make_negatives
from gis_builder.pairing.positives import make_positives
from gis_builder.pairing.split import Splits, split_issues
from gis_builder.settings.pairs import PairSettings, SplitSettings
from gis_builder.store.records import DuplicateCluster, Grounds, IssuePair, IssueRef, IssueText, Relation

from .pair_material import cluster, grounds, ref, texts_of, tracker


def draw(
    clusters: list[DuplicateCluster],
    issues: list[IssueRef],
    texts: dict[IssueRef, IssueText] | None = None,
    linked: Any = frozenset(),
    ties: tuple[tuple[IssueRef, ...], ...] = (),
    sizes: str | None = None,
    seed: int = 0,
    told: dict[Any, Grounds] | None = None,
    **chosen: Any,
) -> tuple[Splits, Negatives]:
    settings = PairSettings(**{"ratio": 1.0} | chosen)
    usable = texts_of(*issues)
    usable.usable.update(texts or {})
    positives = make_positives(clusters, usable, told or {}, settings, seed)
    splits = split_issues(
        positives.pairs, clusters, issues, ties, SplitSettings(sizes=sizes), settings.ratio, seed
    )
    made = make_negatives(
        splits.positives,
        splits.negatives_wanted,
        splits.of,
        splits.group,
        clusters,
        usable.usable,
        linked,
        settings,
        seed,
    )
    return splits, made


def everything(made: Negatives) -> list[IssuePair]:
    return list(chain.from_iterable(made.pairs.values()))


def use(pairs: list[IssuePair]) -> Counter[IssueRef]:
    return Counter(chain.from_iterable((pair.first, pair.second) for pair in pairs))


BOTH = pytest.mark.parametrize("match", ["time", "none"])


@BOTH
@pytest.mark.parametrize("kind", ["random", "hard", "mixed"])
def test_negatives_keep_every_promise(kind: str, match: str) -> None:
    parts = [tracker(60, singles=40, repo=f"o/{name}") for name in "abc"]
    clusters = [c for part, _ in parts for c in part]
    issues = [i for _, part in parts for i in part]
    splits, made = draw(clusters, issues, negatives=kind, match=match)
    assert made.missing == {"train": 0, "validation": 0, "test": 0}
    home = {member: c.id for c in clusters for member in c.members}
    seen = set()
    for split, pairs in made.pairs.items():
        assert len(pairs) == splits.negatives_wanted[split]
        for pair in pairs:
            assert pair.label == 0
            assert pair.first.repo == pair.second.repo
            assert splits.of[pair.first] == splits.of[pair.second] == split
            assert home.get(pair.first, 1) != home.get(pair.second, 2)
            assert frozenset((pair.first, pair.second)) not in seen
            seen.add(frozenset((pair.first, pair.second)))
    kinds = Counter(pair.negative_kind for pair in everything(made))
    expected = {"random": {"random": 180}, "hard": {"hard": 180}, "mixed": {"hard": 90, "random": 90}}[kind]
    assert kinds.total() == 180
    assert abs(kinds["hard"] - expected.get("hard", 0)) <= 5


@BOTH
@pytest.mark.parametrize("kind", ["random", "hard"])
def test_an_issue_is_used_for_both_labels_alike(kind: str, match: str) -> None:
    clusters, issues = tracker(100, singles=200, size=3)
    splits, made = draw(clusters, issues, negatives=kind, match=match)
    positive, negative = use(list(chain(*splits.positives.values()))), use(everything(made))
    assert made.with_single == 0
    differences = [abs(positive[issue] - negative[issue]) for issue in positive]
    assert sum(differences) / len(differences) < 0.1
    assert max(differences) <= 2


def test_the_same_seed_draws_the_same_whatever_the_order() -> None:
    clusters, issues = tracker(50, singles=10)
    _, one = draw(clusters, issues, negatives="mixed")
    _, other = draw(clusters[::-1], issues[::-1], negatives="mixed")
    _, third = draw(clusters, issues, negatives="mixed", seed=1)
    assert one.pairs == other.pairs
    assert one.pairs != third.pairs


@BOTH
def test_more_negatives_than_positives(match: str) -> None:
    clusters, issues = tracker(40)
    _, made = draw(clusters, issues, ratio=3.0, match=match)
    assert len(everything(made)) == 120
    assert not any(made.missing.values())
    assert made.with_single == 0
    assert {3} <= {*use(everything(made)).values()} <= {2, 3, 4}


@BOTH
def test_one_cluster_alone_takes_single_issues(match: str) -> None:
    clusters, issues = tracker(1, singles=30)
    _, made = draw(clusters, issues, sizes="1,0,0", match=match)
    assert made.with_single == len(everything(made)) == 1
    _, several = draw(clusters, issues, sizes="1,0,0", ratio=10.0, match=match)
    assert several.with_single == len({*everything(several)}) == 10
    assert max(n for issue, n in use(everything(several)).items() if issue.number > 2) <= 2
    _, none = draw(*tracker(1), sizes="1,0,0", match=match)
    assert none.missing == {"train": 1}


def test_what_one_repository_lacks_another_gives() -> None:
    lonely, lonely_issues = tracker(1, repo="o/a")
    busy, busy_issues = tracker(20, repo="o/b")
    _, made = draw(lonely + busy, lonely_issues + busy_issues, sizes="1,0,0")
    assert made.missing == {"train": 0}
    assert Counter(pair.first.repo for pair in everything(made)) == {"o/b": 21}


def test_hard_negatives_are_the_most_alike() -> None:
    clusters = [cluster(1, 2), cluster(3, 4), cluster(5, 6), cluster(7, 8)]
    issues = [ref(n) for n in range(1, 9)]
    texts = texts_of(*issues).usable
    alike = "linker symbol undefined reference windows"
    for number in (1, 5):
        texts[ref(number)] = replace(texts[ref(number)], text=f"{texts[ref(number)].text} {alike}")
    _, made = draw(clusters, issues, texts, negatives="hard", sizes="1,0,0", ratio=0.25, guard_share=1.0)
    _, several = draw(clusters, issues, texts, negatives="hard", sizes="1,0,0", guard_share=1.0)
    assert [pair.negative_kind for pair in everything(made)] == ["hard"]
    assert {ref(1), ref(5)} in [{pair.first, pair.second} for pair in everything(several)]


def test_the_guard_drops_likely_duplicates_and_says_why() -> None:
    clusters = [cluster(1, 2), cluster(3, 4)]
    issues = [ref(n) for n in range(1, 5)]
    texts = texts_of(*issues).usable
    texts[ref(1)] = replace(texts[ref(1)], text="Crash on Start!\n\n" + texts[ref(1)].text)
    texts[ref(3)] = replace(texts[ref(3)], text="crash on start\n\n" + texts[ref(3)].text)
    texts[ref(4)] = replace(texts[ref(4)], text=f"Other\n\n{texts[ref(2)].text} and little else")
    _, made = draw(
        clusters,
        issues,
        texts,
        linked={frozenset((ref(1), ref(4)))},
        sizes="1,0,0",
        ratio=2.0,
        guard_share=0.5,
    )
    assert [{p.first.number, p.second.number} for p in everything(made)] == [{2, 3}]
    assert {frozenset((d.first.number, d.second.number)): d.reason for d in made.dropped} == {
        frozenset((1, 3)): "same_title",
        frozenset((1, 4)): "linked",
        frozenset((2, 4)): "too_similar",
    }
    assert made.missing == {"train": 3}


def test_issues_tied_by_their_texts_are_no_negative() -> None:
    clusters = [cluster(1, 2), cluster(3, 4)]
    _, made = draw(clusters, [ref(n) for n in range(1, 5)], ties=((ref(1), ref(3)),), sizes="1,0,0")
    assert everything(made) == []
    assert {drop.reason for drop in made.dropped} == {"near_identical"}


def test_relations_that_make_no_pair_still_bind() -> None:
    """1 ← 2 is a pair; 3 is tied to them by a relation left out: never parted, never a negative of theirs."""
    others, _ = tracker(40)
    moved = [cluster(*(member.number + 10 for member in c.members)) for c in others]
    tied = cluster(1, 2, 3, edges=((2, 1), (3, 1)))
    told = {(ref(3), ref(1)): grounds(ref(3), Relation.SUPERSEDED)}
    issues = [ref(n) for n in (1, 2, 3)] + [member for c in moved for member in c.members]
    for seed in range(5):
        splits, made = draw([tied, *moved], issues, told=told, ratio=3.0, seed=seed)
        positives = list(chain.from_iterable(splits.positives.values()))
        assert len(positives) == 41
        assert len({splits.of[member] for member in tied.members}) == 1
        assert not [p for p in everything(made) if {p.first, p.second} <= set(tied.members)]
