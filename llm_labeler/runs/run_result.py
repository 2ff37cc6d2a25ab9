"""The estimates and results of runs: notes, counts, spending, failures and next steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from llm_labeler.dispatch.budget import PROMISE, Spending, money
from llm_labeler.judging.ensemble import Judges
from llm_labeler.records import format_counts
from llm_labeler.settings import BudgetSettings
from pairkit.base.cli.progress import Listener
from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.cli.terminal import say
from pairkit.base.errors import PairkitError, RemoteError, spoken
from pairkit.dataset.reading.reader import read_pairs
from pairkit.dataset.records import PairDataset
from pairkit.similarity.measures import train_command

_MIN_YIELD = 0.1  # pairs or triplets per text; fewer are not worth training


@dataclass(frozen=True, slots=True)
class Estimate:
    """The likely and the maximum tokens and cost of one LLM.

    Attributes:
        questions: Number of all questions for proposals.
        missing: Number of unanswered ones.
        judge_calls: Likely number of questions for votes.
        tokens: Likely tokens, estimated from the lengths of the texts.
        at_most: Upper bound that budgets are checked against, without judging, which depends on the answers.
        cost: US dollars of `tokens`; None: unknown price.
        cost_at_most: US dollars of `at_most`.
        leaves_machine: Whether texts go to another machine.
    """

    llm: str
    model: str
    questions: int
    missing: int
    judge_calls: int
    tokens: int
    at_most: int
    cost: float | None
    cost_at_most: float | None
    leaves_machine: bool

    def to_dict(self) -> dict[str, Any]:
        """The estimate for JSON."""
        fields = asdict(self)
        del fields["llm"]
        return {"tokens_at_most": fields.pop("at_most"), **fields}


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Printed):
    """The estimated calls, tokens and cost of a run."""

    texts: int
    dropped_texts: Mapping[str, int]
    estimates: tuple[Estimate, ...]
    limits: BudgetSettings
    spent: Spending

    @property
    def cost(self) -> float | None:
        """Likely cost in US dollars; None if a price is unknown."""
        total = 0.0
        for estimate in self.estimates:
            if estimate.cost is None:
                return None
            total += estimate.cost
        return total

    @property
    def calls(self) -> int:
        """Likely number of calls."""
        return sum(each.missing + each.judge_calls for each in self.estimates)

    def short_of(self) -> tuple[str, ...]:
        """A line for each limit that the run will probably reach before its end."""
        spent = self.spent
        tokens = sum(estimate.tokens for estimate in self.estimates)
        amounts: tuple[tuple[str, float, float, Callable[[float], str]], ...] = (
            ("max_requests", spent.requests, self.calls, "{:,} calls".format),
            ("max_tokens", spent.tokens, tokens, "{:,} tokens".format),
            ("max_cost", spent.known_cost, self.cost or 0.0, money),
        )
        lines = []
        for name, so_far, likely, shown in amounts:
            limit = getattr(self.limits, name)
            total = so_far + likely
            if limit is not None and total > limit:
                flag = f"--{name.replace('_', '-')}={limit}"
                line = (
                    f"the run is expected to take {shown(total)}, of which {shown(so_far)} are spent;"
                    f" {flag} covers about {limit / total:.0%} of it: raise it, or use fewer"
                    " sentences with --draw"
                )
                lines.append(spoken(line))
        return tuple(lines)

    def table(self) -> ResultTable:
        """One row per LLM."""
        table = ResultTable(
            "LLM",
            "missing",
            "tokens",
            "at most",
            "cost",
            "at most",
            "text",
            title=f"{self.texts:,} sentences",
            caption="\n".join((f"at most: {PROMISE}", *self.short_of())),
            left=("text",),
        )
        for estimate in self.estimates:
            table.add_row(
                estimate.llm,
                f"{estimate.missing:,} of {estimate.questions:,}",
                estimate.tokens,
                estimate.at_most,
                money(estimate.cost),
                money(estimate.cost_at_most),
                "may leave" if estimate.leaves_machine else "stays",
            )
        return table

    def to_dict(self) -> dict[str, Any]:
        """The plan for JSON."""
        return {
            "texts": self.texts,
            "dropped": dict(self.dropped_texts),
            "calls": self.calls,
            "tokens": sum(estimate.tokens for estimate in self.estimates),
            "tokens_at_most": sum(estimate.at_most for estimate in self.estimates),
            "cost": self.cost,
            "short_of": [*self.short_of()],
            "llms": {estimate.llm: estimate.to_dict() for estimate in self.estimates},
        }


class Notes(list[str]):
    """The notes of a run; they are also printed if progress is shown."""

    def __init__(self, progress: bool | Listener) -> None:
        self._is_quiet = progress is not True

    def add(self, note: str) -> None:
        """Keep a note, and print it."""
        self.append(spoken(note))
        say(note, quiet=self._is_quiet)


@dataclass(frozen=True, slots=True)
class AskSummary:
    """Calls, spending and failures of a session."""

    cached: int = 0
    answered: int = 0
    spent: Spending = field(default_factory=Spending)
    stopped: str | None = None
    unanswered: Mapping[str, int] = field(default_factory=dict)
    problems: Mapping[str, PairkitError] = field(default_factory=dict)
    detail: str = ""  # the message of all failures, if it is the same

    def unanswered_counts(self) -> str:
        """Number of unanswered questions by reason, for a message."""
        number = sum(self.unanswered.values())
        detail = f": {self.detail}" if self.detail else ""
        return f"{number:,} questions ({format_counts(self.unanswered)}{detail})"

    def problem(self, out: Path) -> RemoteError | None:
        """The error that lists missing answers; None if nothing failed and no limit was reached."""
        missing = [f"{llm} ({error})" for llm, error in self.problems.items()]
        if self.unanswered:
            missing.append(self.unanswered_counts())
        remedy = "run the same command again"
        if self.stopped:
            flag = f"--{self.stopped.replace('_', '-')}"
            missing.append(f"the questions beyond {flag}")
            remedy = f"to continue, raise {flag} and {remedy}"
        if not missing:
            return None
        return RemoteError(
            f"{out} was made without all answers of {'; '.join(missing)}; {remedy}"
        )


def judges_table(judges: Judges) -> ResultTable:
    """Counts and estimated accuracy of each judge."""
    alpha = "undefined" if judges.alpha is None else f"{judges.alpha:.2f}"
    why = f" ({judges.reason})" if judges.reason else ""
    caption = f"votes weighted by {judges.method}{why}; Krippendorff's alpha {alpha}"
    columns = ("judge", "judged", "unsure", "accuracy", "agrees with")
    table = ResultTable(*columns, caption=caption, left=("agrees with",))
    for name, judge in sorted(judges.by_name.items()):
        shares = []
        for pair in judges.agreements:
            if name in (pair.one, pair.other):
                other = pair.other if pair.one == name else pair.one
                shares.append(f"{other} {pair.share:.0%}")
        accuracy = accuracy_text(judge.accuracy)
        table.add_row(name, judge.judged, judge.unsure, accuracy, ", ".join(shares))
    return table


def accuracy_text(accuracy: float | None) -> str:
    """Format a judge's accuracy, if it was estimated."""
    return "-" if accuracy is None else f"{accuracy:.2f}"


@dataclass(frozen=True, repr=False, kw_only=True)
class RunResult(Printed):
    """The common part of the results of `generate`, `parse` and `judge`."""

    out: Path
    work: Path
    statistics: Mapping[str, Any]
    judges: Judges | None
    asked: AskSummary
    spent_in_all: Spending
    seconds: float
    _COUNTED: ClassVar[tuple[str, ...]]  # columns of the table

    @cached_property
    def pairs(self) -> PairDataset:
        """The dataset, read at the first use."""
        return read_pairs(self.out)

    @property
    def problem(self) -> RemoteError | None:
        """The error that lists missing answers; None if nothing failed."""
        return self.asked.problem(self.out)

    def check(self) -> None:
        """Raise the error that lists missing answers, if there are any."""
        if self.problem is not None:
            raise self.problem

    @property
    def cost(self) -> float | None:
        """US dollars of this session; None if a price is unknown."""
        return self.asked.spent.cost

    def table(self) -> ResultTable:
        """Counts by split, with the cost as caption."""
        table = ResultTable(
            "split", *self._COUNTED, title=str(self.out), caption=self._caption()
        )
        for split, counts in self.statistics["splits"].items():
            table.add_row(split, *(counts.get(name, 0) for name in self._COUNTED))
        return table

    def tables(self) -> list[ResultTable]:
        """The judges, if there are any, and the counts."""
        tables = [self.table()]
        if self.judges:
            tables.insert(0, judges_table(self.judges))
        return tables

    def _caption(self) -> str:
        raise NotImplementedError

    def _calls(self) -> dict[str, object]:
        return {
            "calls": self.asked.spent.requests,
            "cached": self.asked.cached,
            "tokens": self.asked.spent.tokens,
            "cost": self.asked.spent.cost,
            "cost_in_all": self.spent_in_all.cost,
            "stopped": self.asked.stopped,
            "seconds": round(self.seconds, 3),
        }

    def _cost(self) -> str:
        spent = self.asked.spent
        cached = self.asked.cached
        calls = f"{spent.requests:,} calls ({cached:,} answered before), {spent.tokens:,} tokens"
        cost = f"{calls}, cost {money(spent.cost)}"
        if self.spent_in_all != spent:
            cost += f" ({money(self.spent_in_all.cost)} in all sessions)"
        return cost


@dataclass(frozen=True, repr=False, kw_only=True)
class Labelled(RunResult):
    """The result of `generate` or `parse`.

    Attributes:
        out: Folder of the dataset.
        work: Folder of the answers, for `show`, `report`, `evaluate` and `parse`.
        statistics: Content of the dataset's statistics.json.
        dropped: Number of input rows, proposals, candidates and questions without a pair, by reason.
        judges: The judges' estimated accuracies; None without judges.
        asked: Calls, spending and failures of this session.
        spent_in_all: Spending of all sessions in `work`.
        seconds: Duration of this session.
        messages: Notes and warnings of the run, one line each.
    """

    dropped: Mapping[str, int]
    messages: tuple[str, ...] = ()
    _COUNTED = ("texts", "positive", "negative", "triplets")

    @property
    def positives(self) -> int:
        """Number of pairs with the same meaning, in all splits."""
        return self._count("positive")

    @property
    def negatives(self) -> int:
        """Number of pairs with opposite meaning, in all splits."""
        return self._count("negative")

    def to_dict(self) -> dict[str, Any]:
        """The result for JSON."""
        return {
            "out": str(self.out),
            "texts": self.statistics["texts"],
            "pairs": self.positives + self.negatives,
            "positives": self.positives,
            "negatives": self.negatives,
            "dropped": dict(sorted(self.dropped.items())),
            **self._calls(),
        }

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """Commands to list dropped rows, and to train unless most texts have no pair or all are negative."""
        steps = []
        if self.dropped:
            report = ["label", "report", "--work", str(self.work)]
            steps.append(("see why rows were dropped", report))
        count = self.positives + self.negatives
        triplets = self.out / "triplet"
        step = ("train on the pairs", train_command(self.out))
        if triplets.is_dir():
            command = [*train_command(triplets), "--preset", "domain"]
            step = ("train on the triplets", command)
            count = self._count("triplets")
        if self.positives and count >= _MIN_YIELD * self.statistics["texts"]:
            steps.append(step)
        return steps

    def __repr__(self) -> str:
        counts = f"{self.positives:,} positive and {self.negatives:,} negative pairs"
        return f"Labelled({str(self.out)!r}: {counts} of {self.statistics['texts']:,} texts; {self._caption()})"

    def _caption(self) -> str:
        return f"{self._cost()}; {sum(self.dropped.values()):,} dropped; {self.seconds:.1f} s"

    def _count(self, kind: str) -> int:
        return sum(split[kind] for split in self.statistics["splits"].values())
