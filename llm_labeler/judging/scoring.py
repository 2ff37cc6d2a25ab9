"""`label evaluate`: compare the labels of LLMs and aggregations with human labels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, compress
from operator import and_
from typing import Any, Literal, NamedTuple

import polars as pl

from llm_labeler.dataset.dataset_rows import VOTES
from llm_labeler.judging.ensemble import Judges, fit_judges, label
from llm_labeler.records import (
    POLARITIES,
    Candidate,
    JudgeVote,
    LabelledPair,
    Polarity,
)
from llm_labeler.settings import AGGREGATIONS, EnsembleSettings
from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.errors import DataError
from pairkit.base.printable import without_apostrophes
from pairkit.dataset.labels import LabelsRead, describe_labels
from pairkit.reviews.agreement import cohen_kappa, wilson

_EXAMPLES = 5
_EXAMPLE_CHARS = 60

_HEADER = ("", "n", "precision", "95 %", "recall", "F1", "kappa", "kept", "spearman")


@dataclass(frozen=True, slots=True)
class PairExamples:
    """Number of gold pairs, with a few examples."""

    count: int
    examples: tuple[str, ...]

    @classmethod
    def of(cls, pairs: pl.DataFrame) -> PairExamples:
        """Count pairs and keep the first ones, shortened."""
        rows = pairs.head(_EXAMPLES).select("text1", "text2").iter_rows()
        shortened = ((text[:_EXAMPLE_CHARS] for text in row) for row in rows)
        return cls(len(pairs), tuple(map(" | ".join, shortened)))


@dataclass(frozen=True, slots=True)
class GoldPairs:
    """Gold pairs without repeats."""

    pairs: pl.DataFrame
    repeated: int
    contradictory: PairExamples
    graded: bool
    threshold: float


def read_gold(rows: pl.DataFrame, threshold: float | None) -> GoldPairs:
    """Classify gold labels as `same` or not; leave out pairs with different labels."""
    labels = rows["label"].cast(pl.Float64)
    graded = not labels.is_in([0.0, 1.0]).all()
    highest = max(labels, default=1.0)
    if threshold is None:
        threshold = _middle(labels) if graded else 0.5
    elif not threshold <= max(highest, 1.0):  # NaN, too
        raise DataError(
            f"--gold-threshold={threshold:g}: the highest gold label is {highest:g}, so no"
            " pair would have the same meaning; give a lower one"
        )
    gold = rows.select("text1", "text2").with_columns(
        label=labels,
        same=labels >= threshold,
        key=pl.struct(normalised("text1"), normalised("text2")),
    )
    is_contradictory = pl.col("label").n_unique().over("key") > 1
    contradictory = gold.filter(is_contradictory)
    contradictory = contradictory.unique("key", keep="first", maintain_order=True)
    consistent = gold.filter(~is_contradictory)
    pairs = consistent.unique("key", keep="first", maintain_order=True)
    return GoldPairs(
        pairs=pairs,
        repeated=len(consistent) - len(pairs),
        contradictory=PairExamples.of(contradictory),
        graded=graded,
        threshold=threshold,
    )


def _middle(labels: pl.Series) -> float:
    """Half of the range of graded labels."""
    low = labels.to_numpy().min()
    high = labels.to_numpy().max()
    if low == high:
        raise DataError(
            f"all gold labels are {low:g}; give --gold-threshold, the lowest label of texts with the same"
            " meaning"
        )
    return float(low + high) / 2


def normalised(column: str) -> pl.Expr:
    """A text without differences of case, width, white space and a spreadsheet's apostrophes."""
    plain = without_apostrophes(pl.col(column)).str.normalize("NFKC").str.to_lowercase()
    return plain.str.replace_all(r"\s+", " ").str.strip_chars().alias(column)


class ScoredCandidate(NamedTuple):
    """One candidate with its votes and its gold label."""

    candidate: Candidate
    votes: list[JudgeVote]
    same: bool
    grade: float


def _voted(row: Mapping[str, Any]) -> tuple[Candidate, list[JudgeVote]]:
    """The candidate of a row, with its votes."""
    candidate = Candidate(
        row["text_id"], row["candidate"], row["polarity"], tuple(row["llms"])
    )
    id_ = candidate.candidate_id
    votes = [JudgeVote(id_, vote["judge"], vote["vote"]) for vote in row["votes"] or ()]
    return candidate, votes


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Spearman's rank correlation; None if either is constant."""
    columns = {"first": first, "second": second}
    both = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Float64))
    correlation = both.select(pl.corr("first", "second", method="spearman")).item()
    if correlation is None or math.isnan(correlation):
        return None
    return float(correlation)


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The scores of one LLM or aggregation on one polarity; None if undefined.

    Attributes:
        by: Whether `name` is an LLM or an aggregation.
        name: The LLM or aggregation.
        polarity: `positive`: pairs labelled as the same meaning; `negative`: the other pairs.
        n: Number of pairs that it labels so.
        precision: Share of these pairs on which people agree.
        interval: Wilson's 95 % interval of `precision`.
        recall: Share of the pairs that people label so which it labels so, too. For an LLM among its own
            proposals; for an aggregation among all candidates with a gold label, so rejected ones are missed.
        f1: Harmonic mean of precision and recall.
        kept: Number of candidates that it labels, of both polarities.
        candidates: Number of candidates that it could label.
        kappa: Cohen's kappa with people over the kept candidates.
        spearman: Rank correlation with people's labels over the kept candidates, if these are graded.
    """

    by: Literal["llm", "aggregation"]
    name: str
    polarity: Polarity
    n: int
    precision: float | None
    interval: tuple[float, float] | None
    recall: float | None
    f1: float | None
    kept: int
    candidates: int
    kappa: float | None
    spearman: float | None

    def cells(self) -> tuple[str, ...]:
        """The cells of the table."""
        interval = "-"
        if self.interval is not None:
            interval = "{:.2f}-{:.2f}".format(*self.interval)
        return (
            f"{self.name}, {self.polarity}",
            f"{self.n:,}",
            _figure(self.precision),
            interval,
            _figure(self.recall),
            _figure(self.f1),
            _figure(self.kappa),
            f"{self.kept:,}/{self.candidates:,}",
            _figure(self.spearman),
        )


@dataclass(frozen=True, slots=True, repr=False)
class ScoreReport(Printed):
    """A comparison of labels with human labels.

    Attributes:
        rows: Two for each LLM and each aggregation, one for each polarity.
        gold: Number of distinct gold pairs with consistent labels.
        found: Number of gold pairs that match a candidate.
        not_found: Gold pairs without a matching candidate.
        contradictory: Gold pairs with different labels, left out.
        repeated: Number of repeated gold rows, left out.
        graded: Whether the gold labels are graded.
        threshold: Lowest gold label that counts as the same meaning.
        skipped: Aggregations that could not be computed, with the reason.
        judges: The judges' estimated accuracies; None without votes.
        labels: The mapping of gold labels, with the number of rows left out by each.
    """

    rows: tuple[ScoreRow, ...]
    gold: int
    found: int
    not_found: PairExamples
    contradictory: PairExamples
    repeated: int
    graded: bool
    threshold: float
    skipped: Mapping[str, str]
    judges: Judges | None
    labels: LabelsRead | None = None

    def table(self) -> ResultTable:
        """The rows, LLMs before aggregations; `-` marks undefined figures."""
        headings = _HEADER if self.graded else _HEADER[:-1]
        table = ResultTable(*headings, caption="\n".join(self.remarks()))
        for index, row in enumerate(self.rows):
            if index and row.by != self.rows[index - 1].by:
                table.add_rule()
            table.add_row(*row.cells()[: len(headings)])
        return table

    def remarks(self) -> list[str]:
        """Lines on matched gold pairs, skipped aggregations and left-out gold pairs."""
        remarks = [
            f"{self.found:,} of {self.gold:,} gold pairs are candidates; labels from {self.threshold:g} on"
            " mean the same"
        ]
        labels = describe_labels(self.labels)
        if labels:
            remarks.append(labels)
        for aggregation, reason in self.skipped.items():
            remarks.append(f"{aggregation}: not computed, {reason}")
        left_out = {"not found": self.not_found, "contradictory": self.contradictory}
        for name, pairs in left_out.items():
            if pairs.count:
                remarks.append(
                    f"{pairs.count:,} gold pairs {name}, such as {pairs.examples[0]}"
                )
        return remarks

    def to_dict(self) -> dict[str, Any]:
        """The report for JSON."""
        return asdict(self)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def score_candidates(
    gold: pl.DataFrame,
    candidates: pl.DataFrame,
    settings: EnsembleSettings,
    threshold: float | None = None,
) -> ScoreReport:
    """Score every LLM and every aggregation on the candidates that match a gold pair."""
    gold_pairs = read_gold(gold, threshold)
    key = pl.struct(
        normalised("text").alias("text1"), normalised("candidate").alias("text2")
    )
    table = candidates.select(
        "text_id", "candidate", "polarity", "llms", pl.col("votes").cast(VOTES), key=key
    )
    judges = None
    if table["votes"].list.len().sum():
        votes = (_voted(row)[1] for row in table.iter_rows(named=True))
        judges = fit_judges(chain.from_iterable(votes), settings)
    joined = gold_pairs.pairs.join(table, on="key", maintain_order="left_right")
    missing = gold_pairs.pairs.join(joined, on="key", how="anti", maintain_order="left")
    matched = [
        ScoredCandidate(*_voted(row), row["same"], row["label"])
        for row in joined.iter_rows(named=True)
    ]
    rows: list[ScoreRow] = []
    for llm in sorted({llm for scored in matched for llm in scored.candidate.llms}):
        own = [scored for scored in matched if llm in scored.candidate.llms]
        as_proposed = _labelled(own, "union", settings, judges)
        rows += _rows("llm", llm, own, as_proposed, gold_pairs.graded)
    skipped = {}
    for name, aggregation in AGGREGATIONS.items():
        if aggregation.is_judged and not judges:
            skipped[name] = "no candidate was judged"
            continue
        labelled = _labelled(matched, name, settings, judges)
        rows += _rows("aggregation", name, matched, labelled, gold_pairs.graded)
    return ScoreReport(
        rows=tuple(rows),
        gold=len(gold_pairs.pairs),
        found=len(gold_pairs.pairs) - len(missing),
        not_found=PairExamples.of(missing),
        contradictory=gold_pairs.contradictory,
        repeated=gold_pairs.repeated,
        graded=gold_pairs.graded,
        threshold=gold_pairs.threshold,
        skipped=skipped,
        judges=judges,
    )


def _rows(
    by: Literal["llm", "aggregation"],
    name: str,
    scored: list[ScoredCandidate],
    pairs: list[LabelledPair],
    graded: bool,
) -> Iterator[ScoreRow]:
    """A row for each polarity."""
    is_kept = [pair.reason is None for pair in pairs]
    kept = [*compress(pairs, is_kept)]
    gold = [*compress(scored, is_kept)]
    is_positive = [pair.polarity == "positive" for pair in kept]
    kappa = cohen_kappa(is_positive, [candidate.same for candidate in gold])
    correlation = None
    if graded:
        grades = [candidate.grade for candidate in gold]
        correlation = spearman([pair.label for pair in kept], grades)
    for polarity in POLARITIES:
        is_same = polarity == "positive"
        is_actual = [candidate.same == is_same for candidate in scored]
        is_predicted = [
            pair.reason is None and pair.polarity == polarity for pair in pairs
        ]
        right = sum(map(and_, is_actual, is_predicted))
        actual = sum(is_actual)
        predicted = sum(is_predicted)
        yield ScoreRow(
            by=by,
            name=name,
            polarity=polarity,
            n=predicted,
            precision=_ratio(right, predicted),
            interval=wilson(right, predicted),
            recall=_ratio(right, actual),
            f1=_ratio(2 * right, predicted + actual),
            kept=len(kept),
            candidates=len(pairs),
            kappa=kappa.value,
            spearman=correlation,
        )


def _labelled(
    matched: list[ScoredCandidate],
    name: str,
    settings: EnsembleSettings,
    judges: Judges | None,
) -> list[LabelledPair]:
    """The candidates, labelled by one aggregation."""
    candidates = [scored.candidate for scored in matched]
    votes = {scored.candidate.candidate_id: scored.votes for scored in matched}
    settings = settings.model_copy(update={"aggregation": name})
    return label(candidates, votes, settings, judges)
