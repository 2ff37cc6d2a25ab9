"""What a review found: how right labels are, how far people agree, how long it took; also for the card."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from pairkit._review.estimates import Estimate, Estimates
from pairkit._review.facts import FACTS
from pairkit.agreement import Figure, Scale, cohen_kappa, krippendorff_alpha, weighted_share
from pairkit.card import table as markdown_table
from pairkit.card import with_section
from pairkit.errors import ConfigError, DataError
from pairkit.files import write_text
from pairkit.judgements import REVIEWER, Judgement, ReviewSettings, Store, decide, disputed
from pairkit.judgements.records import SKIP, UNSURE
from pairkit.result_table import ResultTable

HEADING = "Inspected by hand"
RELATION = "relation that people gave"
_CARD = "README.md"
_CARD_VALUES = 20  # of a fact, such as repositories; with more of them it stands in the report alone


@dataclass(frozen=True, slots=True)
class Work:
    """What one reviewer did.

    Attributes:
        judged: Pairs, those of second looks not counted.
        unsure: Of which the person could not tell.
        skipped: That the person passed over.
        minutes: How long pairs were in view.
        seconds_each: A pair, on average.
        repeats: The share of second looks that led to the same answer.
    """

    judged: int
    unsure: int
    skipped: int
    minutes: float
    seconds_each: float | None
    repeats: Figure


@dataclass(frozen=True, slots=True, repr=False)
class ReviewReport:
    """What a review found; shares and agreement with 95 % intervals.

    Attributes:
        settings: What it was begun with.
        sample: How many pairs were drawn.
        total: Of all of them: how right the labels are, weighted to the dataset.
        by: The same by facts (label, evidence, split, …) and their values.
        unseen: Strata of which no pair is decided, and how many pairs each has: the figures say nothing of
            them.
        kappa: Cohen's kappa of each two reviewers, of pairs that both could tell.
        alpha: Krippendorff's alpha of all of them.
        disputed: Pairs on which reviewers differ.
        people: Who did what.
    """

    settings: ReviewSettings
    sample: int
    total: Estimate
    by: Mapping[str, Mapping[str, Estimate]]
    unseen: Mapping[str, int]
    kappa: Mapping[tuple[str, str], Figure]
    alpha: Figure
    disputed: int
    people: Mapping[str, Work]

    def words(self) -> str:
        """One line, as for a card: `inspected by hand: 10.0 %, precision 0.97 [0.95, 0.98], kappa 0.91`."""
        told = [f"inspected by hand: {100 * self.total.judged / self.settings.pairs:.1f} %"]
        told += [
            f"precision {_told(self._precision)}" if self._precision else f"right {_told(self.total.right)}"
        ]
        if self._agreement:
            told.append(self._agreement)
        return ", ".join(told)

    @property
    def _precision(self) -> Figure | None:
        """Of label 1, where labels are 0 and 1."""
        positive = self.by.get("label", {}).get("1")
        return positive.right if positive and self.settings.label_kind == "binary" else None

    @property
    def _agreement(self) -> str:
        if len(self.kappa) == 1:
            return f"kappa {_told(next(iter(self.kappa.values())))}"
        return f"alpha {_told(self.alpha)}" if self.kappa else ""

    def tables(self) -> list[ResultTable]:
        """How right labels are by fact, how far people agree, and who did what."""
        shares = ResultTable(
            *("of", "judged", "unsure", "disputed", "right", "95 %"),
            title=f"{self.settings.dataset}: {self.words()}",
            caption="\n".join(self.remarks()),
        )
        shares.add_row("all", *_cells(self.total))
        for fact, values in self.by.items():
            shares.add_rule()
            for value, estimate in values.items():
                shares.add_row(f"{fact}: {value}", *_cells(estimate))
        found = [shares]
        if self.kappa:
            agreement = ResultTable("agreement of", "measure", "pairs", "value", "95 %", left=["measure"])
            for pair, figure in self.kappa.items():
                agreement.add_row(" and ".join(pair), "Cohen's kappa", figure.n, *_figure(figure))
            agreement.add_row("all", "Krippendorff's alpha", self.alpha.n, *_figure(self.alpha))
            found.append(agreement)
        people = ResultTable("reviewer", "judged", "unsure", "skipped", "minutes", "s each", "same again")
        for name, work in self.people.items():
            again = f"{_told(work.repeats)} of {work.repeats.n}" if work.repeats.n else None
            each = None if work.seconds_each is None else f"{work.seconds_each:.1f}"
            people.add_row(name, work.judged, work.unsure, work.skipped, f"{work.minutes:.1f}", each, again)
        return [*found, people]

    def remarks(self) -> list[str]:
        """What one has to know to read the figures."""
        judged = f"{self.total.judged:,} of {self.sample:,} drawn pairs are judged"
        told = [f"{judged}; the dataset has {self.settings.pairs:,}"]
        if self.settings.active:
            why = f"pairs were chosen for their doubt ({self.settings.active})"
            told.append(f"{why}: shares are theirs, not the dataset's")
        else:
            told.append("shares are weighted to the dataset")
        if self.unseen and not self.settings.active:
            told.append(
                f"not judged: {len(self.unseen):,} strata of {sum(self.unseen.values()):,} pairs, such as"
                f" {next(iter(self.unseen))}"
            )
        if self.disputed:
            told.append(f"reviewers differ on {self.disputed:,} pairs: --adjudicate (adjudicate=True)")
        return told

    def section(self) -> str:
        """What a dataset's card says of the review, as Markdown."""
        number = len(self.people)
        who = (
            "one person, who did not see the labels"
            if number == 1
            else f"{number} people, who saw neither labels nor each other's answers"
        )
        how = (
            f"chosen where `{self.settings.active}` leaves doubt, so that figures hold for them alone"
            if self.settings.active
            else "drawn at random by strata; figures are weighted to the whole dataset"
        )
        words, judged = self.words(), f"{self.total.judged:,} of {self.settings.pairs:,} pairs were judged"
        lines = [
            f"{words[0].upper()}{words[1:]}.",
            f"{judged} by {who}. They were {how}. In brackets: 95 % intervals.",
        ]
        rows = [
            (
                f"{fact}: {value}",
                estimate.judged,
                estimate.unsure + estimate.disputed,
                *_figure(estimate.right),
            )
            for fact, values in self.by.items()
            if len(values) <= _CARD_VALUES
            for value, estimate in values.items()
        ]
        return "\n\n".join(
            [*lines, markdown_table(["pairs", "judged", "undecided", "label is right", "95 %"], rows)]
        )

    def save_card(self, folder: str | Path) -> None:
        """Put what was found into the card of a dataset's folder, in place of what stood there of a review.

        Raises:
            ConfigError: There is no card, or it can't be written.
        """
        path = Path(folder) / _CARD
        try:
            card = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: no dataset card that can be read; give a dataset's folder") from error
        write_text(path, with_section(card, HEADING, self.section()))

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, for JSON."""
        plain = asdict(self) | {
            "settings": self.settings.model_dump(mode="json", exclude={"common"}),
            "kappa": {" and ".join(pair): figure._asdict() for pair, figure in self.kappa.items()},
            "alpha": self.alpha._asdict(),
            "words": self.words(),
        }
        return {name: _plain(value) for name, value in plain.items()}

    def __repr__(self) -> str:
        return "\n\n".join(str(table) for table in self.tables())

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.tables())


def report_of(store: Store) -> ReviewReport:
    """The report of a review.

    Raises:
        DataError: Nothing was judged yet.
    """
    settings, judgements = store.settings, store.judgements()
    decisions = decide(judgements)
    if not decisions:
        raise DataError("nothing is judged yet; judge some pairs first", path=store.path)
    estimates = Estimates(settings, store.strata, store.pairs, decisions)
    by = {fact: estimates.by(fact) for fact in FACTS} | {RELATION: estimates.by_relation()}
    said = _by_reviewer(judgements, settings)
    return ReviewReport(
        settings=settings,
        sample=len(store.pairs),
        total=estimates.all(),
        by={
            fact: values for fact, values in by.items() if fact == "label" or _divides(values, len(decisions))
        },
        unseen=estimates.unseen,
        kappa=_kappas(said, settings),
        alpha=krippendorff_alpha(_units(said.values()), _scale(settings)),
        disputed=len(disputed(judgements)),
        people=_people(judgements),
    )


def _divides(values: Mapping[str, Estimate], judged: int) -> bool:
    """Whether a fact tells pairs apart, rather than being the same of all."""
    return bool(values) and next(iter(values.values())).judged < judged


def _scale(settings: ReviewSettings) -> Scale:
    return "nominal" if settings.asked == "labels" else "interval"


def _by_reviewer(judgements: Iterable[Judgement], settings: ReviewSettings) -> dict[str, dict[str, float]]:
    """What each reviewer could tell of which pair, at first sight."""
    said = defaultdict[str, dict[str, float]](dict)
    for judgement in judgements:
        if judgement.role == REVIEWER and judgement.turn == 0 and judgement.answer in settings.answers:
            said[judgement.person][judgement.pair_id] = settings.answers[judgement.answer]
    return dict(sorted(said.items()))


def _kappas(
    said: Mapping[str, Mapping[str, float]], settings: ReviewSettings
) -> dict[tuple[str, str], Figure]:
    found = {}
    for one, other in combinations(said, 2):
        if both := sorted(said[one].keys() & said[other].keys()):
            first, second = ([said[name][pair_id] for pair_id in both] for name in (one, other))
            found[one, other] = cohen_kappa(first, second, _scale(settings))
    return found


def _units(said: Iterable[Mapping[str, float]]) -> Sequence[Sequence[float]]:
    units = defaultdict[str, list[float]](list)
    for values in said:
        for pair_id, value in values.items():
            units[pair_id].append(value)
    return [units[pair_id] for pair_id in sorted(units)]


def _people(judgements: Iterable[Judgement]) -> dict[str, Work]:
    mine = defaultdict[str, list[Judgement]](list)
    for judgement in judgements:
        mine[judgement.person].append(judgement)
    return {name: _work(said) for name, said in sorted(mine.items())}


def _work(said: Sequence[Judgement]) -> Work:
    heard = [judgement for judgement in said if judgement.answer != SKIP]
    first = {judgement.pair_id: judgement for judgement in heard if judgement.turn == 0}
    again = [
        judgement.answer == first[judgement.pair_id].answer
        for judgement in heard
        if judgement.turn and judgement.pair_id in first
    ]
    seconds = sum(judgement.seconds for judgement in said)
    return Work(
        judged=len(first),
        unsure=sum(judgement.answer == UNSURE for judgement in first.values()),
        skipped=len(said) - len(heard),
        minutes=round(seconds / 60, 1),
        seconds_each=round(seconds / len(said), 1) if said else None,
        repeats=weighted_share(again),
    )


def _cells(estimate: Estimate) -> tuple[Any, ...]:
    return estimate.judged, estimate.unsure, estimate.disputed, *_figure(estimate.right)


def _figure(figure: Figure) -> tuple[str, str]:
    value = "–" if figure.value is None else f"{figure.value:.2f}"
    return value, "–" if figure.interval is None else "{:.2f}–{:.2f}".format(*figure.interval)


def _told(figure: Figure) -> str:
    if figure.value is None:
        return "not defined"
    interval = "" if figure.interval is None else " [{:.2f}, {:.2f}]".format(*figure.interval)
    return f"{figure.value:.2f}{interval}"


def _plain(value: Any) -> Any:
    if isinstance(value, Figure):
        return _plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return list(value)
    return value
