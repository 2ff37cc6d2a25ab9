"""The report of a review: accuracy of the labels, agreement and work of the reviewers; also for the card."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.system.files import write_text
from pairkit.dataset.judgements import (
    SKIP,
    TOP_GRADE,
    UNSURE,
    JudgedPair,
    PairDecision,
    ReviewJudgement,
    ReviewSettings,
    ReviewStore,
    decide,
)
from pairkit.dataset.making.dataset_folder import table as markdown_table
from pairkit.dataset.making.dataset_folder import with_section
from pairkit.reviews.agreement import (
    Figure,
    Scale,
    cohen_kappa,
    krippendorff_alpha,
    weighted_share,
)
from pairkit.reviews.review_sample import FACTS

HEADING = "Inspected by hand"
RELATION = "relation that people gave"
_CARD = "README.md"
# Facts with more values, such as repositories, are not in the card.
_MAX_CARD_VALUES = 20
_TOLERANCE = 1  # grades between a correct score and people's


@dataclass(frozen=True, slots=True)
class ReviewEstimate:
    """The results for some of the pairs."""

    judged: int
    unsure: int
    disputed: int
    right: Figure


def is_right(label: float, value: float, settings: ReviewSettings) -> bool:
    """Whether people confirm a label."""
    if settings.asked == "labels":
        return (label / settings.top >= 0.5) == (value == 1)
    if settings.label_kind == "binary":
        return (value >= TOP_GRADE / 2) == (label == 1)
    return abs(value - TOP_GRADE * label / settings.top) <= _TOLERANCE


@dataclass(frozen=True, slots=True)
class ReviewerWork:
    """The work of one reviewer."""

    judged: int
    unsure: int
    skipped: int
    minutes: float
    seconds_each: float


def agreement(
    judgements: Iterable[ReviewJudgement], settings: ReviewSettings
) -> tuple[dict[tuple[str, str], Figure], Figure]:
    """Cohen's kappa of each two reviewers of the same pairs, and Krippendorff's alpha of all reviewers."""
    scale: Scale = "nominal" if settings.asked == "labels" else "interval"
    by_person = defaultdict[str, dict[str, float]](dict)
    by_pair = defaultdict[str, list[float]](list)
    for judgement in sorted(judgements, key=lambda each: (each.person, each.pair_id)):
        if judgement.answer in settings.answers:
            value = settings.answers[judgement.answer]
            by_person[judgement.person][judgement.pair_id] = value
            by_pair[judgement.pair_id].append(value)
    kappas = {}
    for (person1, answers1), (person2, answers2) in combinations(by_person.items(), 2):
        if both := sorted(answers1.keys() & answers2.keys()):
            first = [answers1[pair_id] for pair_id in both]
            second = [answers2[pair_id] for pair_id in both]
            kappas[person1, person2] = cohen_kappa(first, second, scale)
    units = [by_pair[pair_id] for pair_id in sorted(by_pair)]
    return kappas, krippendorff_alpha(units, scale)


def _reviewer_work(judgements: Iterable[ReviewJudgement]) -> dict[str, ReviewerWork]:
    by_person = defaultdict[str, list[ReviewJudgement]](list)
    for judgement in judgements:
        by_person[judgement.person].append(judgement)
    work = {}
    for name, answers in sorted(by_person.items()):
        judged = [judgement for judgement in answers if judgement.answer != SKIP]
        seconds = sum(judgement.seconds for judgement in answers)
        work[name] = ReviewerWork(
            judged=len(judged),
            unsure=sum(judgement.answer == UNSURE for judgement in judged),
            skipped=len(answers) - len(judged),
            minutes=round(seconds / 60, 1),
            seconds_each=round(seconds / len(answers), 1),
        )
    return work


@dataclass(frozen=True, slots=True, repr=False)
class ReviewReport(Printed):
    """The results of a review; shares and agreement have 95 % intervals.

    Attributes:
        settings: The settings of the review.
        sample: Number of pairs drawn.
        total: Accuracy of the labels, weighted to the whole dataset.
        by: The same by fact (label, evidence, split, …) and value.
        unseen: Strata without a decided pair and their sizes; the figures don't cover these.
        kappa: Cohen's kappa of each two reviewers, over pairs that both decided.
        alpha: Krippendorff's alpha of all reviewers.
        disputed: Number of pairs on which reviewers disagree.
        people: The work of each reviewer.
    """

    settings: ReviewSettings
    sample: int
    total: ReviewEstimate
    by: Mapping[str, Mapping[str, ReviewEstimate]]
    unseen: Mapping[str, int]
    kappa: Mapping[tuple[str, str], Figure]
    alpha: Figure
    disputed: int
    people: Mapping[str, ReviewerWork]

    def words(self) -> str:
        """One line, as for a card: `inspected by hand: 10.0 %, precision 0.97 [0.95, 0.98], kappa 0.91`."""
        words = (
            f"inspected by hand: {100 * self.total.judged / self.settings.pairs:.1f} %"
        )
        positives = self.by["label"].get("1")
        if self.settings.label_kind == "binary" and positives:
            words += f", precision {_format_figure(positives.right)}"
        else:
            words += f", right {_format_figure(self.total.right)}"
        if len(self.kappa) == 1:
            (kappa,) = self.kappa.values()
            words += f", kappa {_format_figure(kappa)}"
        elif self.kappa:
            words += f", alpha {_format_figure(self.alpha)}"
        return words

    def tables(self) -> list[ResultTable]:
        """Accuracy of the labels by fact, agreement, and the work of each reviewer."""
        shares = ResultTable(
            "of",
            "judged",
            "unsure",
            "disputed",
            "right",
            "95 %",
            title=f"{self.settings.dataset}: {self.words()}",
            caption="\n".join(self.remarks()),
        )
        shares.add_row("all", *_cells(self.total))
        for fact, values in self.by.items():
            shares.add_rule()
            for value, estimate in values.items():
                shares.add_row(f"{fact}: {value}", *_cells(estimate))
        people = ResultTable(
            "reviewer", "judged", "unsure", "skipped", "minutes", "s each"
        )
        for name, work in self.people.items():
            times = f"{work.minutes:.1f}", f"{work.seconds_each:.1f}"
            people.add_row(name, work.judged, work.unsure, work.skipped, *times)
        if not self.kappa:
            return [shares, people]
        agreed = ResultTable(
            "agreement of", "measure", "pairs", "value", "95 %", left=["measure"]
        )
        for pair, figure in self.kappa.items():
            agreed.add_row(
                " and ".join(pair), "Cohen's kappa", figure.n, *_figure(figure)
            )
        agreed.add_row(
            "all", "Krippendorff's alpha", self.alpha.n, *_figure(self.alpha)
        )
        return [shares, agreed, people]

    def remarks(self) -> list[str]:
        """Notes on the figures."""
        judged = f"{self.total.judged:,} of {self.sample:,} drawn pairs are judged"
        notes = [
            f"{judged}; the dataset has {self.settings.pairs:,}",
            "shares are weighted to the dataset",
        ]
        if self.unseen:
            notes.append(
                f"not judged: {len(self.unseen):,} strata of {sum(self.unseen.values()):,} pairs, such as"
                f" {next(iter(self.unseen))}"
            )
        if self.disputed:
            notes.append(f"reviewers disagree on {self.disputed:,} pairs")
        return notes

    def section(self) -> str:
        """The section for the dataset card, as Markdown."""
        number = len(self.people)
        who = f"{number} people, who saw neither labels nor each other's answers"
        if number == 1:
            who = "one person, who did not see the labels"
        words = self.words()
        judged = f"{self.total.judged:,} of {self.settings.pairs:,} pairs were judged"
        lines = [
            f"{words[0].upper()}{words[1:]}.",
            f"{judged} by {who}. They were drawn at random by strata; figures are weighted to the whole"
            " dataset. In brackets: 95 % intervals.",
        ]
        if self.disputed:
            lines.append(f"Reviewers disagreed on {self.disputed:,} pairs.")
        rows = []
        for fact, values in self.by.items():
            if len(values) > _MAX_CARD_VALUES:
                continue
            for value, estimate in values.items():
                undecided = estimate.unsure + estimate.disputed
                figure = _figure(estimate.right)
                rows.append((f"{fact}: {value}", estimate.judged, undecided, *figure))
        header = ["pairs", "judged", "undecided", "label is right", "95 %"]
        return "\n\n".join([*lines, markdown_table(header, rows)])

    def save_card(self, folder: str | Path) -> None:
        """Write the results into the card of a dataset folder, replacing those of an earlier review.

        Raises:
            ConfigError: There is no card or it can't be written.
        """
        path = Path(folder) / _CARD
        try:
            card = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"{path}: no readable dataset card; give a dataset's folder"
            ) from error
        write_text(path, with_section(card, HEADING, self.section()))

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, for JSON."""
        plain = asdict(self) | {
            "settings": self.settings.model_dump(mode="json", exclude={"common"}),
            "kappa": {
                " and ".join(pair): asdict(figure)
                for pair, figure in self.kappa.items()
            },
            "words": self.words(),
        }
        return dict(json.loads(json.dumps(plain)))  # with lists for tuples


def make_review_report(store: ReviewStore) -> ReviewReport:
    """The report of a review; pairs are weighted by the size of their stratum."""
    settings = store.settings
    strata = store.strata
    pairs = store.pairs
    judgements = store.judgements()
    decisions = decide(judgements)
    if not decisions:
        raise DataError(
            "no pair is judged yet; judge some with `pairs review`", path=store.path
        )
    decided = Counter(
        pairs[pair_id].stratum
        for pair_id, decision in decisions.items()
        if decision.value is not None
    )

    def estimate(pair_ids: Collection[str]) -> ReviewEstimate:
        states = Counter(decisions[pair_id].state for pair_id in pair_ids)
        right = []
        weights = []
        for pair_id in pair_ids:
            pair = pairs[pair_id]
            value = decisions[pair_id].value
            if value is not None:
                right.append(is_right(pair.label, value, settings))
                weights.append(strata[pair.stratum] / decided[pair.stratum])
        share = weighted_share(right, weights)
        return ReviewEstimate(
            len(pair_ids), states["unsure"], states["disputed"], share
        )

    by = {}
    for fact, groups in _pairs_by_fact(pairs, decisions).items():
        by[fact] = {value: estimate(groups[value]) for value in sorted(groups)}
    kappa, alpha = agreement(judgements, settings)
    return ReviewReport(
        settings=settings,
        sample=len(pairs),
        total=estimate(decisions),
        by=by,
        unseen={
            stratum: size for stratum, size in strata.items() if not decided[stratum]
        },
        kappa=kappa,
        alpha=alpha,
        disputed=sum(decision.differs for decision in decisions.values()),
        people=_reviewer_work(judgements),
    )


def _pairs_by_fact(
    pairs: Mapping[str, JudgedPair], decisions: Mapping[str, PairDecision]
) -> Mapping[str, Mapping[str, list[str]]]:
    """The judged pairs by fact and value; facts with one value in all pairs, except labels, are left out."""
    by_fact = {}
    for fact in (*FACTS, RELATION):
        groups = defaultdict[str, list[str]](list)
        for pair_id, decision in decisions.items():
            facts = {**pairs[pair_id].facts, RELATION: decision.relation}
            if value := facts.get(fact):
                groups[value].append(pair_id)
        is_constant = any(len(group) == len(decisions) for group in groups.values())
        if fact == "label" or (groups and not is_constant):
            by_fact[fact] = groups
    return by_fact


def _cells(estimate: ReviewEstimate) -> tuple[Any, ...]:
    return estimate.judged, estimate.unsure, estimate.disputed, *_figure(estimate.right)


def _figure(figure: Figure) -> tuple[str, str]:
    """The value and its interval, for a table."""
    value = interval = "–"
    if figure.value is not None:
        value = f"{figure.value:.2f}"
    if figure.interval is not None:
        interval = "{:.2f}–{:.2f}".format(*figure.interval)
    return value, interval


def _format_figure(figure: Figure) -> str:
    if figure.value is None:
        return "not defined"
    if figure.interval is None:
        return f"{figure.value:.2f}"
    return "{:.2f} [{:.2f}, {:.2f}]".format(figure.value, *figure.interval)
