from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gis_builder.detection import clusters
from gis_builder.store.records import IssueRef, Verdict, VerdictOutcome

from .detect_threads import ref


def duplicate(number: int, *targets: int, outcome: VerdictOutcome = VerdictOutcome.DUPLICATE) -> Verdict:
    return Verdict(ref(number), outcome, tuple(map(ref, targets)), 0.9, "test")


def numbers(*verdicts: Verdict) -> list[tuple[str, list[int], int]]:
    return [
        (cluster.id, [member.number for member in cluster.members], cluster.canonical.number)
        for cluster in clusters(verdicts)
    ]


def test_pairs_chains_stars_and_cycles() -> None:
    assert numbers(duplicate(2, 1)) == [("o/n#1", [1, 2], 1)]
    assert numbers(duplicate(1, 2), duplicate(2, 3)) == [("o/n#1", [1, 2, 3], 3)]
    assert numbers(duplicate(5, 9), duplicate(7, 9)) == [("o/n#5", [5, 7, 9], 9)]
    assert numbers(duplicate(1, 2), duplicate(2, 1)) == [("o/n#1", [1, 2], 1)]
    assert numbers(duplicate(3, 1, 2)) == [("o/n#1", [1, 2, 3], 1)]
    assert numbers(duplicate(2, 1), duplicate(4, 3)) == [("o/n#1", [1, 2], 1), ("o/n#3", [3, 4], 3)]


def test_only_duplicates_of_others_count() -> None:
    assert numbers(duplicate(2, 1, outcome=VerdictOutcome.UNCERTAIN), duplicate(3, 3), duplicate(4)) == []


edges = st.lists(st.tuples(st.integers(1, 12), st.lists(st.integers(1, 12), max_size=3)), max_size=12)


@given(edges, st.randoms(use_true_random=False))
def test_the_order_of_verdicts_does_not_show(pairs: list[tuple[int, list[int]]], random: object) -> None:
    verdicts = [duplicate(number, *targets) for number, targets in pairs]
    shuffled = list(verdicts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert clusters(shuffled) == clusters(verdicts)
    assert clusters([*verdicts, *shuffled]) == clusters(verdicts)


@given(edges)
def test_clusters_are_apart_and_joining_them_again_changes_nothing(
    pairs: list[tuple[int, list[int]]],
) -> None:
    found = clusters([duplicate(number, *targets) for number, targets in pairs])
    members: list[IssueRef] = [member for cluster in found for member in cluster.members]
    assert len(members) == len(set(members))
    assert all(len(cluster.members) > 1 and cluster.canonical in cluster.members for cluster in found)
    again = [
        Verdict(member, VerdictOutcome.DUPLICATE, (cluster.canonical,), 0.9, "test")
        for cluster in found
        for member in cluster.members
        if member != cluster.canonical
    ]
    assert [(c.id, c.members, c.canonical) for c in clusters(again)] == [
        (c.id, c.members, c.canonical) for c in found
    ]
