"""Whether one model is better than another on held-out pairs, in one word and one line.

Labels of judges may be uncertain: a pair whose label is 1 with probability p counts as a pair of label 1
with weight p, and as one of label 0 with weight 1 - p. That pulls the area under the ROC curve towards one
half, as errors of labels do: if judges err independently of the models and p is calibrated, area - 1/2 is
that of true labels times the labels' reliability, Var(p) / (mean(p) (1 - mean(p))): 1 if p is 0 or 1, and 0
if judges know nothing. Dividing by it gives the area of true labels, so that a gain keeps its size and its
interval widens with the judges' uncertainty. Resampling pairs resamples the judges' errors with them.
Source: Menon et al., Learning from corrupted binary labels (ICML 2015), Corollary 3, where alpha and beta are
here mean(p (1 - p)) / mean(p) and mean(p (1 - p)) / mean(1 - p).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard

import numpy as np

from aoe_train.evaluation.pair_metrics import Binary
from aoe_train.evaluation.resample import Comparison, Interval, Metrics, compare
from pairkit.app.errors import DataError

Word = Literal["ship", "not shown", "worse"]
_FEWEST = 30  # resamples of fewer pairs are too much alike
_FEWEST_OF_EACH = 10  # with five of one label chance ships one gain in twelve, with two one in five
_NAMES = {"roc_auc": "AUC", "spearman": "Spearman"}


@dataclass(frozen=True, slots=True)
class Gain:
    """What a model gains over another, by labels as they stand and as far as they can be relied on."""

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
        if too_few(self.pairs, self.rarer):
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
        pairs = f"{self.pairs:,} pairs" + (f": {TOO_FEW}" if too_few(self.pairs, self.rarer) else "")
        return (
            f"{_NAMES[self.metric]} {100 * self.before:.2f} -> {100 * self.after:.2f}"
            f" ({100 * self.ahead.difference:+.2f} [{low:.2f}, {high:.2f}]{doubts}, {pairs})"
        )


TOO_FEW = "too few to tell"


def too_few(rows: int, rarer: int) -> bool:
    """Whether an interval over so many rows, so few of the rarer label, is itself a matter of chance."""
    return rows < _FEWEST or rarer < _FEWEST_OF_EACH


def gain(one: Metrics, other: Metrics, *, resamples: int, seed: int) -> Gain | None:
    """Compare two models by what tells most of their pairs."""
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
    ahead = compare(ours, theirs, resamples=resamples, seed=seed).get(metric, EVEN)
    rarer = int(min((one.labels == label).sum() for label in (0, 1))) if isinstance(one, Binary) else one.n
    return Gain(metric, there[metric], here[metric], ahead, trust, one.n, rarer)


def _doubted(likely: np.ndarray | None) -> TypeGuard[np.ndarray]:
    return likely is not None and not np.isin(likely, (0, 1)).all()


EVEN = Comparison(0.0, Interval(0.0, 0.0), 1.0)  # of models that rank all pairs alike in all resamples


@dataclass(frozen=True)
class Silver(Metrics):
    """Cosines against probabilities of label 1."""

    cosines: np.ndarray
    likely: np.ndarray

    @property
    def n(self) -> int:
        """Pairs."""
        return len(self.likely)

    def figures(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        """`roc_auc` as by true labels; beyond 1 where judges err on the pairs that models err on."""
        measured = Binary(self.cosines, self.likely).roc_auc(counts)
        return {"roc_auc": 0.5 + (measured - 0.5) / reliability(self.likely, counts)}


def reliability(likely: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(draw,), in [0, 1]: what is left of a figure's distance from chance; NaN where labels tell nothing."""
    total = counts.sum(axis=1)
    mean, square = counts @ likely / total, counts @ likely**2 / total
    spread = square - mean**2
    found: np.ndarray = np.divide(
        spread, mean * (1 - mean), out=np.full(len(counts), np.nan), where=spread > 1e-9
    )
    return found
