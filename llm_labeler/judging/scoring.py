"""Labels of LLMs and aggregations compared with those that people gave the same pairs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import polars as pl

from llm_labeler.dataset.splits import VOTES
from llm_labeler.judging.ensemble import label
from llm_labeler.judging.judges import Judges, fit_judges
from llm_labeler.records import POLARITIES, Candidate, JudgeVote, Polarity
from llm_labeler.settings import AGGREGATIONS, EnsembleSettings
from pairkit.app.errors import DataError
from pairkit.app.printable import without_apostrophes
from pairkit.app.result_table import Printed, ResultTable
from pairkit.dataset.labels import LabelsRead, worth_telling
from pairkit.reviews.agreement import cohen_kappa, wilson

_EXAMPLES = 5
_EXAMPLE_CHARS = 60


@dataclass(frozen=True, slots=True)
class PairExamples:
    """How many gold pairs something holds of, with a few of them."""

    count: int
    examples: tuple[str, ...]

    @classmethod
    def of(cls, pairs: pl.DataFrame) -> PairExamples:
        """Count pairs and show the first, shortened."""
        shown = pairs.head(_EXAMPLES).select("text1", "text2").iter_rows()
        return cls(len(pairs), tuple(" | ".join(text[:_EXAMPLE_CHARS] for text in pair) for pair in shown))


@dataclass(frozen=True, slots=True)
class GoldPairs:
    """Gold pairs, each once."""

    pairs: pl.DataFrame
    repeated: int
    contradictory: PairExamples
    graded: bool
    threshold: float


def read_gold(rows: pl.DataFrame, threshold: float | None) -> GoldPairs:
    """Tell `same` from the rest; pairs with several labels are left out."""
    labels = rows["label"].cast(pl.Float64)
    graded = not labels.is_in([0.0, 1.0]).all()
    least = _half(labels) if threshold is None else threshold
    known = rows.select("text1", "text2").with_columns(
        label=labels, same=labels >= least, key=pl.struct(normalised("text1"), normalised("text2"))
    )
    several = pl.col("label").n_unique().over("key") > 1
    contradictory = known.filter(several).unique("key", keep="first", maintain_order=True)
    consistent = known.filter(~several)
    pairs = consistent.unique("key", keep="first", maintain_order=True)
    return GoldPairs(pairs, len(consistent) - len(pairs), PairExamples.of(contradictory), graded, least)


def normalised(column: str) -> pl.Expr:
    """A text but for compatible forms, letter case, white space and a sheet's apostrophe before a formula."""
    plain = without_apostrophes(pl.col(column)).str.normalize("NFKC").str.to_lowercase()
    return plain.str.replace_all(r"\s+", " ").str.strip_chars().alias(column)


def _half(labels: pl.Series) -> float:
    if labels.is_in([0.0, 1.0]).all():
        return 0.5
    low, high = labels.to_numpy().min(), labels.to_numpy().max()
    if low == high:
        raise DataError(f"all gold labels are {low:g}; say from which label on two texts mean the same")
    return float(low + high) / 2


class ScoredCandidate(NamedTuple):
    """One candidate with people's label."""

    same: bool
    grade: float
    candidate: Candidate
    votes: tuple[JudgeVote, ...]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> ScoredCandidate:
        """From a row of gold pairs joined with candidates."""
        candidate = Candidate(row["text_id"], row["candidate"], row["polarity"], tuple(row["llms"]))
        votes = tuple(
            JudgeVote(candidate.candidate_id, vote["judge"], vote["vote"]) for vote in row["votes"] or ()
        )
        return cls(row["same"], row["label"], candidate, votes)


def all_votes(known: pl.DataFrame) -> Iterator[JudgeVote]:
    """Every judgement of the table."""
    for text_id, candidate, votes in known.select("text_id", "candidate", "votes").iter_rows():
        if votes:
            id_ = Candidate(text_id, candidate, "positive", ()).candidate_id
            yield from (JudgeVote(id_, vote["judge"], vote["vote"]) for vote in votes)


def spearman(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Spearman's rank correlation; undefined (None) where either is constant."""
    both = {"one": pl.Series(one, dtype=pl.Float64), "other": pl.Series(other, dtype=pl.Float64)}
    found = pl.DataFrame(both).select(pl.corr("one", "other", method="spearman")).item()
    return None if found is None or math.isnan(found) else float(found)


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


_HEADER = ("", "n", "precision", "95 %", "recall", "F1", "kappa", "kept", "spearman")


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """How well one LLM or aggregation tells one polarity; None where a figure is undefined.

    Attributes:
        by: What `name` is.
        name: An LLM or an aggregation.
        polarity: `positive`: pairs labelled as the same meaning; `negative`: the other pairs.
        n: Number of these pairs.
        precision: Share of these pairs on which people agree.
        interval: Wilson's 95 % interval of `precision`.
        recall: Share found of those on which people say so; of an LLM among what it proposed itself, of a
            aggregation among all candidates with a gold label, so that what it turned down counts as missed.
        f1: Their harmonic mean.
        kept: Candidates that it gives a label, of both polarities.
        candidates: Those that it might have given one.
        kappa: Cohen's kappa with people over what it kept, of both polarities.
        spearman: Of its labels and people's over the same; only where people's are graded.
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
        """The row for people, see `ScoreReport.table`."""
        interval = "-" if self.interval is None else "{:.2f}-{:.2f}".format(*self.interval)
        figures = (self.recall, self.f1, self.kappa)
        return (
            *(f"{self.name}, {self.polarity}", f"{self.n:,}", _figure(self.precision), interval),
            *(*map(_figure, figures), f"{self.kept:,}/{self.candidates:,}", _figure(self.spearman)),
        )


@dataclass(frozen=True, slots=True, repr=False)
class ScoreReport(Printed):
    """Labels compared with people's.

    Attributes:
        rows: Two for each LLM and each aggregation, one for each polarity.
        gold: Different gold pairs; those with several labels are not among them.
        found: Gold pairs that match at least one candidate.
        not_found: Gold pairs without a matching candidate.
        contradictory: Gold pairs with several labels, left out.
        repeated: Gold rows that repeat an earlier one, left out.
        graded: Whether people's labels are graded.
        threshold: The lowest gold label that counts as the same meaning.
        skipped: Aggregations that could not be computed, with the reason.
        judges: The judges' estimated accuracies; None without votes.
        labels: What was made of people's labels, and how many rows were left out by which.
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
        """The rows, LLMs before aggregations; `-` stands for an undefined figure."""
        headings = _HEADER if self.graded else _HEADER[:-1]
        found = ResultTable(*headings, caption="\n".join(self.remarks()))
        for place, row in enumerate(self.rows):
            if place and row.by != self.rows[place - 1].by:
                found.add_rule()
            found.add_row(*row.cells()[: len(headings)])
        return found

    def remarks(self) -> list[str]:
        """How many gold pairs were found, what was not computed, and examples of what is odd."""
        findings = {"not found": self.not_found, "contradictory": self.contradictory}
        return [
            f"{self.found:,} of {self.gold:,} gold pairs are candidates; from {self.threshold:g} on they mean"
            " the same",
            *filter(None, [worth_telling(self.labels)]),
            *(f"{aggregation}: not computed, {why}" for aggregation, why in self.skipped.items()),
            *(
                f"{finding.count:,} gold pairs {name}, such as {finding.examples[0]}"
                for name, finding in findings.items()
                if finding.count
            ),
        ]

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, for JSON."""
        return asdict(self)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


class _Labelled(NamedTuple):
    """One candidate with people's label and a prediction."""

    same: bool  # people
    grade: float
    polarity: Polarity | None  # predicted; None: turned down
    label: float


def score(
    gold: pl.DataFrame,
    candidates: pl.DataFrame,
    settings: EnsembleSettings,
    threshold: float | None = None,
) -> ScoreReport:
    """Score every LLM and every aggregation, by polarity, on the candidates that a gold pair matches."""
    people = read_gold(gold, threshold)
    key = pl.struct(normalised("text").alias("text1"), normalised("candidate").alias("text2"))
    table = candidates.select(
        "text_id", "candidate", "polarity", "llms", pl.col("votes").cast(VOTES), key=key
    )
    judges = fit_judges(all_votes(table), settings) if table["votes"].list.len().sum() else None
    both = people.pairs.join(table, on="key", maintain_order="left_right")
    missing = people.pairs.join(both, on="key", how="anti", maintain_order="left")
    matched = [ScoredCandidate.of(row) for row in both.iter_rows(named=True)]
    need_votes = [name for name, aggregation in AGGREGATIONS.items() if aggregation.is_judged]
    skipped: dict[str, str] = {} if judges else dict.fromkeys(need_votes, "no candidate was judged")
    llms = sorted({llm for one in matched for llm in one.candidate.llms})
    by_llm = {name: _as_proposed(matched, name) for name in llms}
    by_aggregation = {
        name: _by_aggregation(matched, name, settings, judges) for name in AGGREGATIONS if name not in skipped
    }
    labelled: dict[Literal["llm", "aggregation"], dict[str, list[_Labelled]]]
    labelled = {"llm": by_llm, "aggregation": by_aggregation}
    return ScoreReport(
        rows=tuple(
            _row(by, name, polarity, ones, people.graded)
            for by, named in labelled.items()
            for name, ones in named.items()
            for polarity in POLARITIES
        ),
        gold=len(people.pairs),
        found=len(people.pairs) - len(missing),
        not_found=PairExamples.of(missing),
        contradictory=people.contradictory,
        repeated=people.repeated,
        graded=people.graded,
        threshold=people.threshold,
        skipped=skipped,
        judges=judges,
    )


def _row(
    by: Literal["llm", "aggregation"], name: str, polarity: Polarity, labelled: list[_Labelled], graded: bool
) -> ScoreRow:
    is_right = [(one.same == (polarity == "positive"), one.polarity == polarity) for one in labelled]
    right, predicted = sum(true and said for true, said in is_right), sum(said for _, said in is_right)
    there = sum(true for true, _ in is_right)
    kept = [one for one in labelled if one.polarity]
    return ScoreRow(
        by=by,
        name=name,
        polarity=polarity,
        n=predicted,
        precision=_ratio(right, predicted),
        interval=wilson(right, predicted),
        recall=_ratio(right, there),
        f1=_ratio(2 * right, predicted + there),
        kept=len(kept),
        candidates=len(labelled),
        kappa=cohen_kappa([one.polarity == "positive" for one in kept], [one.same for one in kept]).value,
        spearman=spearman([one.label for one in kept], [one.grade for one in kept]) if graded else None,
    )


def _as_proposed(matched: list[ScoredCandidate], llm: str) -> list[_Labelled]:
    return [
        _Labelled(one.same, one.grade, one.candidate.polarity, float(one.candidate.polarity == "positive"))
        for one in matched
        if llm in one.candidate.llms
    ]


def _by_aggregation(
    matched: list[ScoredCandidate], name: str, settings: EnsembleSettings, judges: Judges | None
) -> list[_Labelled]:
    votes = {one.candidate.candidate_id: one.votes for one in matched}
    chosen = settings.model_copy(update={"aggregation": name})
    pairs = label([one.candidate for one in matched], votes, chosen, judges)
    return [
        _Labelled(one.same, one.grade, None if pair.reason else pair.polarity, pair.label)
        for one, pair in zip(matched, pairs, strict=True)
    ]
