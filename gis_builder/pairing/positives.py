"""Clusters of duplicates, and positive pairs: a duplicate and its canonical, or all pairs of a cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import combinations

from msgspec import Struct

from gis_builder.pairing.same_problem import SameProblem
from gis_builder.pairing.text import RenderedTexts
from gis_builder.settings import PairSettings
from gis_builder.store.issue_records import (
    DroppedPair,
    DuplicateCluster,
    Grounds,
    IssuePair,
    IssueRef,
    Relation,
    Verdict,
    VerdictOutcome,
)
from pairkit.base.system.seeded import keyed_hash
from pairkit.similarity.groups import Groups

Edge = tuple[IssueRef, IssueRef]
UNLIKELY_SAME = "low_same_probability"


def find_clusters(verdicts: Iterable[Verdict]) -> list[DuplicateCluster]:
    """Join duplicates and their targets into clusters, ordered by repository and lowest number."""
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
    edges_of: dict[IssueRef, list[Edge]] = {}
    for edge in edges:
        edges_of.setdefault(groups.find(edge[0]), []).append(edge)
    clusters = []
    for lowest, members in groups.all().items():
        duplicates = {duplicate for duplicate, _ in edges_of[lowest]}
        canonical = next((member for member in members if member not in duplicates), lowest)
        clusters.append(
            DuplicateCluster(str(lowest), tuple(members), canonical, tuple(edges_of[lowest]))
        )
    return clusters


class Positives(Struct):
    """The positives in order of cluster, and the dropped pairs."""

    pairs: list[IssuePair] = []
    dropped: list[DroppedPair] = []


def make_positives(
    clusters: Iterable[DuplicateCluster],
    texts: RenderedTexts,
    grounds: Mapping[Edge, Grounds],
    settings: PairSettings,
    seed: int,
) -> Positives:
    """Turn clusters into pairs of usable texts, without repeated pairs."""
    positives = Positives()
    same_problem = SameProblem(text.text for text in texts.usable.values())
    seen: set[frozenset[IssueRef]] = set()
    for cluster in sorted(clusters, key=lambda c: c.id):
        relations = _Relations(cluster, grounds, settings.relations)
        count = 0
        for first, second in _candidates(cluster, settings, seed):
            reason = relations.why_not(first, second) or _why_not(first, second, seen, texts)
            probability = 0.0
            if reason is None:
                probability = same_problem.probability(
                    texts.usable[first].text, texts.usable[second].text
                )
                if probability < settings.min_same_probability:
                    reason = UNLIKELY_SAME
            if reason is None and count >= settings.cluster_cap:
                reason = "cluster_cap"
            if reason is not None:
                positives.dropped.append(DroppedPair(first, second, 1, reason))
                continue
            count += 1
            seen.add(frozenset((first, second)))
            why = grounds.get((first, second))
            positives.pairs.append(
                IssuePair(first, second, 1, cluster.id, why, same_probability=probability)
            )
    return positives


class _Relations:
    """The edges of a cluster with selected relations, and the issues that they connect."""

    def __init__(
        self,
        cluster: DuplicateCluster,
        grounds: Mapping[Edge, Grounds],
        selected: Collection[Relation],
    ) -> None:
        self._excluded = {
            edge: f"relation_{grounds[edge].relation}"
            for edge in cluster.edges
            if edge in grounds and grounds[edge].relation not in selected
        }
        self._connected = Groups(cluster.members)
        for edge in cluster.edges:
            if edge not in self._excluded:
                self._connected.join(*edge)

    def why_not(self, first: IssueRef, second: IssueRef) -> str | None:
        if (first, second) in self._excluded:
            return self._excluded[first, second]
        is_connected = self._connected.find(first) == self._connected.find(second)
        return None if is_connected else "relation_indirect"


def _candidates(cluster: DuplicateCluster, settings: PairSettings, seed: int) -> Iterator[Edge]:
    """The edges of a cluster, then, if requested, its other pairs in random order."""
    yield from sorted(cluster.edges)
    if settings.all_within_cluster:
        edges = {frozenset(edge) for edge in cluster.edges}
        indirect = [
            pair
            for pair in combinations(sorted(cluster.members), 2)
            if frozenset(pair) not in edges
        ]
        indirect.sort(key=lambda pair: keyed_hash(seed, "within", *pair))
        for low, high in indirect:
            yield (low, high) if high == cluster.canonical else (high, low)


def _why_not(
    first: IssueRef, second: IssueRef, seen: set[frozenset[IssueRef]], texts: RenderedTexts
) -> str | None:
    if first == second:
        return "self"
    if frozenset((first, second)) in seen:
        return "repeated"
    for ref in (first, second):
        if ref not in texts.usable:
            return texts.rejected.get(ref, "not_fetched")
    if texts.usable[first].text == texts.usable[second].text:
        return "same_text"
    return None
