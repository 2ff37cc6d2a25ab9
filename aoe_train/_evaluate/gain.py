"""Whether one model is better than another on held-out pairs, in one word and one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard

import numpy as np

from aoe_train._evaluate.binary import Binary
from aoe_train._evaluate.resample import Comparison, Interval, Judged, compare
from aoe_train._evaluate.silver import Silver, reliability
from pairkit.errors import DataError

Word = Literal["ship", "not shown", "worse"]
_FEWEST = 30  # resamples of fewer pairs are too much alike
_FEWEST_OF_EACH = 10  # with five of one label chance ships one gain in twelve, with two one in five
_NAMES = {"roc_auc": "AUC", "spearman": "Spearman"}


@dataclass(frozen=True, slots=True)
class Gain:
    """What a model gains over another, by labels as they stand and as far as they can be relied on.

    Attributes:
        metric: `roc_auc` for labels 0 and 1, `spearman` for scores.
        before: The other model's figure, by the labels as they stand.
        after: The model's.
        ahead: The gain, and 95 % of its paired resamples; labels that judges doubt count as `Silver` says.
        reliability: Of the labels, in [0, 1]; 1 where nobody doubts them.
        pairs: How many were judged.
        rarer: How many of them have the rarer of two labels; all, where labels are scores.
    """

    metric: str
    before: float
    after: float
    ahead: Comparison
    reliability: float
    pairs: int
    rarer: int

    @property
    def word(self) -> Word:
        """`ship` if the interval lies above 0, `worse` if below, else `not shown`, as of very few pairs."""
        if self.pairs < _FEWEST or self.rarer < _FEWEST_OF_EACH:
            return "not shown"
        if self.ahead.interval.low > 0:
            return "ship"
        return "worse" if self.ahead.interval.high < 0 else "not shown"

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON and in run.json, each figure in its own range."""
        return {
            "verdict": self.word,
            "metric": self.metric,
            "before": self.before,
            "after": self.after,
            "difference": self.ahead.difference,
            "ci95": list(self.ahead.interval),
            "reliability": self.reliability,
            "pairs": self.pairs,
            "rarer": self.rarer,
        }

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Gain:
        """What `to_dict` told."""
        ahead = Comparison(told["difference"], Interval(*told["ci95"]), float("nan"))
        figures = told["before"], told["after"]
        return cls(told["metric"], *figures, ahead, told["reliability"], told["pairs"], told["rarer"])

    def __str__(self) -> str:
        low, high = (100 * bound for bound in self.ahead.interval)
        doubts = "" if self.reliability == 1 else ", allowing for the judges' doubts"
        return (
            f"{_NAMES[self.metric]} {100 * self.before:.2f} -> {100 * self.after:.2f}"
            f" ({100 * self.ahead.difference:+.2f} [{low:.2f}, {high:.2f}]{doubts}, {self.pairs:,} pairs)"
        )


def gain(one: Judged, other: Judged, *, draws: int, seed: int) -> Gain | None:
    """Compare two models by what tells most of their pairs.

    Args:
        one: A model on a task of pairs.
        other: Another on the same task.
        draws: Bootstrap resamples.
        seed: Which ones.

    Returns:
        None where the labels tell nothing of which model is better, or the task is none of pairs.

    Raises:
        DataError: They were judged on different pairs.
    """
    metric = "roc_auc" if isinstance(one, Binary) else "spearman"
    here, there = one.scores(), other.scores()
    if metric not in here:
        return None
    trust, ours, theirs = 1.0, one, other
    if isinstance(one, Binary) and isinstance(other, Binary) and _doubted(one.likely):
        if one.n != other.n:
            raise DataError(f"{one.n} pairs against {other.n}; expected the same ones")
        trust = float(reliability(one.likely, np.ones((1, one.n)))[0])
        if not trust > 0:
            return None
        ours, theirs = Silver(one.cosines, one.likely), Silver(other.cosines, one.likely)
    ahead = compare(ours, theirs, draws=draws, seed=seed).get(metric, _EVEN)
    rarer = int(min((one.labels == label).sum() for label in (0, 1))) if isinstance(one, Binary) else one.n
    return Gain(metric, there[metric], here[metric], ahead, trust, one.n, rarer)


def _doubted(likely: np.ndarray | None) -> TypeGuard[np.ndarray]:
    return likely is not None and not np.isin(likely, (0, 1)).all()


_EVEN = Comparison(0.0, Interval(0.0, 0.0), 1.0)  # of models that rank all pairs alike in all resamples
