"""Relations and explanations of verdicts, and clusters of verdicts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gis_builder.detection import decide, explain
from gis_builder.detection.reading import read
from gis_builder.detection.rules import relation_of
from gis_builder.pairing.positives import find_clusters
from gis_builder.store.issue_records import IssueRef, Verdict, VerdictOutcome

from .detect_threads import event, kind_of, ref, said, thread

ISSUE = IssueRef("o/n", 99)


@pytest.mark.parametrize(
    ("words", "relation"),
    [
        ("Closing as a duplicate of #12.", "duplicate"),
        ("Dup of #12, which is in favour of the future.", "duplicate"),
        ("This is the same issue as #12, closing.", "same"),
        ("Whoops, this is #12.", "same"),
        ("This has already been reported as #12.", "reported"),
        ("There is already a bug on this: #12.", "reported"),
        ("This is a known issue, see #12.", "reported"),
        ("Closing in favour of #12.", "superseded"),
        ("I think #12 subsumes this.", "superseded"),
        ("Moving this over to #12.", "superseded"),
        ("This is tracked in #12.", "tracked"),
        ("I think #12 covers this.", "tracked"),
        ("This is part of #12.", "part-of"),
        ("Closing as a subissue of #12.", "part-of"),
        ("This is merely a special case of #12.", "part-of"),
    ],
)
def test_relation(words: str, relation: str) -> None:
    (claim, *_) = read(words, ISSUE).claims
    assert relation_of(claim.kind, claim.marker) == relation


def test_an_explanation() -> None:
    talk = thread(
        said("bob", "Duplicate of #2?", 30),
        said("ann", "Not a dup, see the log.", 20),
        said("max", "#3 is a dup of this", 10),
        said("mia", "Closing as a duplicate of #1."),
        event("closed", 0, state_reason="completed"),
    )
    text = explain(talk, decide(talk, kind_of), kind_of)
    parts = [
        "bob (other) asks about",
        "disputed",
        "ann (author) denies",
        "max (maintainer) refers to other",
        "mia (closer)",
        "event closed as completed",
        "verdict: duplicate of o/n#1",
    ]
    positions = [text.index(part) for part in parts]
    assert positions == sorted(positions)
    assert "weight 0.98" in text
    assert "because: the closer calls it a duplicate, and it was closed for that [closer_duplicate]" in text


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("below_min_confidence", "it is probably a duplicate, but below the minimum confidence"),
        ("note_duplicate", "a note in title or body calls it a duplicate, and it was closed for that"),
        ("other_tracked", "a bystander says that it is tracked elsewhere, and it was closed for that"),
    ],
)
def test_explained_reasons(reason: str, words: str) -> None:
    verdict = Verdict(ref(100), VerdictOutcome.UNCERTAIN, (ref(1),), 0.4, reason)
    assert explain(thread(), verdict, kind_of).endswith(f"because: {words} [{reason}]")


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
