"""From the candidates nearest to an anchor to its negatives: ranks, rules on scores, sampling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from aoe_train.searching.mining.known_positives import Marks, Places
from aoe_train.searching.mining.rank import Scores
from pairkit.system.seeded import keyed_hash

if TYPE_CHECKING:
    from aoe_train.searching.mining.settings import MineSettings

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
