"""Whether a model gained over another: the difference, its interval and the verdict.

Labels of LLM judges are uncertain: a pair with probability p of label 1 counts as a pair of label 1 with
weight p and of label 0 with weight 1 - p. This moves the area under the ROC curve towards 1/2, like label
errors do. If judges err independently of the models and p is calibrated, area - 1/2 is that of the true
labels times their reliability, Var(p) / (mean(p) (1 - mean(p))): 1 if all p are 0 or 1, and 0 if p is
constant. Dividing by the reliability results in the area of the true labels: the size of a gain is unbiased,
and its interval widens with the judges' uncertainty, since resampling pairs also resamples judges' errors.
Source: Menon et al., Learning from corrupted binary labels (ICML 2015), Corollary 3, where alpha and beta are
here mean(p (1 - p)) / mean(p) and mean(p (1 - p)) / mean(1 - p).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy import ndarray

from aoe_train.evaluation.pair_metrics import Binary, PairMetrics
from aoe_train.evaluation.search_results import MAP, MRR, NDCG, SearchMetrics
from aoe_train.evaluation.tasks import (
    Comparison,
    Interval,
    MeanMetrics,
    Metrics,
    Resampling,
    compare,
    intervals,
    select_examples,
)

Verdict = Literal["better", "inconclusive", "worse", "not judged"]
_MIN_PAIRS = 30  # with fewer, resamples are too similar
# With five pairs of a label, one model in twelve is `better` by chance; with two, one in five.
_MIN_PER_LABEL = 10
# Names of metrics in messages; P@1 is named like this already.
_NAMES = {
    "roc_auc": "AUC",
    "spearman": "Spearman",
    MRR: "MRR",
    MAP: "MAP@10",
    NDCG: "nDCG@10",
}
# What a metric is a mean over; others are means over queries.
_EXAMPLES = {"roc_auc": "pairs", "spearman": "pairs", MAP: "texts"}
TOO_FEW = "too few to tell"
_LEVEL = Resampling.level
# The comparison of two models that rank pairs equally in all resamples.
EVEN = Comparison(0.0, Interval(0.0, 0.0), 1.0)


@dataclass(frozen=True)
class Gain:
    """A model's gain over another, corrected for the reliability of labels.

    Attributes:
        metric: The metric that decides.
        before: The other model's metric.
        after: The model's metric.
        ahead: The difference with its interval; for a `share` of the queries, that over all queries.
        level: The level of this interval: 0.95, or higher if the intervals of several gains hold together.
        reliability: The factor of `reliability`; 1 for certain labels.
        pairs: Number of compared pairs, or of queries.
        rarer: Number of pairs with the rarer label, or of queries on which the models' metrics differ.
        share: For search results: the share of queries with different results; the others gain 0.
        trained_rows: Rows that one of both models was trained on. They are left out if `is_judged`.
        is_judged: Whether there is a verdict.
    """

    metric: str
    before: float
    after: float
    ahead: Comparison
    reliability: float
    pairs: int
    rarer: int
    share: float | None = None
    trained_rows: int = 0
    is_judged: bool = True
    level: float = _LEVEL

    @property
    def word(self) -> Verdict:
        """`better` if the interval is above 0, `worse` if below; else or with few pairs, `inconclusive`.

        `not judged` if the rows that weren't trained on are too few or have no metric.
        """
        if not self.is_judged:
            return "not judged"
        if too_few(self.pairs, self.rarer):
            return "inconclusive"
        if self.ahead.interval.low > 0:
            return "better"
        return "worse" if self.ahead.interval.high < 0 else "inconclusive"

    @property
    def level_note(self) -> str:
        """The level of the interval, unless it is 95 %."""
        return f"; {100 * self.level:.1f} %" if self.level > _LEVEL else ""

    def to_dict(self) -> dict[str, Any]:
        """The object in JSON and run.json; metrics are not multiplied by 100."""
        values = {
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
        if self.share is not None:
            values["share"] = self.share
        if self.trained_rows:
            values["trained_rows"] = self.trained_rows
        if self.level > _LEVEL:
            values["level"] = self.level
        return values

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Gain:
        """The inverse of `to_dict`."""
        return cls(
            metric=stored["metric"],
            before=stored["before"],
            after=stored["after"],
            ahead=Comparison(
                stored["difference"], Interval(*stored["ci95"]), float("nan")
            ),
            reliability=stored["reliability"],
            pairs=stored["pairs"],
            rarer=stored["rarer"],
            share=stored.get("share"),
            trained_rows=stored.get("trained_rows", 0),
            level=stored.get("level", _LEVEL),
            is_judged=stored["verdict"] != "not judged",
        )

    def __str__(self) -> str:
        if not self.is_judged:
            return f"trained on {self.trained_rows:,} of {self.pairs:,} rows"
        low, high = (100 * bound for bound in self.ahead.interval)
        name = _NAMES.get(self.metric, self.metric)
        change = f"{name} {100 * self.before:.2f} -> {100 * self.after:.2f}"
        bounds = f"[{low:.2f}, {high:.2f}{self.level_note}]"
        gained = f"{100 * self.ahead.difference:+.2f} {bounds}"
        limits = ""
        if self.trained_rows:
            limits += f", without {self.trained_rows:,} trained on"
        if too_few(self.pairs, self.rarer):
            limits += f": {TOO_FEW}"
        if self.share is not None:
            queries = f"{self.pairs:,} queries with different results"
            return f"{change} on {queries}{limits}; {gained} on all queries"
        corrected = "" if self.reliability == 1 else ", corrected for uncertain labels"
        examples = _EXAMPLES.get(self.metric, "queries")
        return f"{change} ({gained}{corrected}, {self.pairs:,} {examples}{limits})"


def too_few(rows: int, rarer: int) -> bool:
    """Whether an interval is unreliable, with this many rows of which `rarer` have the rarer label."""
    return rows < _MIN_PAIRS or rarer < _MIN_PER_LABEL


def gain(
    model: Metrics,
    rival: Metrics,
    resamples: Resampling,
    trained: Sequence[int] | ndarray = (),
) -> Gain | None:
    """Compare two models by AUC for binary labels, the first metric of searches, or Spearman's rho.

    The examples with the numbers `trained` are left out. If these are most, or no metric is defined without
    them, the gain is that of all examples, and is not judged.
    """
    if not len(trained):
        return _gain(model, rival, resamples)
    measured = None
    others = np.setdiff1d(np.arange(model.n), trained)
    if len(others) >= max(2, len(trained)):  # one example has no metric
        measured = _gain(
            select_examples(model, others), select_examples(rival, others), resamples
        )
    is_judged = measured is not None and not np.isnan(measured.after)
    if not is_judged:
        measured = _gain(model, rival, resamples)
    return measured and replace(
        measured, trained_rows=len(trained), is_judged=is_judged
    )


def _gain(model: Metrics, rival: Metrics, resamples: Resampling) -> Gain | None:
    """The gain on all examples; None if the metric is undefined, or the labels are too uncertain."""
    metric = "roc_auc" if isinstance(model, Binary) else "spearman"
    scores = model.scores()
    rarer = model.rarer_label() if isinstance(model, Binary) else model.n
    factor = 1.0
    share = None
    if isinstance(model, SearchMetrics) and isinstance(rival, SearchMetrics):
        metric = next(iter(model.outcomes))
        share = model.share
        differences = model.outcomes[metric].astype(float) - rival.outcomes[metric]
        rarer = int(np.count_nonzero(differences))
        ahead = _over_all_queries(metric, differences, share, resamples)
    else:
        ours = _with_uncertain_labels(model)
        if isinstance(ours, UncertainLabels):
            factor = reliability(ours.labels, np.ones((1, ours.n))).item()
        if metric not in scores or np.isnan(factor):
            return None
        compared = compare(ours, _with_uncertain_labels(rival), resamples)
        ahead = compared.get(metric, EVEN)
    before = rival.scores()[metric]
    after = scores[metric]
    n = model.n
    level = resamples.level
    return Gain(metric, before, after, ahead, factor, n, rarer, share, level=level)


def _with_uncertain_labels(metrics: Metrics) -> Metrics:
    """Metrics against the labels' probabilities; unchanged if labels are certain."""
    if not isinstance(metrics, Binary):
        return metrics
    probabilities = metrics.probabilities
    if probabilities is None or np.isin(probabilities, (0, 1)).all():
        return metrics
    return UncertainLabels(metrics.cosines, probabilities)


def _over_all_queries(
    metric: str, differences: ndarray, share: float | None, resamples: Resampling
) -> Comparison:
    """The difference of P@1 or MRR over all queries; its interval is over the judged ones."""
    over_all = MeanMetrics({metric: differences * (1 if share is None else share)})
    interval = intervals(over_all, resamples)[metric]
    return Comparison(over_all.scores()[metric], interval, float("nan"))


@dataclass(frozen=True)
class UncertainLabels(PairMetrics):
    """Cosines against probabilities of label 1."""

    def figures(self, counts: ndarray) -> dict[str, ndarray]:
        """`roc_auc` for the true labels; above 1 if judges and models err on the same pairs."""
        measured = Binary(self.cosines, self.labels).roc_auc(counts)
        above_chance = (measured - 0.5) / reliability(self.labels, counts)
        return {"roc_auc": 0.5 + above_chance}


def reliability(probabilities: ndarray, counts: ndarray) -> ndarray:
    """(draw,), in [0, 1]: the factor by which uncertain labels shrink AUC - 1/2; NaN for constant labels."""
    total = counts.sum(axis=1)
    mean = counts @ probabilities / total
    mean_square = counts @ probabilities**2 / total
    variance = mean_square - mean**2
    factor = np.full(len(counts), np.nan)
    np.divide(variance, mean * (1 - mean), out=factor, where=variance > 1e-9)
    return factor
