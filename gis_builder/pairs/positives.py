"""Positive pairs: a duplicate and the issue it was closed for, or every two issues of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from gis_builder.config import PairSettings
from gis_builder.pairs.text import Texts
from gis_builder.records import Cluster, DroppedPair, Evidence, IssueRef, Pair
from pairkit.keyed import keyed_hash

Edge = tuple[IssueRef, IssueRef]


@dataclass(slots=True)
class Positives:
    """The positives, by cluster and number, and what was left out."""

    pairs: list[Pair] = field(default_factory=list)
    dropped: list[DroppedPair] = field(default_factory=list)


def make_positives(
    clusters: Iterable[Cluster],
    texts: Texts,
    evidence: Mapping[Edge, Evidence],
    settings: PairSettings,
    seed: int,
) -> Positives:
    """Turn clusters into pairs of usable texts, each two issues at most once.

    By default a pair is an edge: the duplicate first, then the issue that the verdict named. With
    `all_within_cluster` the other pairs of the cluster follow, up to `cluster_cap` pairs in all; the seed
    chooses which. Dropped pairs have one of the reasons `self`, `repeated`, `cluster_cap`, `same_text`,
    `not_fetched`, or the reason why a text was rejected.
    """
    made = Positives()
    seen: set[frozenset[IssueRef]] = set()
    for cluster in sorted(clusters, key=lambda c: c.id):
        kept = 0
        for first, second in _candidates(cluster, settings, seed):
            reason = _why_not(first, second, seen, texts)
            if reason is None and kept >= settings.cluster_cap:
                reason = "cluster_cap"
            if reason is not None:
                made.dropped.append(DroppedPair(first, second, 1, reason))
                continue
            kept += 1
            seen.add(frozenset((first, second)))
            made.pairs.append(Pair(first, second, 1, cluster.id, evidence.get((first, second))))
    return made


def _candidates(cluster: Cluster, settings: PairSettings, seed: int) -> Iterator[Edge]:
    yield from sorted(cluster.edges)
    if settings.all_within_cluster:
        named = {frozenset(edge) for edge in cluster.edges}
        others = [pair for pair in combinations(sorted(cluster.members), 2) if frozenset(pair) not in named]
        others.sort(key=lambda pair: keyed_hash(seed, "within", *pair))
        for low, high in others:
            yield (low, high) if high == cluster.canonical else (high, low)


def _why_not(first: IssueRef, second: IssueRef, seen: set[frozenset[IssueRef]], texts: Texts) -> str | None:
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
