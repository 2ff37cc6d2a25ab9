"""Clusters of duplicates, and positive pairs: a duplicate and its canonical, or all pairs of a cluster.

A pair's probability of describing the same problem depends on two similarities of its texts. `same_problem.toml`
has the weights of a logistic regression, which `benchmarks/strict_pairs.py --fit` fits to pairs that were read
one by one.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import combinations
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from gis_builder.pairing.text import RenderedTexts
from gis_builder.settings import PairSettings
from gis_builder.store import (
    DroppedPair,
    DuplicateCluster,
    Grounds,
    IssuePair,
    IssueRef,
    Relation,
    Verdict,
)
from pairkit.base.system.seeded import keyed_hash
from pairkit.similarity.bm25 import words
from pairkit.similarity.groups import Groups

Edge = tuple[IssueRef, IssueRef]
UNLIKELY_SAME = "low_same_probability"
_CACHED_TEXTS = 64
WEIGHTS = Path(__file__).with_name("same_problem.toml")


class Similarities(NamedTuple):
    """How much two issues have in common, from 0 to 1; rare words count more."""

    text_cosine: float  # TF-IDF cosine of the texts
    # Share of a title's words that are in the other text; the lower of the two titles'
    title_coverage: float


class SameProblem:
    """Compares texts by their words; `texts` show which words are rare."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts_with: Counter[str] = Counter()
        self._total = 0
        for text in texts:
            self._texts_with.update(set(words(text)))
            self._total += 1
        # The original of a cluster is compared with each of its duplicates.
        self._weights_of = lru_cache(_CACHED_TEXTS)(self._weigh_words)

    def _rarity(self, word: str) -> float:
        texts_with = self._texts_with[word] + 0.5
        return math.log((self._total + 1) / texts_with)

    def _weigh_words(self, text: str) -> dict[str, float]:
        weights = {}
        for word, count in Counter(words(text)).items():
            weights[word] = (1 + math.log(count)) * self._rarity(word)
        return weights

    def probability(self, first: str, second: str) -> float:
        """The probability in [0, 1]; the order of the texts doesn't matter."""
        weights = read_weights()
        similarities = self.similarities(first, second)._asdict()
        logit = weights["intercept"]
        for name, value in similarities.items():
            logit += weights[name] * value
        return round(1 / (1 + math.exp(-logit)), 3)

    def similarities(self, first: str, second: str) -> Similarities:
        """The features of the regression."""
        weights = self._weights_of(first)
        other_weights = self._weights_of(second)
        first_coverage = self._title_coverage(first, other_weights)
        second_coverage = self._title_coverage(second, weights)
        return Similarities(
            _cosine(weights, other_weights), min(first_coverage, second_coverage)
        )

    def _title_coverage(self, text: str, other_words: Iterable[str]) -> float:
        first_line, _, _ = text.partition("\n\n")
        title = set(words(first_line))
        total = math.fsum(map(self._rarity, title))
        if not total:
            return 0.0
        return math.fsum(map(self._rarity, title.intersection(other_words))) / total


def _cosine(vector: Mapping[str, float], other: Mapping[str, float]) -> float:
    shared = vector.keys() & other.keys()
    product = math.fsum(vector[word] * other[word] for word in shared)
    lengths = math.hypot(*vector.values()) * math.hypot(*other.values())
    if not lengths:
        return 0.0
    return min(1.0, product / lengths)


@cache
def read_weights() -> dict[str, float]:
    """The intercept, and the weight of each similarity."""
    return tomllib.loads(WEIGHTS.read_text("utf-8"))


def find_clusters(duplicates: Iterable[Verdict]) -> list[DuplicateCluster]:
    """Join duplicates and their targets into clusters, ordered by repository and lowest number."""
    found: set[Edge] = set()
    for verdict in duplicates:
        others = (target for target in verdict.targets if target != verdict.ref)
        found.update((verdict.ref, target) for target in others)
    edges = sorted(found)
    groups: Groups[IssueRef] = Groups()
    for edge in edges:
        groups.join(*edge)
    edges_of: defaultdict[IssueRef, list[Edge]] = defaultdict(list)
    for edge in edges:
        edges_of[groups.find(edge[0])].append(edge)
    clusters = []
    for lowest, members in groups.all().items():
        own_edges = edges_of[lowest]
        duplicates_of_cluster = {duplicate for duplicate, _ in own_edges}
        originals = (ref for ref in members if ref not in duplicates_of_cluster)
        cluster = DuplicateCluster(
            id=str(lowest),
            members=tuple(members),
            canonical=next(originals, lowest),
            edges=tuple(own_edges),
        )
        clusters.append(cluster)
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
    for cluster in sorted(clusters, key=attrgetter("id")):
        relations = _Relations(cluster, grounds, settings.relations)
        count = 0
        for first, second in _candidates(cluster, settings, seed):
            reason = relations.why_not(first, second)
            reason = reason or _why_not(first, second, seen, texts)
            probability = 0.0
            if reason is None:
                probability = same_problem.probability(
                    texts.usable[first].text, texts.usable[second].text
                )
                if probability < settings.min_same_probability:
                    reason = UNLIKELY_SAME
                elif count >= settings.cluster_cap:
                    reason = "cluster_cap"
            if reason:
                positives.dropped.append(DroppedPair(first, second, 1, reason))
                continue
            count += 1
            seen.add(frozenset((first, second)))
            pair = IssuePair(
                first=first,
                second=second,
                label=1,
                cluster=cluster.id,
                grounds=grounds.get((first, second)),
                same_probability=probability,
            )
            positives.pairs.append(pair)
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


def _candidates(
    cluster: DuplicateCluster, settings: PairSettings, seed: int
) -> Iterator[Edge]:
    """The edges of a cluster, then, if requested, its other pairs in random order."""
    yield from cluster.edges
    if settings.all_within_cluster:
        edges = set(map(frozenset, cluster.edges))
        pairs = combinations(sorted(cluster.members), 2)
        indirect = [pair for pair in pairs if frozenset(pair) not in edges]
        indirect.sort(key=lambda pair: keyed_hash(seed, "within", *pair))
        for low, high in indirect:
            yield (low, high) if high == cluster.canonical else (high, low)


def _why_not(
    first: IssueRef,
    second: IssueRef,
    seen: set[frozenset[IssueRef]],
    texts: RenderedTexts,
) -> str | None:
    if frozenset((first, second)) in seen:
        return "repeated"
    for ref in (first, second):
        if ref not in texts.usable:
            return texts.rejected.get(ref, "not_fetched")
    if texts.usable[first].text == texts.usable[second].text:
        return "same_text"
    return None
