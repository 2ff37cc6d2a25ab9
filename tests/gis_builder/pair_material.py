"""Small trackers for the tests of pairs, splits and datasets."""

from __future__ import annotations

import random

from gis_builder.pairing.text import RenderedTexts
from gis_builder.store.records import (
    GITHUB,
    DuplicateCluster,
    Evidence,
    Grounds,
    IssueRef,
    IssueText,
    Relation,
)

WORDS = [
    f"{area}{thing}" for area in ("window", "parser", "socket", "theme", "linker") for thing in "abcdefgh"
]


def ref(number: int, repo: str = "o/n") -> IssueRef:
    return IssueRef(repo, number)


def cluster(
    *numbers: int, repo: str = "o/n", edges: tuple[tuple[int, int], ...] | None = None
) -> DuplicateCluster:
    """A cluster whose lowest issue is the canonical one, by default with an edge from each other to it."""
    members = tuple(ref(number, repo) for number in sorted(numbers))
    named = edges if edges is not None else tuple((number, min(numbers)) for number in sorted(numbers)[1:])
    return DuplicateCluster(
        f"{repo}#{min(numbers)}",
        members,
        members[0],
        tuple((ref(a, repo), ref(b, repo)) for a, b in named),
    )


def text_of(issue: IssueRef, *, words: int = 30) -> IssueText:
    """A text of its own for every issue, the same in every run."""
    chosen = random.Random(str(issue))
    body = " ".join(f"{chosen.choice(WORDS)}{chosen.randrange(50)}" for _ in range(words))
    return IssueText(
        issue, f"{issue.repo} fails {issue.number}\n\n{body}", f"2020-01-01T00:00:{issue.number % 60:02}Z"
    )


def texts_of(*issues: IssueRef) -> RenderedTexts:
    return RenderedTexts(usable={issue: text_of(issue) for issue in issues})


def evidence(issue: IssueRef) -> Evidence:
    return Evidence(
        "closer_comment", f"{issue.page(GITHUB)}#issuecomment-1", "maintainer", "2020-01-02T00:00:00Z"
    )


def grounds(issue: IssueRef, relation: Relation = Relation.DUPLICATE) -> Grounds:
    return Grounds(relation, "closer_duplicate", 0.98, evidence(issue))


def tracker(
    clusters: int, singles: int = 0, repo: str = "o/n", size: int = 2
) -> tuple[list[DuplicateCluster], list[IssueRef]]:
    """`clusters` clusters of `size` issues, then `singles` issues without a duplicate; and all the issues."""
    made = [cluster(*range(k * size + 1, k * size + size + 1), repo=repo) for k in range(clusters)]
    issues = [ref(number, repo) for number in range(1, clusters * size + singles + 1)]
    return made, issues
