"""What a review found: how right labels are, how far people agree, how long it took; also for the card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pairkit._review.estimates import Estimate, Estimates
from pairkit._review.facts import FACTS
from pairkit._review.people import Work, agreement, work_of
from pairkit.agreement import Figure
from pairkit.card import table as markdown_table
from pairkit.card import with_section
from pairkit.errors import ConfigError, DataError
from pairkit.files import write_text
from pairkit.judgements import ADJUDICATOR, ReviewSettings, Store, decide, disputed
from pairkit.result_table import ResultTable

HEADING = "Inspected by hand"
RELATION = "relation that people gave"
_CARD = "README.md"
_CARD_VALUES = 20  # of a fact, such as repositories; with more of them it stands in the report alone


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
        settled: Those that an adjudicator settled.
        people: What each reviewer did.
    """

    settings: ReviewSettings
    sample: int
    total: Estimate
    by: Mapping[str, Mapping[str, Estimate]]
    unseen: Mapping[str, int]
    kappa: Mapping[tuple[str, str], Figure]
    alpha: Figure
    disputed: int
    settled: int
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
            agreed = ResultTable("agreement of", "measure", "pairs", "value", "95 %", left=["measure"])
            for pair, figure in self.kappa.items():
                agreed.add_row(" and ".join(pair), "Cohen's kappa", figure.n, *_figure(figure))
            agreed.add_row("all", "Krippendorff's alpha", self.alpha.n, *_figure(self.alpha))
            found.append(agreed)
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
            settled = f"{self.settled:,} are settled" if self.settled else "--adjudicate (adjudicate=True)"
            told.append(f"reviewers differ on {self.disputed:,} pairs: {settled}")
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
        if self.settled:
            lines.append(
                f"Reviewers differed on {self.disputed:,} pairs; {self.settled:,} were then settled."
            )
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
    kappa, alpha = agreement(judgements, settings)
    by = {fact: estimates.by(fact) for fact in FACTS} | {RELATION: estimates.by_relation()}
    return ReviewReport(
        settings=settings,
        sample=len(store.pairs),
        total=estimates.all(),
        by={
            fact: values for fact, values in by.items() if fact == "label" or _divides(values, len(decisions))
        },
        unseen=estimates.unseen,
        kappa=kappa,
        alpha=alpha,
        disputed=len(disputed(judgements)),
        settled=len({judgement.pair_id for judgement in judgements if judgement.role == ADJUDICATOR}),
        people=work_of(judgements),
    )


def _divides(values: Mapping[str, Estimate], judged: int) -> bool:
    """Whether a fact tells pairs apart, rather than being the same of all."""
    return bool(values) and next(iter(values.values())).judged < judged


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
