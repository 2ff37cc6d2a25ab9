"""Negative pairs: two issues of one repository and split that are about different things.

Issues that stand in positives are paired anew among themselves, each about as often as it stands in
positives. So a single text says nothing about the label: a model must compare. Issues without a duplicate
come in where these don't suffice.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gis_builder.pairing.sampler import Matching, NegativeSampler, Timeline, WantedGaps, opening_times
from gis_builder.settings.pairs import PairSettings
from gis_builder.settings.strategies import Retriever, strategy_of
from gis_builder.store.records import DroppedPair, DuplicateCluster, IssuePair, IssueRef, IssueText

_WORD = re.compile(r"\w+")

Link = frozenset[IssueRef]  # two issues of which one mentions the other


class NegativeFilter:
    """Says why two issues of one repository may not be a negative, or None if they may.

    `same_cluster` and `near_identical`: one group of the split stage, by verdict or by text. `linked`: one
    mentions the other. `same_title`: equal but for case and punctuation. `too_similar`: the BM25 score of one
    for the other is at least `limit` of its score for itself.
    """

    def __init__(
        self,
        *,
        cluster: Mapping[IssueRef, str],
        group: Mapping[IssueRef, IssueRef],
        titles: Mapping[IssueRef, str],
        linked: Collection[Link],
        share: Callable[[IssueRef, IssueRef], float],
        limit: float,
    ) -> None:
        self._cluster, self._group, self._titles = cluster, group, titles
        self._linked, self._share, self._limit = linked, share, limit

    def why_not(self, one: IssueRef, other: IssueRef) -> str | None:
        """The reason code, cheapest check first."""
        if one == other or (one in self._cluster and self._cluster[one] == self._cluster.get(other)):
            return "same_cluster"
        if self._group.get(one, one) == self._group.get(other, other):
            return "near_identical"
        if frozenset((one, other)) in self._linked:
            return "linked"
        if self._titles[one] and self._titles[one] == self._titles[other]:
            return "same_title"
        return "too_similar" if self._share(one, other) >= self._limit else None


def plain_title(text: str) -> str:
    """The words of a rendered text's first line in lower case."""
    return " ".join(_WORD.findall(text.partition("\n")[0].lower()))


@dataclass(slots=True)
class Negatives:
    """The negatives of each split, what the guard dropped, and how many are missing of those wanted."""

    pairs: dict[str, list[IssuePair]] = field(default_factory=dict)
    dropped: list[DroppedPair] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)
    with_single: int = 0  # negatives with an issue that stands in no positive of its split


class _Sources(NamedTuple):
    """What every drawing looks things up in."""

    cluster: Mapping[IssueRef, str]
    group: Mapping[IssueRef, IssueRef]
    texts: Mapping[IssueRef, IssueText]
    linked: Collection[Link]
    settings: PairSettings
    seed: int


def make_negatives(
    positives: Mapping[str, Sequence[IssuePair]],
    wanted: Mapping[str, int],
    split_of: Mapping[IssueRef, str],
    group: Mapping[IssueRef, IssueRef],
    clusters: Iterable[DuplicateCluster],
    texts: Mapping[IssueRef, IssueText],
    linked: Collection[Link],
    settings: PairSettings,
    seed: int,
) -> Negatives:
    """Draw `wanted` negatives for each split, in each repository in proportion to its positives."""
    cluster = {member: c.id for c in clusters for member in c.members}
    sources = _Sources(cluster, group, texts, linked, settings, seed)
    everyone: defaultdict[tuple[str, str], list[IssueRef]] = defaultdict(list)
    for ref in sorted(split_of):
        everyone[split_of[ref], ref.repo].append(ref)
    made = Negatives()
    for split, pairs in positives.items():
        grounds = [
            _RepoNegatives(own, everyone[split, repo], sources)
            for repo, own in sorted(_by_repo(pairs).items())
        ]
        made.missing[split] = _draw(grounds, wanted[split])
        made.pairs[split] = [pair for ground in grounds for pair in ground.sampler.pairs]
        made.dropped += [drop for ground in grounds for drop in ground.sampler.dropped]
        made.with_single += sum(ground.with_single() for ground in grounds)
    made.dropped = [
        drop for drop in made.dropped if drop.reason != "same_cluster"
    ]  # no candidate to begin with
    return made


def _by_repo(pairs: Iterable[IssuePair]) -> dict[str, list[IssuePair]]:
    by_repo: defaultdict[str, list[IssuePair]] = defaultdict(list)
    for pair in pairs:
        by_repo[pair.first.repo].append(pair)
    return by_repo


def shares(positives: Sequence[int], wanted: int) -> list[int]:
    """How many of `wanted` negatives each repository gives, by how many positives each has."""
    total = sum(positives)
    given, done = [], 0
    for count in positives:
        # Running sums rounded down: the shares add up to what is wanted.
        before, done = done, done + count
        given.append(wanted * done // total - wanted * before // total)
    return given


def _draw(grounds: Sequence[_RepoNegatives], wanted: int) -> int:
    """Share `wanted` out; what one repository can't give the others give. How many are missing in the end."""
    counts = shares([ground.positives for ground in grounds], wanted)
    for ground, count in zip(grounds, counts, strict=True):
        ground.draw(count)
    missing = wanted - sum(len(ground.sampler.pairs) for ground in grounds)
    for ground in grounds:
        if missing > 0:
            missing -= ground.draw(missing)
    return missing


class _RepoNegatives:
    """One repository within one split, where negatives are drawn."""

    def __init__(self, pairs: Sequence[IssuePair], everyone: Sequence[IssueRef], sources: _Sources) -> None:
        self.positives = len(pairs)
        self._positives = pairs
        self._paired = {ref for pair in pairs for ref in (pair.first, pair.second)}
        self._everyone = everyone
        self._sources = sources
        self._settings = sources.settings
        self._refs: Sequence[IssueRef] = sorted(self._paired)
        self._place = {ref: place for place, ref in enumerate(self._refs)}
        self._strategy = strategy_of(self._settings.negatives)
        self._retriever: Retriever | None = None
        self._ranking: Callable[[int], Iterable[int]] | None = None
        guard = NegativeFilter(
            cluster=sources.cluster,
            group=sources.group,
            titles={ref: plain_title(sources.texts[ref].text) for ref in everyone},
            linked=sources.linked,
            share=self._share,
            limit=self._settings.guard_share,
        )
        self.sampler = NegativeSampler(pairs, guard.why_not, sources.seed)

    def draw(self, count: int) -> int:
        """Draw up to `count` more; how many were drawn."""
        if count <= 0:
            return 0
        before = len(self.sampler.pairs)
        goal = before + count
        hard = math.ceil(count * self._strategy.share)
        if self._settings.match == "none":
            self.sampler.draw_hard(hard, self._proposed, self._strategy.kind)
        else:
            self._draw_matched(count, hard)
        # Whatever is still missing comes at random.
        self.sampler.draw_random(goal - len(self.sampler.pairs))
        if len(self.sampler.pairs) < goal:
            self._widen()
            self.sampler.draw_random_from(self._everyone, goal - len(self.sampler.pairs))
        # An index is large; it is built again in the rare case that more is asked for.
        self._retriever = self._ranking = None
        return len(self.sampler.pairs) - before

    def _draw_matched(self, count: int, hard: int) -> None:
        """Draw negatives whose gaps in time are those of the positives, as far as the issues allow."""
        everyone = Timeline(opening_times(self._sources.texts, self._everyone), self._everyone)
        wanted = WantedGaps([everyone.gap(pair.first, pair.second) for pair in self._positives], count)
        paired = everyone.only(self._paired.__contains__)
        of_paired = Matching(self.sampler, paired, wanted, self._sources.seed)
        of_everyone = Matching(self.sampler, everyone, wanted, self._sources.seed)
        of_everyone.draw_hard(hard, self._proposed, self._strategy.kind)
        of_paired.draw_random()
        if wanted:
            self._widen()
            of_everyone.draw_others()

    def with_single(self) -> int:
        """How many negatives have an issue without a positive."""
        return sum(
            pair.first not in self._paired or pair.second not in self._paired for pair in self.sampler.pairs
        )

    def _widen(self) -> None:
        if len(self._refs) < len(self._everyone):
            self._refs = self._everyone
            self._place = {ref: place for place, ref in enumerate(self._refs)}
            self._retriever = self._ranking = None

    def _index(self) -> Retriever:
        if self._retriever is None:
            self._retriever = Retriever(self._texts())
        return self._retriever

    def _texts(self) -> list[str]:
        return [self._sources.texts[ref].text for ref in self._refs]

    def _share(self, one: IssueRef, other: IssueRef) -> float:
        return self._index().share(self._place[one], self._place[other])

    def _proposed(self, ref: IssueRef) -> list[IssueRef]:
        """What the strategy would try as negatives of an issue, best first."""
        if self._ranking is None:
            # The guard's index answers for BM25, too.
            by_words = self._strategy.rank is Retriever
            self._ranking = self._index().__getitem__ if by_words else self._strategy.ranking(self._texts())
        return [self._refs[place] for place in self._ranking(self._place[ref])]
