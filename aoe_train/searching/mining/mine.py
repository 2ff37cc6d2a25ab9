"""From the candidates nearest to an anchor to its negatives: ranks, rules on scores, sampling."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from aoe_train.searching.mining.dataset import KnownPositives, Marks, Places
from aoe_train.searching.mining.rank import ByModel, ByWords, Ranked, Scores
from pairkit.app.progress import Listener, Progress
from pairkit.system.seeded import keyed_hash

if TYPE_CHECKING:
    from aoe_train.searching.mining.dataset import MineSettings, MiningDataset, MiningSplit
    from aoe_train.searching.mining.rank import MiningVectors


BEFORE_RANGE, KNOWN = "before_range", "anchor_or_known_positive"


class CandidateRanking(NamedTuple):
    """Candidates of one text, best first, with their scores; -1 stands for none."""

    places: Places
    scores: Scores


class ChosenNegatives(NamedTuple):
    """Negatives by rank, their scores, and how many candidates were turned down for what."""

    places: Places
    scores: Scores
    turned_down: Counter[str]


class NegativeChooser:
    """Chooses by fixed settings.

    A rank is counted among the candidates that are no known positives. A margin is one to the lowest score
    of the anchor's positives, as in sentence-transformers.
    """

    def __init__(
        self, settings: MineSettings, scores: Callable[[int, Places], Scores], texts: Sequence[str]
    ) -> None:
        """Keep what decides."""
        self._settings, self._scores, self._texts = settings, scores, texts

    def choose(
        self,
        text: int,
        rankings: Sequence[CandidateRanking],
        excluded: Sequence[Marks],
        positive_score: float,
    ) -> ChosenNegatives:
        """The negatives of a text."""
        low, high = self._settings.window
        windows, counts = [], Counter[str]()
        for (places, scores), marks in zip(rankings, excluded, strict=True):
            there = int((places >= 0).sum())
            left = np.flatnonzero(~marks[:there])[:high]
            counts[BEFORE_RANGE] += min(low, len(left))
            counts[KNOWN] += int(marks[: left[-1] if len(left) == high else there].sum())
            windows.append(CandidateRanking(places[left[low:]], scores[left[low:]]))
        places, scores = windows[0] if len(windows) == 1 else self._in_turns(text, windows)
        fits = np.ones(len(places), bool)
        for reason, turned_down in self._rules(scores, positive_score):
            counts[reason] += int((fits & turned_down).sum())
            fits &= ~turned_down
        kept = self._sampled(text, places, np.flatnonzero(fits))
        return ChosenNegatives(places[kept], scores[kept], counts)

    def _in_turns(self, text: int, windows: Sequence[CandidateRanking]) -> CandidateRanking:
        """One of each ranking after another, each once, all with the scores that rules are about."""
        places = np.concatenate([window.places for window in windows])
        order = np.lexsort(
            (
                np.repeat(np.arange(len(windows)), [len(window.places) for window in windows]),
                np.concatenate([np.arange(len(window.places)) for window in windows]),
            )
        )
        _, first = np.unique(places[order], return_index=True)
        merged = places[order][np.sort(first)]
        return CandidateRanking(merged, self._scores(text, merged))

    def _rules(self, scores: Scores, positive: float) -> list[tuple[str, Marks]]:
        """What turns candidates down, in sentence-transformers' order."""
        s = self._settings
        return [
            *([("margin", scores + s.margin > positive)] if s.margin is not None else []),
            *(
                [("relative_margin", scores > positive - abs(positive) * s.relative_margin)]
                if s.relative_margin is not None
                else []
            ),
            *([("max_score", scores > s.max_score)] if s.max_score is not None else []),
            *([("min_score", scores < s.min_score)] if s.min_score is not None else []),
        ]

    def _sampled(self, text: int, places: Places, fits: Places) -> Places:
        count = self._settings.negatives
        if self._settings.sampling == "top" or len(fits) <= count:
            return fits[:count]
        anchor = self._texts[text]
        drawn = [
            keyed_hash(self._settings.seed, anchor, self._texts[place]) for place in places[fits].tolist()
        ]
        return np.sort(fits[np.argsort(np.array(drawn, np.uint64), kind="stable")[:count]])


_ANCHORS = 256  # ranked at once
_NUMBERS = 4_000_000  # of the scores that are kept at once
NO_NEGATIVE = "no_negative"


@dataclass(frozen=True)
class FalseNegatives:
    """How many positives would be mined as negatives, if each row were all that is known of its anchor."""

    mined: int = 0
    telling: int = 0
    positives: int = 0

    @property
    def share(self) -> float | None:
        """Of all that would be mined: at least so many are false."""
        return self.positives / self.mined if self.mined else None

    @property
    def share_where_known(self) -> float | None:
        """Of those mined for anchors with further positives."""
        return self.positives / self.telling if self.telling else None

    def __add__(self, other: FalseNegatives) -> FalseNegatives:
        return FalseNegatives(
            self.mined + other.mined, self.telling + other.telling, self.positives + other.positives
        )


@dataclass
class MinedSplit:
    """What became of a split."""

    rows: pl.DataFrame
    negatives: int = 0
    fewer: int = 0
    labelled: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    turned_down: Counter[str] = field(default_factory=Counter)
    false_negatives: FalseNegatives = field(default_factory=FalseNegatives)


def mine_split(
    material: MiningDataset,
    part: MiningSplit,
    settings: MineSettings,
    vectors: MiningVectors | None,
    show: Listener,
    stage: str = "mine",
) -> MinedSplit:
    """Mine for one split."""
    rankers: list[Ranked] = []
    if vectors is not None:
        rankers.append(ByModel(vectors, part.candidates))
    if settings.by != "model":
        rankers.append(ByWords(material.texts, part.candidates, part.positives))
    positives: defaultdict[int, list[int]] = defaultdict(list)
    for anchor, positive in zip(part.anchors.tolist(), part.positives.tolist(), strict=True):
        positives[anchor].append(positive)
    mined = _Miner(material, settings, rankers, positives)
    done = 0
    for block, count in _blocks(list(positives), material.known, settings.window[1], len(part.candidates)):
        mined.block(block, count)
        done += len(block)
        show(Progress(stage, done, len(positives)))
    show(Progress(stage, ended=True))
    return _split(material, part, settings, mined)


class _Miner:
    """Negatives by anchor, as they are found."""

    def __init__(
        self,
        material: MiningDataset,
        settings: MineSettings,
        rankers: Sequence[Ranked],
        positives: dict[int, list[int]],
    ) -> None:
        self._known, self._rankers, self._positives = material.known, rankers, positives
        self._scores, self._measures = rankers[0].scores, settings.measures_positives
        self._chooser = NegativeChooser(settings, self._scores, material.texts)
        self.chosen: dict[int, ChosenNegatives] = {}
        self.positive_scores: dict[tuple[int, int], float] = {}
        self.turned_down: Counter[str] = Counter()
        self.false_negatives = FalseNegatives()

    def block(self, anchors: Places, count: int) -> None:
        found = [ranker.best(anchors, count) for ranker in self._rankers]
        for row, anchor in enumerate(anchors.tolist()):
            self._anchor(anchor, [CandidateRanking(places[row], scores[row]) for places, scores in found])

    def _anchor(self, anchor: int, rankings: list[CandidateRanking]) -> None:
        known, positives = self._known, self._positives[anchor]
        scores = [0.0] * len(positives)
        if self._measures:
            scores = self._scores(anchor, np.array(positives)).tolist()
        excluded = [known.excluded(anchor, ranking.places) for ranking in rankings]
        chosen = self._chooser.choose(anchor, rankings, excluded, min(scores))
        self.chosen[anchor] = chosen
        self.turned_down += chosen.turned_down
        for positive, score in zip(positives, scores, strict=True):
            self.positive_scores[anchor, positive] = score
            seen = [known.seen_by_row(anchor, positive, ranking.places) for ranking in rankings]
            by_row = self._chooser.choose(anchor, rankings, seen, score).places
            telling = len(by_row) if known.has_further(anchor, positive) else 0
            self.false_negatives += FalseNegatives(
                len(by_row), telling, int(known.belong_together(anchor, by_row).sum())
            )


def _blocks(anchors: list[int], known: KnownPositives, high: int, most: int) -> Iterator[tuple[Places, int]]:
    """Anchors to rank together, and how many candidates of each: enough to fill the range in any case."""
    needed = {anchor: min(most, high + known.most_excluded(anchor)) for anchor in anchors}
    ordered = sorted(anchors, key=lambda anchor: (needed[anchor], anchor))
    start = 0
    while start < len(ordered):
        size = _ANCHORS
        while size > 1 and size * needed[ordered[start : start + size][-1]] > _NUMBERS:
            size //= 2
        block = ordered[start : start + size]
        yield np.array(block, np.int64), max(1, needed[block[-1]])
        start += size


def _split(material: MiningDataset, part: MiningSplit, settings: MineSettings, mined: _Miner) -> MinedSplit:
    texts = material.texts
    found = MinedSplit(
        pl.DataFrame(),
        dropped=Counter(part.dropped),
        turned_down=mined.turned_down,
        false_negatives=mined.false_negatives,
    )
    rows: list[list[object]] = []
    for anchor, positive in zip(part.anchors.tolist(), part.positives.tolist(), strict=True):
        chosen = mined.chosen[anchor]
        places = chosen.places.tolist()
        if not places:
            found.dropped[NO_NEGATIVE] += 1
            continue
        found.negatives += len(places)
        found.fewer += len(places) < settings.negatives
        found.labelled += sum((min(anchor, place), max(anchor, place)) in part.negatives for place in places)
        filled = [texts[place] for place in places] + [None] * (settings.negatives - len(places))
        row: list[object] = [texts[anchor], texts[positive], *filled]
        if settings.scores:
            row.append([mined.positive_scores[anchor, positive], *chosen.scores.tolist()])
        rows.append(row)
    names = ["anchor", "positive", *(f"negative_{number}" for number in range(1, settings.negatives + 1))]
    schema: dict[str, Any] = dict.fromkeys(names, pl.String)
    if settings.scores:
        schema["scores"] = pl.List(pl.Float32)
    found.rows = pl.DataFrame(rows, schema=schema, orient="row")
    return found
