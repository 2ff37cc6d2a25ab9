"""Make the dataset from stored answers, without a call."""

from __future__ import annotations

import time
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from llm_labeler.dataset.label_card import write
from llm_labeler.dataset.label_splits import DatasetRows, split_texts
from llm_labeler.dataset.texts import InputTexts
from llm_labeler.dispatch.answer_store import AnswerStore
from llm_labeler.dispatch.budget import Spending, money
from llm_labeler.judging.ensemble import Judges, label
from llm_labeler.parsing.filters import COPIES, OFF_TOPIC, shared
from llm_labeler.records import Proposal, Text, format_counts
from llm_labeler.runs.label_folder import CANDIDATES_FILE, RunRecord
from llm_labeler.runs.questions_and_votes import (
    GenerationTask,
    ScreenedTexts,
)
from llm_labeler.settings import AGGREGATIONS, FUNCTION, LabelSettings
from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.cli.terminal import say
from pairkit.base.errors import PairkitError, RemoteError, spoken
from pairkit.dataset.reading.reader import read_pairs
from pairkit.dataset.records import PairDataset
from pairkit.similarity.languages import train_command

_MIN_YIELD = 0.1  # pairs or triplets per text; fewer are not worth training
_MIN_COUNT = 3  # fewer cases give no warning
_MIN_SHARED = 0.2  # share of common content words; 3 % of true paraphrases have less

_REPORT_EVERY = 256  # texts


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

    @cached_property
    def pairs(self) -> PairDataset:
        """The dataset, read at the first use."""
        return read_pairs(self.out)

    @property
    def problem(self) -> RemoteError | None:
        """The error that lists missing answers; None if nothing failed."""
        return self.asked.problem(self.out)

    @property
    def cost(self) -> float | None:
        """US dollars of this session; None if a price is unknown."""
        return self.asked.spent.cost

    def tables(self) -> list[ResultTable]:
        """The judges, if there are any, and the counts."""
        tables = [self.table()]
        if self.judges:
            tables.insert(0, judges_table(self.judges))
        return tables

    def _calls(self) -> dict[str, Any]:
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
        work: Folder of the answers, for `show`, `report`, `score` and `parse`.
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

    def table(self) -> ResultTable:
        """Counts by split, with the cost as caption."""
        columns = ("texts", "positive", "negative", "triplets")
        table = ResultTable(
            "split", *columns, title=str(self.out), caption=self._caption()
        )
        for split, counts in self.statistics["splits"].items():
            table.add_row(split, *(counts[name] for name in columns))
        return table

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


class QualityWarnings:
    """Counts proposals and answers by LLM, and derives warnings from the counts."""

    def __init__(self, settings: LabelSettings) -> None:
        self._settings = settings
        self._counts: dict[str, Counter[str]] = {}  # by LLM

    def add(
        self, text: str, proposals: Iterable[Proposal], answers: Counter[str]
    ) -> None:
        """Count one text's proposals, and the number of answers by LLM."""
        for llm, number in answers.items():
            self._counts.setdefault(llm, Counter())["answers"] += number
        for proposal in proposals:
            counts = self._counts.setdefault(proposal.llm, Counter())
            is_kept = proposal.reason is None
            is_positive = is_kept and proposal.polarity == "positive"
            is_unlike = is_positive and shared(proposal.candidate, text) < _MIN_SHARED
            counts["positives"] += is_positive
            counts["on_topic"] += is_kept and not is_unlike
            counts["off_topic"] += is_unlike or proposal.reason in OFF_TOPIC
            counts["limit_spent"] += proposal.reason == "limit_spent"
            counts["empty"] += proposal.reason == "empty_answer"
            is_copy = proposal.reason in COPIES
            if proposal.polarity == "negative" and (is_kept or is_copy):
                counts["negatives"] += 1
                counts["copies"] += is_copy

    def warnings(self) -> tuple[str, ...]:
        """The warnings, one line each, sorted by LLM."""
        lines = []
        for llm, counts in sorted(self._counts.items()):
            if self._settings.llm[llm].is_rules:
                warnings = self._of_rules(counts)
            else:
                warnings = self._of_llm(llm, counts)
            lines += [f"{llm}: {warning}" for warning in warnings]
        return tuple(lines)

    def _of_rules(self, counts: Counter[str]) -> Iterator[str]:
        if "positive" in self._settings.prompt.polarities and not counts["positives"]:
            yield "no positives; its rules fit few sentences, all English: use an LLM"

    def _of_llm(self, llm: str, counts: Counter[str]) -> Iterator[str]:
        off_topic = counts["off_topic"]
        judged = off_topic + counts["on_topic"]
        if off_topic >= _MIN_COUNT and 2 * off_topic > judged:
            yield (
                f"{off_topic:,} of {judged:,} sentences have little to do with their texts (dropped as"
                f" {', '.join(OFF_TOPIC)}, or kept with almost no word in common); it may answer them instead"
                " of rewriting them: look at some with `label show`, and try --prompt=hardened"
            )
        copies = counts["copies"]
        negatives = counts["negatives"]
        if copies >= _MIN_COUNT and 2 * copies > negatives:
            yield (
                f"{copies:,} of {negatives:,} negatives repeat their texts"
                f" ({', '.join(COPIES)}); it may be too small for the task: look at some with `label show`,"
                " and use a larger model, or let other LLMs judge with --aggregation=vote"
            )
        answers = counts["answers"]
        empty = counts["empty"]
        if empty >= _MIN_COUNT and 2 * empty >= answers:
            remedy = "another model"
            if self._settings.llm[llm].kind != FUNCTION:
                remedy = f"llm.{llm}.structured=off, or another model"
            yield (
                f"{empty:,} of {answers:,} answers have no sentence; look at some with `label show`,"
                f" and try {remedy}"
            )
        spent = counts["limit_spent"]
        if spent >= _MIN_COUNT and 2 * spent > answers:
            yield (
                f"{spent:,} of {answers:,} answers reached the token limit before they began, usually"
                f" by reasoning; raise llm.{llm}.max_tokens, or turn reasoning off in llm.{llm}.extra"
            )


class Notes(list[str]):
    """The notes of a run; they are also printed if progress is shown."""

    def __init__(self, progress: bool | Listener) -> None:
        self._is_quiet = progress is not True

    def add(self, note: str) -> None:
        """Keep a note, and print it."""
        self.append(spoken(note))
        say(note, quiet=self._is_quiet)

    def add_input(self, texts: InputTexts, remote: Sequence[str]) -> None:
        """Note which rows are not used, and which LLMs may send texts to another machine."""
        for reason, count in texts.dropped.items():
            self.add(
                f"{texts.examples[reason]}: not used, {reason} ({count:,} such rows; see the [input]"
                " settings)"
            )
        if remote:
            self.add(f"the sentences may leave this machine: {', '.join(remote)}")

    def add_rejected(self, store: AnswerStore, record: RunRecord) -> None:
        """Note how many rejected questions were not repeated."""
        rejected = sum(f.final and record.asks(f.key) for f in store.failures())
        if rejected:
            self.add(
                f"{rejected:,} questions were rejected by their server and not repeated;"
                " --retry-failed repeats them"
            )


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run with its stored answers."""

    store: AnswerStore
    record: RunRecord
    texts: Sequence[Text]
    screened: ScreenedTexts
    work: Path


def assemble(
    run: StoredRun,
    out: Path,
    asked: AskSummary,
    notes: Notes,
    *,
    started: float,
    show: Listener,
) -> Labelled:
    """Parse, filter, label and split the stored answers; write the dataset and WORK/candidates.parquet."""
    record = run.record
    settings = record.settings
    # Before the pairs are labelled, as `weighted` needs all votes.
    judges = run.screened.judges()
    aggregation = settings.ensemble.aggregation
    has_triplets = settings.labelling.makes_triplets
    rows = DatasetRows(aggregation, settings.seed, triplets=has_triplets)
    counts = Counter[str]()
    for reason, count in record.dropped_texts.items():
        counts[f"text_{reason}"] = count
    quality = QualityWarnings(settings)
    ids = sorted(text.text_id for text in run.texts)
    # The index of the text: of each text itself, then of each candidate that may become a row.
    text_indices = array("i", range(len(ids)))
    answers = 0
    proposals = 0
    for number, judged in enumerate(run.screened.with_votes()):
        if not number % _REPORT_EVERY:
            show(Progress("making pairs", number, len(ids)))
        pairs = label(judged.candidates, judged.votes, settings.ensemble, judges)
        rows.add(judged.text, pairs)
        quality.add(judged.text.text, judged.proposals, judged.answers)
        kept = sum(pair.reason is None for pair in pairs)
        text_indices.extend([bisect_left(ids, judged.text.text_id)] * kept)
        answers += judged.answers.total()
        proposals += len(judged.proposals)
        counts.update(
            item.reason for item in judged.proposals if item.reason is not None
        )
        counts["not_judged"] += judged.unjudged
    show(Progress("making pairs", len(ids), len(ids), ended=True))
    rows.write_candidates(run.work / CANDIDATES_FILE)

    sentences = rows.sentences(sorted(run.texts, key=lambda text: text.text_id))
    splits = split_texts(
        ids, sentences, np.array(text_indices), settings.split, settings.seed
    )
    del sentences, text_indices
    task = GenerationTask(record)
    questions = len(ids) * sum(map(task.questions_per_text, settings.proposers))
    failures = run.store.failures()
    counts["answer_rejected"] = sum(f.final and task.is_of_run(f.key) for f in failures)
    counts["not_answered"] = questions - answers - counts["answer_rejected"]
    dropped = {reason: count for reason, count in sorted(counts.items()) if count}
    statistics = {
        "texts": len(ids),
        "answers": answers,
        "proposals": proposals,
        "candidates": rows.candidates,
        "dropped": dropped,
        "warnings": [*quality.warnings()],
    }
    if judges:
        statistics["judges"] = judges.to_dict()
    statistics = write(
        out,
        rows,
        dict(zip(ids, splits, strict=True)),
        graded=AGGREGATIONS[aggregation].is_graded,
        statistics=statistics,
        run=record.run_json(),
    )
    for warning in quality.warnings():
        notes.add(f"warning: {warning}")
    return Labelled(
        out=out,
        work=run.work,
        statistics=statistics,
        judges=judges,
        asked=asked,
        dropped={**dropped, **rows.dropped},
        spent_in_all=run.store.spent(),
        seconds=time.monotonic() - started,
        messages=tuple(notes),
    )
