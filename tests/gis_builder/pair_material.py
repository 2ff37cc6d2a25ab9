"""Small trackers for tests of pairs, splits and datasets."""

import random
from functools import cache

from gis_builder.pairing.text import RenderedTexts
from gis_builder.store.issue_records import (
    GITHUB,
    DuplicateCluster,
    Evidence,
    Grounds,
    IssueRef,
    IssueText,
    Relation,
)

AREAS = ("window", "parser", "socket", "theme", "linker")
WORDS = [f"{area}{thing}" for area in AREAS for thing in "abcdefgh"]


def ref(number, repo="o/n"):
    return IssueRef(repo, number)


def cluster(*numbers, repo="o/n", edges=None):
    """A cluster with its lowest issue as canonical; by default, every other issue has an edge to it."""
    members = tuple(ref(number, repo) for number in sorted(numbers))
    if edges is None:
        edges = tuple((number, min(numbers)) for number in sorted(numbers)[1:])
    refs = tuple((ref(a, repo), ref(b, repo)) for a, b in edges)
    return DuplicateCluster(str(members[0]), members, members[0], refs)


@cache
def text_of(issue, *, words=30):
    """A different text for every issue, the same in every run."""
    generator = random.Random(str(issue))
    body = " ".join(
        f"{generator.choice(WORDS)}{generator.randrange(50)}" for _ in range(words)
    )
    return IssueText(
        issue,
        f"{issue.repo} fails {issue.number}\n\n{body}",
        f"2020-01-01T00:00:{issue.number % 60:02}Z",
    )


def texts_of(*issues):
    return RenderedTexts(usable={issue: text_of(issue) for issue in issues})


def evidence(issue):
    return Evidence(
        "closer_comment",
        f"{issue.page(GITHUB)}#issuecomment-1",
        "maintainer",
        "2020-01-02",
    )


def grounds(issue, relation=Relation.DUPLICATE):
    return Grounds(relation, "closer_duplicate", 0.98, evidence(issue))


def tracker(clusters, singles=0, repo="o/n", size=2):
    """Clusters of `size` issues, then `singles` issues without a duplicate; the clusters and all issues."""
    parts = [
        cluster(*range(k * size + 1, k * size + size + 1), repo=repo)
        for k in range(clusters)
    ]
    issues = [ref(number, repo) for number in range(1, clusters * size + singles + 1)]
    return parts, issues
