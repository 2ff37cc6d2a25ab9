"""Negative pairs: two issues of one repository and split that are about different things.

Negatives reuse the issues of positives, each about as often as in positives. So one text alone reveals little
about the label, and a model must compare both. Issues without a duplicate are used only if these don't
suffice. An issue whose duplicate is in another repository is in negatives of its own repository, with the
time gaps of such positives.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct

from gis_builder.pairing.sampler import (
    GapMatcher,
    NegativeSampler,
    PositiveEnd,
    Timeline,
    WantedGaps,
    opening_times,
)
from gis_builder.pairing.split import Splits
from gis_builder.settings import PairSettings
from gis_builder.settings.negative_strategies import (
    NegativeStrategy,
    Retriever,
    strategy_of,
)
from gis_builder.store import (
    DroppedPair,
    DuplicateCluster,
    IssuePair,
    IssueRef,
    IssueText,
)
from pairkit.similarity.terms import terms

Link = frozenset[IssueRef]  # two issues of which one mentions the other


class Negatives(Struct):
    """The negatives of each split, the dropped pairs, and the number of missing negatives."""

    pairs: dict[str, list[IssuePair]] = {}
    dropped: list[DroppedPair] = []
    missing: dict[str, int] = {}
    with_single: int = 0  # negatives with an issue that is in no positive of its split


class _Inputs(NamedTuple):
    cluster: Mapping[IssueRef, str]
    group: Mapping[IssueRef, IssueRef]
    texts: Mapping[IssueRef, IssueText]
    linked: Collection[Link]
    settings: PairSettings
    seed: int


def make_negatives(
    splits: Splits,
    clusters: Iterable[DuplicateCluster],
    texts: Mapping[IssueRef, IssueText],
    linked: Collection[Link],
    settings: PairSettings,
    seed: int,
) -> Negatives:
    """Draw the negatives of each split, in each repository in proportion to its positives."""
    cluster: dict[IssueRef, str] = {}
    for duplicates in clusters:
        cluster |= dict.fromkeys(duplicates.members, duplicates.id)
    inputs = _Inputs(cluster, splits.group, texts, linked, settings, seed)
    issues: defaultdict[tuple[str, str], list[IssueRef]] = defaultdict(list)
    for ref in sorted(splits.of):
        issues[splits.of[ref], ref.repo].append(ref)
    negatives = Negatives()
    for split, pairs in splits.positives.items():
        drawers = []
        for repo, ends in sorted(_ends_by_repo(pairs).items()):
            drawers.append(_RepoNegatives(ends, issues[split, repo], inputs))
        wanted = splits.negatives_wanted[split]
        negatives.missing[split] = _draw_in_all_repos(drawers, wanted)
        negatives.pairs[split] = []
        for drawer in drawers:
            negatives.pairs[split] += drawer.sampler.pairs
            negatives.with_single += drawer.with_single()
            for drop in drawer.sampler.dropped:
                if drop.reason != "same_cluster":  # these were never candidates
                    negatives.dropped.append(drop)
    return negatives


def _ends_by_repo(pairs: Iterable[IssuePair]) -> dict[str, list[PositiveEnd]]:
    """Both issues of each positive, by their own repositories."""
    by_repo: defaultdict[str, list[PositiveEnd]] = defaultdict(list)
    for pair in pairs:
        by_repo[pair.first.repo].append(PositiveEnd(pair.first, pair.second))
        by_repo[pair.second.repo].append(PositiveEnd(pair.second, pair.first))
    return by_repo


def shares(positives: Sequence[int], wanted: int) -> list[int]:
    """Distribute `wanted` negatives over repositories in proportion to their positives."""
    total = sum(positives)
    counts = []
    seen = 0
    for count in positives:
        # Differences of running sums rounded down add up to exactly `wanted`.
        before = wanted * seen // total
        seen += count
        counts.append(wanted * seen // total - before)
    return counts


def _draw_in_all_repos(drawers: Sequence[_RepoNegatives], wanted: int) -> int:
    """Draw in all repositories; if one has too few, the others draw more. Returns the number missing."""
    counts = shares([len(drawer.ends) for drawer in drawers], wanted)
    for drawer, count in zip(drawers, counts, strict=True):
        drawer.draw(count)
    missing = wanted - sum(len(drawer.sampler.pairs) for drawer in drawers)
    for drawer in drawers:
        missing -= drawer.draw(missing)
    return missing


class _RepoNegatives:
    """Draws the negatives of one repository and split."""

    def __init__(
        self,
        ends: Sequence[PositiveEnd],
        issues: Sequence[IssueRef],
        inputs: _Inputs,
    ) -> None:
        self.ends = ends
        self._paired = {end.issue for end in ends}
        self._issues = issues
        self._inputs = inputs
        self._settings = inputs.settings
        self._strategy = strategy_of(self._settings.negatives)
        self._candidates = self._candidates_of(sorted(self._paired))
        self._titles = {}
        for ref in issues:
            title, _, _ = inputs.texts[ref].text.partition("\n")
            self._titles[ref] = terms(title)
        self.sampler = NegativeSampler(ends, self._rejection_reason, inputs.seed)

    def draw(self, count: int) -> int:
        """Draw up to `count` more negatives and return their number."""
        if count <= 0 or len(self._issues) < 2:
            return 0
        count_before = len(self.sampler.pairs)
        goal = count_before + count
        hard = math.ceil(count * self._strategy.share)
        if self._settings.match == "none":
            self.sampler.draw_hard(hard, self._candidates.ranked, self._try_hard)
        else:
            self._draw_matched(count, hard)
        self.sampler.draw_random(goal - len(self.sampler.pairs))
        if len(self.sampler.pairs) < goal:
            self._use_all_issues()
            self.sampler.draw_random_from(self._issues, goal - len(self.sampler.pairs))
        # Free the large index; it is rebuilt in the rare case that more negatives are needed.
        self._candidates = self._candidates_of(self._candidates.refs)
        return len(self.sampler.pairs) - count_before

    def _try_hard(self, anchor: IssueRef, partner: IssueRef) -> bool:
        return self.sampler.try_pair(anchor, partner, self._strategy.kind)

    def _draw_matched(self, count: int, hard: int) -> None:
        """Draw negatives with the time gaps of the positives, as far as possible."""
        elsewhere = [end.other for end in self.ends]
        opened = opening_times(self._inputs.texts, [*self._issues, *elsewhere])
        timeline = Timeline(opened, self._issues)
        wanted = WantedGaps([timeline.gap(*end) for end in self.ends], count)
        paired = timeline.only(self._paired.__contains__)
        paired_matcher = GapMatcher(self.sampler, paired, wanted, self._inputs.seed)
        matcher = GapMatcher(self.sampler, timeline, wanted, self._inputs.seed)
        matcher.draw_hard(hard, self._candidates.ranked, self._try_hard)
        paired_matcher.draw_random()
        if wanted:
            self._use_all_issues()
            matcher.draw_others()

    def with_single(self) -> int:
        """Number of negatives with an issue that is in no positive."""
        return sum(
            not self._paired.issuperset((pair.first, pair.second))
            for pair in self.sampler.pairs
        )

    def _rejection_reason(self, first: IssueRef, second: IssueRef) -> str | None:
        """The reason code if two issues may be duplicates; the cheapest checks come first."""
        cluster = self._inputs.cluster
        group = self._inputs.group
        if cluster.get(first, first) == cluster.get(second, second):
            return "same_cluster"
        if group.get(first, first) == group.get(second, second):
            return "near_identical"
        if frozenset((first, second)) in self._inputs.linked:
            return "linked"
        if self._titles[first] and self._titles[first] == self._titles[second]:
            return "same_title"
        share = self._candidates.bm25_share(first, second)
        return "too_similar" if share >= self._settings.guard_share else None

    def _candidates_of(self, refs: Sequence[IssueRef]) -> _Candidates:
        texts = [self._inputs.texts[ref].text for ref in refs]
        return _Candidates(refs, texts, self._strategy)

    def _use_all_issues(self) -> None:
        if len(self._candidates.refs) < len(self._issues):
            self._candidates = self._candidates_of(self._issues)


class _Candidates:
    """Issues to draw from; their indices are built on first use."""

    def __init__(
        self, refs: Sequence[IssueRef], texts: Sequence[str], strategy: NegativeStrategy
    ) -> None:
        self.refs = refs
        self._texts = texts
        self._strategy = strategy
        self._index_of = {ref: index for index, ref in enumerate(refs)}

    def bm25_share(self, first: IssueRef, second: IssueRef) -> float:
        """How similar two issues are, see `Retriever.share`."""
        return self._bm25.share(self._index_of[first], self._index_of[second])

    def ranked(self, ref: IssueRef) -> list[IssueRef]:
        """The partners that the strategy proposes for an issue, best first."""
        return [self.refs[index] for index in self._ranking(self._index_of[ref])]

    @cached_property
    def _bm25(self) -> Retriever:
        return Retriever(self._texts)

    @cached_property
    def _ranking(self) -> Callable[[int], Iterable[int]]:
        # BM25 as a strategy shares its index with the check for too similar texts.
        if self._strategy.rank is Retriever:
            return self._bm25.__getitem__
        return self._strategy.ranking(self._texts)
