"""Clusters of issues that are all one: the union of every (duplicate, canonical) found."""

from __future__ import annotations

from collections.abc import Iterable

from gis_builder.store.records import DuplicateCluster, IssueRef, Verdict, VerdictOutcome
from pairkit.similarity.groups import Groups


def clusters(verdicts: Iterable[Verdict]) -> list[DuplicateCluster]:
    """Join chains, cycles and stars of duplicates into clusters, ordered by repository and lowest number.

    The canonical issue is the one that is itself a duplicate of none; of several such, and in a cycle, the
    lowest. The result doesn't depend on the order of the verdicts.
    """
    edges = sorted(
        {
            (verdict.ref, target)
            for verdict in verdicts
            if verdict.outcome is VerdictOutcome.DUPLICATE
            for target in verdict.targets
            if target != verdict.ref
        }
    )
    groups: Groups[IssueRef] = Groups()
    for duplicate, target in edges:
        groups.join(duplicate, target)
    edges_of: dict[IssueRef, list[tuple[IssueRef, IssueRef]]] = {}
    for edge in edges:
        edges_of.setdefault(groups.find(edge[0]), []).append(edge)
    return [_cluster(members, edges_of[lowest]) for lowest, members in groups.all().items()]


def _cluster(members: list[IssueRef], edges: list[tuple[IssueRef, IssueRef]]) -> DuplicateCluster:
    duplicates = {duplicate for duplicate, _ in edges}
    roots = [member for member in members if member not in duplicates]
    return DuplicateCluster(str(members[0]), tuple(members), (roots or members)[0], tuple(edges))
