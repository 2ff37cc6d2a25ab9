"""From ranked candidates to negatives: range of ranks, rules on scores, sampling."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from aoe_train.searching.mining.mined_dataset import Indices, KnownPositives, Mask
from aoe_train.searching.mining.rank import ByModel, ByWords, Ranked, Scores
from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.system.seeded import keyed_hash

if TYPE_CHECKING:
    from aoe_train.searching.mining.mined_dataset import MineSettings, MiningDataset, MiningSplit
    from aoe_train.searching.mining.rank import MiningVectors


BEFORE_RANGE, KNOWN = "before_range", "anchor_or_known_positive"


class CandidateRanking(NamedTuple):
    """Candidates of one text, best first, with their scores; -1 pads short rankings."""

    indices: Indices
    scores: Scores


class ChosenNegatives(NamedTuple):
    """Negatives by rank, their scores, and the numbers of rejected candidates by reason."""

    indices: Indices
    scores: Scores
    turned_down: Counter[str]


class NegativeChooser:
    """Chooses negatives from rankings.

    Known positives have no rank. Margins are measured from the lowest score of the anchor's positives, as in
    sentence-transformers.
    """

    def __init__(
        self, settings: MineSettings, scores: Callable[[int, Indices], Scores], texts: Sequence[str]
    ) -> None:
        self._settings, self._scores, self._texts = settings, scores, texts

    def choose(
        self,
        text: int,
        rankings: Sequence[CandidateRanking],
        excluded: Sequence[Mask],
        positive_score: float,
    ) -> ChosenNegatives:
        """Choose the negatives of a text."""
        low, high = self._settings.window
        windows, counts = [], Counter[str]()
        for (indices, scores), marks in zip(rankings, excluded, strict=True):
            ranked = int((indices >= 0).sum())
            remaining = np.flatnonzero(~marks[:ranked])[:high]
            counts[BEFORE_RANGE] += min(low, len(remaining))
            counts[KNOWN] += int(marks[: remaining[-1] if len(remaining) == high else ranked].sum())
            windows.append(CandidateRanking(indices[remaining[low:]], scores[remaining[low:]]))
        indices, scores = windows[0] if len(windows) == 1 else self._alternate(text, windows)
        fits = np.ones(len(indices), bool)
        for reason, turned_down in self._rules(scores, positive_score):
            counts[reason] += int((fits & turned_down).sum())
            fits &= ~turned_down
        kept = self._sample(text, indices, np.flatnonzero(fits))
        return ChosenNegatives(indices[kept], scores[kept], counts)

    def _alternate(self, text: int, windows: Sequence[CandidateRanking]) -> CandidateRanking:
        """Merge rankings alternately without repeats, with the scores that the rules use."""
        indices = np.concatenate([window.indices for window in windows])
        order = np.lexsort(
            (
                np.repeat(np.arange(len(windows)), [len(window.indices) for window in windows]),
                np.concatenate([np.arange(len(window.indices)) for window in windows]),
            )
        )
        _, first = np.unique(indices[order], return_index=True)
        merged = indices[order][np.sort(first)]
        return CandidateRanking(merged, self._scores(text, merged))

    def _rules(self, scores: Scores, positive: float) -> list[tuple[str, Mask]]:
        """The rejected candidates by rule, in sentence-transformers' order."""
        s = self._settings
        return [
            *([("margin", scores + s.margin > positive)] if s.margin is not None else []),
            *(
                [("relative_margin", scores > positive - abs(positive) * s.relative_margin)]
                if s.relative_margin is not None
                else []
            ),
        ]

    def _sample(self, text: int, indices: Indices, fits: Indices) -> Indices:
        count = self._settings.num_negatives
        if self._settings.sampling == "top" or len(fits) <= count:
            return fits[:count]
        anchor = self._texts[text]
        drawn = [
            keyed_hash(self._settings.seed, anchor, self._texts[index]) for index in indices[fits].tolist()
        ]
        return np.sort(fits[np.argsort(np.array(drawn, np.uint64), kind="stable")[:count]])


_BLOCK_ANCHORS = 256
_BLOCK_SCORES = 4_000_000
NO_NEGATIVE = "no_negative"


@dataclass(frozen=True)
class FalseNegatives:
    """Counts for the estimate: each row is mined as if its positive were the only known one.

    `mined` negatives in all, `telling` of them for anchors with further positives; `positives` are false.
    """

    mined: int = 0
    telling: int = 0
    positives: int = 0

    @property
    def share(self) -> float | None:
        """Lower bound of the share of false negatives."""
        return self.positives / self.mined if self.mined else None

    @property
    def share_where_known(self) -> float | None:
        """The share among negatives of anchors with further positives."""
        return self.positives / self.telling if self.telling else None

    def __add__(self, other: FalseNegatives) -> FalseNegatives:
        return FalseNegatives(
            self.mined + other.mined, self.telling + other.telling, self.positives + other.positives
        )


@dataclass
class MinedSplit:
    """The result of a split: its rows and counts."""

    rows: pl.DataFrame
    negatives: int = 0
    fewer: int = 0
    labelled: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    turned_down: Counter[str] = field(default_factory=Counter)
    false_negatives: FalseNegatives = field(default_factory=FalseNegatives)


def mine_split(
    dataset: MiningDataset,
    part: MiningSplit,
    settings: MineSettings,
    vectors: MiningVectors | None,
    show: Listener,
    stage: str = "mine",
) -> MinedSplit:
    """Mine the negatives of one split."""
    rankers: list[Ranked] = []
    if vectors is not None:
        rankers.append(ByModel(vectors, part.candidates))
    if settings.by != "model":
        rankers.append(ByWords(dataset.texts, part.candidates, part.positives))
    positives: defaultdict[int, list[int]] = defaultdict(list)
    for anchor, positive in zip(part.anchors.tolist(), part.positives.tolist(), strict=True):
        positives[anchor].append(positive)
    mined = _Miner(dataset, settings, rankers, positives)
    done = 0
    for block, count in _blocks(list(positives), dataset.known, settings.window[1], len(part.candidates)):
        mined.block(block, count)
        done += len(block)
        show(Progress(stage, done, len(positives)))
    show(Progress(stage, ended=True))
    return _split(dataset, part, settings, mined)


class _Miner:
    """Collects negatives by anchor."""

    def __init__(
        self,
        dataset: MiningDataset,
        settings: MineSettings,
        rankers: Sequence[Ranked],
        positives: dict[int, list[int]],
    ) -> None:
        self._known, self._rankers, self._positives = dataset.known, rankers, positives
        self._scores, self._measures = rankers[0].scores, settings.measures_positives
        self._chooser = NegativeChooser(settings, self._scores, dataset.texts)
        self.chosen: dict[int, ChosenNegatives] = {}
        self.positive_scores: dict[tuple[int, int], float] = {}
        self.turned_down: Counter[str] = Counter()
        self.false_negatives = FalseNegatives()

    def block(self, anchors: Indices, count: int) -> None:
        rankings = [ranker.best(anchors, count) for ranker in self._rankers]
        for row, anchor in enumerate(anchors.tolist()):
            self._anchor(
                anchor, [CandidateRanking(indices[row], scores[row]) for indices, scores in rankings]
            )

    def _anchor(self, anchor: int, rankings: list[CandidateRanking]) -> None:
        known, positives = self._known, self._positives[anchor]
        scores = [0.0] * len(positives)
        if self._measures:
            scores = self._scores(anchor, np.array(positives)).tolist()
        excluded = [known.excluded(anchor, ranking.indices) for ranking in rankings]
        chosen = self._chooser.choose(anchor, rankings, excluded, min(scores))
        self.chosen[anchor] = chosen
        self.turned_down += chosen.turned_down
        for positive, score in zip(positives, scores, strict=True):
            self.positive_scores[anchor, positive] = score
            seen = [known.seen_by_row(anchor, positive, ranking.indices) for ranking in rankings]
            by_row = self._chooser.choose(anchor, rankings, seen, score).indices
            telling = len(by_row) if known.has_further(anchor, positive) else 0
            self.false_negatives += FalseNegatives(
                len(by_row), telling, int(known.belong_together(anchor, by_row).sum())
            )


def _blocks(anchors: list[int], known: KnownPositives, high: int, most: int) -> Iterator[tuple[Indices, int]]:
    """Blocks of anchors, and the number of candidates that surely fills the range of each."""
    needed = {anchor: min(most, high + known.most_excluded(anchor)) for anchor in anchors}
    ordered = sorted(anchors, key=lambda anchor: (needed[anchor], anchor))
    start = 0
    while start < len(ordered):
        size = _BLOCK_ANCHORS
        while size > 1 and size * needed[ordered[start : start + size][-1]] > _BLOCK_SCORES:
            size //= 2
        block = ordered[start : start + size]
        yield np.array(block, np.int64), max(1, needed[block[-1]])
        start += size


def _split(dataset: MiningDataset, part: MiningSplit, settings: MineSettings, mined: _Miner) -> MinedSplit:
    texts = dataset.texts
    split = MinedSplit(
        pl.DataFrame(),
        dropped=Counter(part.dropped),
        turned_down=mined.turned_down,
        false_negatives=mined.false_negatives,
    )
    rows: list[list[object]] = []
    for anchor, positive in zip(part.anchors.tolist(), part.positives.tolist(), strict=True):
        chosen = mined.chosen[anchor]
        indices = chosen.indices.tolist()
        if not indices:
            split.dropped[NO_NEGATIVE] += 1
            continue
        split.negatives += len(indices)
        split.fewer += len(indices) < settings.num_negatives
        split.labelled += sum((min(anchor, index), max(anchor, index)) in part.negatives for index in indices)
        filled = [texts[index] for index in indices] + [None] * (settings.num_negatives - len(indices))
        row: list[object] = [texts[anchor], texts[positive], *filled]
        if settings.scores:
            row.append([mined.positive_scores[anchor, positive], *chosen.scores.tolist()])
        rows.append(row)
    names = ["anchor", "positive", *(f"negative_{number}" for number in range(1, settings.num_negatives + 1))]
    schema: dict[str, Any] = dict.fromkeys(names, pl.String)
    if settings.scores:
        schema["scores"] = pl.List(pl.Float32)
    split.rows = pl.DataFrame(rows, schema=schema, orient="row")
    return split
