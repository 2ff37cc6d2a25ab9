"""Scores a model on tasks, with intervals and the overlap with training texts, and shows whether it gained.

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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy import ndarray

from aoe_train.encoding.embedders.embedder import Embedder
from aoe_train.evaluation.overlap import Overlap, trained_examples
from aoe_train.evaluation.pair_metrics import Binary, PairMetrics
from aoe_train.evaluation.resample import (
    Comparison,
    Interval,
    MeanMetrics,
    Metrics,
    Resampling,
    compare,
    intervals,
    select_examples,
)
from aoe_train.evaluation.search_results import (
    MAP,
    MRR,
    NDCG,
    SearchMetrics,
    SearchTask,
)
from aoe_train.evaluation.tasks import (
    EvaluationTask,
    Result,
    TaskMetrics,
    TaskVectors,
    defined,
    summarise,
)
from aoe_train.settings.train_settings import Purpose
from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.errors import DataError

Word = Literal["better", "inconclusive", "worse", "not judged"]
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
# The examples of metrics; those of others are queries.
_EXAMPLES = {"roc_auc": "pairs", "spearman": "pairs", MAP: "texts"}
TOO_FEW = "too few to tell"
NONE_TRAINED = np.empty(0, np.int64)
# The comparison of two models that rank pairs equally in all resamples.
EVEN = Comparison(0.0, Interval(0.0, 0.0), 1.0)


@dataclass(frozen=True)
class Gain:
    """A model's gain over another, corrected for the reliability of labels.

    For search results, MRR and MAP, `pairs` is the number of queries, and `rarer` the number of those on
    which the models' metrics differ. For search results, `ahead` is the gain over all queries, of which
    `share` have different results and the others gain 0. One of both models was trained on `trained_rows` and
    their labels: they are left out, or, if they are most rows, there is no verdict.
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

    @property
    def word(self) -> Word:
        """`better` if the interval is above 0, `worse` if below; else or with few pairs, `inconclusive`.

        `not judged` if most rows were trained on.
        """
        if not self.is_judged:
            return "not judged"
        if too_few(self.pairs, self.rarer):
            return "inconclusive"
        if self.ahead.interval.low > 0:
            return "better"
        return "worse" if self.ahead.interval.high < 0 else "inconclusive"

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
            is_judged=stored["verdict"] != "not judged",
        )

    def __str__(self) -> str:
        if not self.is_judged:
            return f"trained on {self.trained_rows:,} of {self.pairs:,} rows"
        low, high = (100 * bound for bound in self.ahead.interval)
        name = _NAMES.get(self.metric, self.metric)
        change = f"{name} {100 * self.before:.2f} -> {100 * self.after:.2f}"
        gained = f"{100 * self.ahead.difference:+.2f} [{low:.2f}, {high:.2f}]"
        limits = ""
        if self.trained_rows:
            limits = f", without {self.trained_rows:,} trained on"
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


@dataclass(frozen=True)
class Score:
    """A model's result on one task; `rival` and `over` are other models and rankings."""

    result: Result
    overlap: Overlap | None = None
    rival: Result | None = None
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    over: Mapping[str, Mapping[str, Comparison]] = field(default_factory=dict)
    weight: float | None = None
    gain: Gain | None = None
    # The metrics of the model and of its rival, for plots.
    metrics: Sequence[Metrics] = field(default=(), compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object: scores and `overlap`, and optionally `against`, `gain`, `over` and `weight`."""
        values = self.result.to_dict() | {
            "overlap": self.overlap and asdict(self.overlap)
        }
        if self.weight is not None:
            values["weight"] = self.weight
        if self.over:
            values["over"] = {}
            for row, comparisons in self.over.items():
                values["over"][row] = {
                    metric: ahead.to_dict() for metric, ahead in comparisons.items()
                }
        if self.rival is None:
            return values
        against = {}
        for metric in self.result.scores:
            against[metric] = {"value": defined(self.rival.scores[metric])}
            if metric in self.comparisons:
                against[metric] |= self.comparisons[metric].to_dict()
        values["against"] = against
        if self.gain:
            values["gain"] = self.gain.to_dict()
        return values


class EvaluatedModel(NamedTuple):
    """A model to score, and its name in tables."""

    name: str
    embedder: Embedder
    # Hashes of its training texts, if they are known, and their overlap with each task.
    trained: ndarray | None
    overlaps: Mapping[str, Overlap]
    layers: int | None = None


class Scoring(NamedTuple):
    """How models are scored on tasks; with `gains` also whether one should replace the other."""

    tasks: Sequence[EvaluationTask]
    resampling: Resampling
    purpose: Purpose | None
    gains: bool
    show: Listener

    def score(
        self, model: EvaluatedModel, rival: EvaluatedModel | None
    ) -> dict[str, Score]:
        """Encode the texts of all tasks, and score a model on each task, by name."""
        ours = self._measure(model.embedder)
        theirs = {} if rival is None else self._measure(rival.embedder)
        trained = [each.trained for each in (model, rival) if each is not None]
        hashes = [known for known in trained if known is not None]
        scores = {}
        for task in self._with_progress("resample"):
            metrics = ours[task.name]
            rival_metrics = theirs.get(task.name)
            measured = None
            if self.gains and rival_metrics and self.resampling.number:
                seen = NONE_TRAINED
                if hashes:
                    seen = trained_examples(task, np.concatenate(hashes))
                measured = gain(
                    metrics.whole, rival_metrics.whole, self.resampling, seen
                )
            scores[task.name] = _score_of(
                metrics,
                rival_metrics,
                model.overlaps.get(task.name),
                measured,
                self.resampling,
            )
        return scores

    def _measure(self, embedder: Embedder) -> dict[str, TaskMetrics]:
        """Encode the texts of all tasks once, and measure a model on each task."""
        vectors = TaskVectors(
            embedder.encode,
            [task.texts for task in self.tasks],
            separator=embedder.separator,
            similarity=embedder.similarity,
            prompts=embedder.prompts,
        )
        by_task = {}
        for task in self._with_progress("score"):
            searched = vectors
            if self.purpose is not None:
                searched = vectors.among(task.texts, self.purpose)
            metrics = task.measure(searched)
            if isinstance(metrics, Metrics):
                metrics = TaskMetrics(metrics)
            by_task[task.name] = metrics
        return by_task

    def _with_progress(self, stage: str) -> Iterator[EvaluationTask]:
        total = len(self.tasks)
        for done, task in enumerate(self.tasks):
            self.show(Progress(stage, done, total, task.name))
            yield task
        self.show(Progress(stage, total, total, ended=True))


def score_candidates(
    task: SearchTask, resamples: Resampling
) -> dict[str, dict[str, Score]]:
    """Score each candidate of a sheet of judged results, and its gain over the first one."""
    metrics = {
        name: TaskMetrics(task.metrics(ranks)) for name, ranks in task.ranks.items()
    }
    if len(metrics) < 2:
        raise DataError(
            "has no candidates to compare; sample again with this version's `aoe sample-pairs --queries`, or"
            " give --model and --against",
            path=task.name,
        )
    first = next(iter(metrics.values()))
    for_all = resamples.for_several(len(metrics) - 1)
    scores = {}
    for name, candidate_metrics in metrics.items():
        rival = None if candidate_metrics is first else first
        measured = None
        if rival is not None and resamples.number:
            measured = gain(candidate_metrics.whole, rival.whole, for_all)
        scored = _score_of(candidate_metrics, rival, None, measured, resamples)
        scores[name] = {task.name: scored}
    return scores


def _score_of(
    ours: TaskMetrics,
    theirs: TaskMetrics | None,
    trained_on: Overlap | None,
    measured: Gain | None,
    resamples: Resampling,
) -> Score:
    """The score of a task, compared with a rival if there is one."""
    result = summarise(ours, resamples)
    if theirs is None:
        return Score(result, trained_on, metrics=[ours.whole])
    comparisons = {}
    if resamples.number:
        comparisons = compare(ours.whole, theirs.whole, resamples)
    return Score(
        result,
        trained_on,
        rival=summarise(theirs),
        comparisons=comparisons,
        gain=measured,
        metrics=[ours.whole, theirs.whole],
    )


def gain(
    model: Metrics,
    rival: Metrics,
    resamples: Resampling,
    trained: ndarray = NONE_TRAINED,
) -> Gain | None:
    """Compare two models by AUC for binary labels, the first metric of searches, or Spearman's rho.

    The examples with the numbers `trained` are left out. If these are most, or no metric is defined without
    them, the gain is that of all examples, and is not judged.
    """
    if not len(trained):
        return _gain(model, rival, resamples)
    is_judged = False
    measured = None
    if 2 * len(trained) <= model.n:
        new = np.setdiff1d(np.arange(model.n), trained)
        measured = _gain(_metrics_of(model, new), _metrics_of(rival, new), resamples)
        is_judged = measured is None or not np.isnan(measured.after)
    if not is_judged:
        measured = _gain(model, rival, resamples)
    return measured and replace(
        measured, trained_rows=len(trained), is_judged=is_judged
    )


def _metrics_of(metrics: Any, examples: ndarray) -> Any:
    """The metrics of some examples."""
    if isinstance(metrics, MeanMetrics):
        return select_examples(metrics, examples)
    chosen = {}
    for field_ in fields(metrics):
        values = getattr(metrics, field_.name)
        if isinstance(values, ndarray):
            chosen[field_.name] = values[examples]
    return replace(metrics, **chosen)


def _gain(model: Metrics, rival: Metrics, resamples: Resampling) -> Gain | None:
    if isinstance(model, SearchMetrics) and isinstance(rival, SearchMetrics):
        return _search_gain(model, rival, resamples)
    metric = "roc_auc" if isinstance(model, Binary) else "spearman"
    scores = model.scores()
    rival_scores = rival.scores()
    if metric not in scores:
        return None
    factor = 1.0
    ours = model
    theirs = rival
    if isinstance(model, Binary) and isinstance(rival, Binary):
        probabilities = model.probabilities
        if probabilities is not None and not np.isin(probabilities, (0, 1)).all():
            factor = reliability(probabilities, np.ones((1, model.n))).item()
            if not factor > 0:
                return None
            ours = UncertainLabels(model.cosines, probabilities)
            theirs = UncertainLabels(rival.cosines, probabilities)
    ahead = compare(ours, theirs, resamples).get(metric, EVEN)
    rarer = model.n
    if isinstance(model, Binary):
        rarer = model.rarer_label()
    return Gain(
        metric, rival_scores[metric], scores[metric], ahead, factor, model.n, rarer
    )


def _search_gain(
    model: SearchMetrics, rival: SearchMetrics, resamples: Resampling
) -> Gain:
    """The difference of P@1 or MRR over all queries; its interval is over the judged ones."""
    metric = next(iter(model.outcomes))
    differences = model.outcomes[metric].astype(float) - rival.outcomes[metric]
    share = 1 if model.share is None else model.share
    over_all = MeanMetrics({metric: differences * share})
    interval = intervals(over_all, resamples)[metric]
    return Gain(
        metric=metric,
        before=rival.scores()[metric],
        after=model.scores()[metric],
        ahead=Comparison(over_all.scores()[metric], interval, float("nan")),
        reliability=1.0,
        pairs=model.n,
        rarer=int(np.count_nonzero(differences)),
        share=model.share,
    )


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
