"""Makes the dataset from stored answers, without a call, and the result of a run."""

from __future__ import annotations

import time
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from llm_labeler.dataset.card import write
from llm_labeler.dataset.splits import DatasetRows, split_texts
from llm_labeler.dataset.texts import InputTexts
from llm_labeler.dispatch.answers import AnswerStore
from llm_labeler.dispatch.budget import Spending, money
from llm_labeler.judging.ensemble import label
from llm_labeler.judging.judges import Judges
from llm_labeler.parsing.filters import BESIDE, REPEATS, shared
from llm_labeler.records import Proposal, Text
from llm_labeler.runs.run_folder import CANDIDATES_FILE, RunRecord, format_counts
from llm_labeler.runs.tasks import GenerationTask, TextCandidates, estimate_judges, with_votes
from llm_labeler.settings import AGGREGATIONS, RULES, TASKS, LabelSettings
from pairkit.app.errors import PairkitError, RemoteError
from pairkit.app.progress import Listener, Progress
from pairkit.app.result_table import Printed, ResultTable
from pairkit.app.terminal import say as tell
from pairkit.dataset.reader import read_pairs
from pairkit.dataset.records import PairDataset


@dataclass(frozen=True, slots=True)
class Asked:
    """Calls, spending and failures of a session."""

    cached: int = 0
    spent: Spending = field(default_factory=Spending)
    stopped: str | None = None
    unanswered: Mapping[str, int] = field(default_factory=dict)
    problems: Mapping[str, PairkitError] = field(default_factory=dict)
    detail: str = ""  # the common message of all failures, if they have one

    def unanswered_counts(self) -> str:
        """How many questions got no answer, by reason."""
        number, detail = sum(self.unanswered.values()), f": {self.detail}" if self.detail else ""
        return f"{number:,} questions ({format_counts(self.unanswered)}{detail})"

    def problem(self, out: Path) -> RemoteError | None:
        """What the dataset in `out` lacks; None if nothing failed."""
        missing = [f"{llm} ({error})" for llm, error in self.problems.items()]
        if self.unanswered:
            missing.append(self.unanswered_counts())
        if not missing:
            return None
        return RemoteError(
            f"{out} is made without all answers of {'; '.join(missing)}; run the same command again"
        )


def judges_table(judges: Judges) -> ResultTable:
    """Each judge's record, and how their votes were weighed."""
    alpha = "undefined" if judges.alpha is None else f"{judges.alpha:.2f}"
    why = f" ({judges.reason})" if judges.reason else ""
    caption = f"weighed by {judges.method}{why}; Krippendorff's alpha {alpha}"
    is_alone = len(judges.by_name) < 2  # its accuracy can't be estimated without other votes
    headings = ("judge", "judged", "unsure", "accuracy", "agrees with")
    found = ResultTable(*headings, caption=caption, left=("agrees with",))
    for name, judge in sorted(judges.by_name.items()):
        shares = [
            f"{pair.other if pair.one == name else pair.one} {pair.share:.0%}"
            for pair in judges.agreements
            if name in (pair.one, pair.other)
        ]
        accuracy = "-" if is_alone else f"{judge.accuracy:.2f}"
        found.add_row(name, judge.judged, judge.unsure, accuracy, ", ".join(shares))
    return found


@dataclass(frozen=True, repr=False, kw_only=True)
class RunResult(Printed):
    """What `generate`, `parse` and `judge` return."""

    out: Path
    work: Path
    statistics: Mapping[str, Any]
    judges: Judges | None
    asked: Asked
    spent_in_all: Spending
    seconds: float

    @cached_property
    def pairs(self) -> PairDataset:
        """The dataset, read at the first use."""
        return read_pairs(self.out)

    @property
    def problem(self) -> RemoteError | None:
        """What the dataset lacks; None if nothing failed."""
        return self.asked.problem(self.out)

    def tables(self) -> list[ResultTable]:
        """Each judge's record if there are judges, and the counts."""
        return [*([judges_table(self.judges)] if self.judges else []), self.table()]

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
        spent, cached = self.asked.spent, self.asked.cached
        calls = f"{spent.requests:,} calls ({cached:,} answered before), {spent.tokens:,} tokens"
        return f"{calls}, cost {money(spent.cost)}"


@dataclass(frozen=True, repr=False, kw_only=True)
class Labelled(RunResult):
    """A finished run of `generate` or `parse`.

    Attributes:
        out: The dataset's folder.
        work: The folder of the answers, for `show`, `report`, `score` and `parse`.
        statistics: As in the dataset's statistics.json.
        dropped: Number of input rows, proposals, candidates and questions that gave no pair, by reason.
        judges: The judges' estimated accuracies; None without judges.
        asked: Calls, spending and failures of this session.
        spent_in_all: Spending of all sessions in `work`.
        seconds: Of this session.
        messages: What was reported during the run, a line each.
    """

    dropped: Mapping[str, int]
    messages: tuple[str, ...] = ()

    @property
    def positives(self) -> int:
        """Pairs of the same meaning in all splits."""
        return self._count("positive")

    @property
    def negatives(self) -> int:
        """Pairs of opposite meaning in all splits."""
        return self._count("negative")

    @property
    def spent(self) -> Spending:
        """Calls, tokens and money of this session."""
        return self.asked.spent

    @property
    def cost(self) -> float | None:
        """US dollars of this session; None if a price is unknown."""
        return self.spent.cost

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, for JSON."""
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
        """Counts by split, and what they cost."""
        columns = ("texts", "positive", "negative", "triplets")
        found = ResultTable("split", *columns, title=str(self.out), caption=self._caption())
        for split, counts in self.statistics["splits"].items():
            found.add_row(split, *(counts[name] for name in columns))
        return found

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """How to see what was dropped, and how to train on the rest."""
        train = ["aoe", "train", "--backbone", "minilm", "--out", "model", "--data"]
        triplets = self.out / "triplet"
        return [
            ("see why rows were dropped", ["label", "report", "--work", str(self.work)]),
            ("train on the triplets", [*train, str(triplets), "--preset", "domain"])
            if triplets.is_dir()
            else ("train on the pairs", [*train, str(self.out)]),
        ]

    def __repr__(self) -> str:
        counts = f"{self.positives:,} positive and {self.negatives:,} negative pairs"
        return (
            f"Labelled({str(self.out)!r}: {counts} of {self.statistics['texts']:,} texts; {self._caption()})"
        )

    def _caption(self) -> str:
        return f"{self._cost()}; {sum(self.dropped.values()):,} dropped; {self.seconds:.1f} s"

    def _count(self, polarity: str) -> int:
        return sum(split[polarity] for split in self.statistics["splits"].values())


_FEWEST = 3  # fewer are not significant
_LITTLE = 0.2  # shared content words; of true paraphrases 3 % have less


class QualityWarnings:
    """Counts of proposals and answers by LLM, text by text, and the warnings that follow."""

    def __init__(self, settings: LabelSettings) -> None:
        self._needs_positives = frozenset(
            name
            for name in settings.proposers
            if settings.llm[name].kind == RULES and "positive" in settings.prompt.polarities
        )
        self._positives, self._kept, self._beside = Counter[str](), Counter[str](), Counter[str]()
        self._negatives, self._repeats = Counter[str](), Counter[str]()
        self._spent, self._answers = Counter[str](), Counter[str]()

    def add(self, text: str, proposals: Iterable[Proposal], answers: Counter[str]) -> None:
        """Take in one text's proposals, and how many answers they come from, by LLM."""
        self._answers.update(answers)
        for proposal in proposals:
            is_kept = proposal.reason is None
            is_positive = is_kept and proposal.polarity == "positive"
            is_unlike = is_positive and shared(proposal.candidate, text) < _LITTLE
            self._positives[proposal.llm] += is_positive
            self._kept[proposal.llm] += is_kept and not is_unlike
            self._beside[proposal.llm] += is_unlike or proposal.reason in BESIDE
            self._spent[proposal.llm] += proposal.reason == "limit_spent"
            if proposal.polarity == "negative" and (is_kept or proposal.reason in REPEATS):
                self._negatives[proposal.llm] += 1
                self._repeats[proposal.llm] += not is_kept

    def warnings(self) -> tuple[str, ...]:
        """One line for each doubt, by LLM."""
        return tuple(line for llm in sorted(self._answers) for line in self._about(llm))

    def _about(self, llm: str) -> list[str]:
        found: list[str] = []
        if llm in self._needs_positives and not self._positives[llm]:
            found.append(
                f"{llm}: made no positives; its rules are for English sentences only: take an LLM for others"
            )
        beside, judged = self._beside[llm], self._beside[llm] + self._kept[llm]
        if beside >= _FEWEST and 2 * beside > judged:
            found.append(
                f"{llm}: {beside:,} of {judged:,} sentences have little to do with their texts (dropped as"
                f" {', '.join(BESIDE)}, or kept with almost no word in common); it may answer them"
                " instead of rewriting them: look at some with `label show`, and try prompt hardened"
                " (--prompt hardened)"
            )
        repeats, negatives = self._repeats[llm], self._negatives[llm]
        if repeats >= _FEWEST and 2 * repeats > negatives:
            found.append(
                f"{llm}: {repeats:,} of {negatives:,} negatives say what their texts say"
                f" ({', '.join(REPEATS)}); it may be too small for the task: look at some with `label show`,"
                " and take a larger model or have others judge with aggregation vote (--aggregation)"
            )
        spent, answers = self._spent[llm], self._answers[llm]
        if spent >= _FEWEST and 2 * spent > answers:
            found.append(
                f"{llm}: {spent:,} of {answers:,} answers spent their token limit before they began, as a"
                f" rule on reasoning; raise llm.{llm}.max_tokens, or turn reasoning off in llm.{llm}.extra"
            )
        return found


_REPORT_EVERY = 256  # texts


class Notes(list[str]):
    """What people should know of a run: kept, and told at once where progress is shown."""

    def __init__(self, progress: bool | Listener) -> None:
        self._is_quiet = progress is not True

    def add(self, words: str) -> None:
        """Keep a note, and print it."""
        self.append(words)
        tell(words, quiet=self._is_quiet)

    def add_input(self, texts: InputTexts, remote: Sequence[str]) -> None:
        """Which rows are not used, and which LLMs may send the others to another machine."""
        for reason, count in texts.dropped.items():
            self.add(
                f"{texts.examples[reason]}: not used, {reason} ({count:,} such rows; see the [input]"
                " settings)"
            )
        if remote:
            self.add(f"the sentences may leave this machine: {', '.join(remote)}")

    def add_rejected(self, store: AnswerStore, record: RunRecord) -> None:
        """What is not asked again by itself."""
        if rejected := sum(failure.final and record.asks(failure.key) for failure in store.failures()):
            self.add(
                f"{rejected:,} questions were rejected for good and not asked again; retry_failed"
                " (--retry-failed) asks them"
            )


def assemble(
    store: AnswerStore,
    record: RunRecord,
    texts: Sequence[Text],
    screened: Iterable[TextCandidates],
    out: Path,
    work: Path,
    asked: Asked,
    notes: Notes,
    *,
    started: float,
    show: Listener,
) -> Labelled:
    """Parse, screen, label and split what is stored; write the dataset, and WORK/candidates.parquet."""
    settings = record.settings
    by_id = {text.text_id: text for text in texts}
    judges = estimate_judges(screened, store, record)  # first: `weighted` goes by all votes
    triplets = TASKS[settings.task].triplets
    rows = DatasetRows(settings.ensemble.aggregation, settings.seed, triplets=triplets)
    ids = sorted(by_id)
    owners = array("i", range(len(ids)))  # of the texts, and of all candidates that may become rows
    dropped: Counter[str] = Counter()
    doubts = QualityWarnings(settings)
    answers = unjudged = proposals = 0
    for number, about in enumerate(with_votes(screened, store, record)):
        if not number % _REPORT_EVERY:
            show(Progress("making pairs", number, len(texts)))
        pairs = label(about.candidates, about.votes, settings.ensemble, judges)
        rows.add(about.text, pairs)
        doubts.add(about.text.text, about.proposals, about.answers)
        emitted = sum(pair.reason is None for pair in pairs)
        owners.extend([bisect_left(ids, about.text.text_id)] * emitted)
        dropped.update(item.reason for item in about.proposals if item.reason is not None)
        answers, unjudged = answers + about.answers.total(), unjudged + about.unjudged
        proposals += len(about.proposals)
    show(Progress("making pairs", len(texts), len(texts), ended=True))
    rows.write_candidates(work / CANDIDATES_FILE)
    sentences = rows.emitted([by_id[text_id] for text_id in ids])
    del by_id
    splits = split_texts(ids, sentences, np.array(owners), settings.split, settings.seed)
    del sentences, owners
    task = GenerationTask(record)
    wanted = len(texts) * sum(map(task.questions_a_text, settings.proposers))
    rejected = sum(failure.final and task.is_of_run(failure.key) for failure in store.failures())
    counts = {
        **{f"text_{reason}": count for reason, count in record.dropped_texts.items()},
        **dropped,
        "answer_rejected": rejected,
        "not_answered": wanted - answers - rejected,
        "not_judged": unjudged,
    }
    dropped_before = {reason: count for reason, count in sorted(counts.items()) if count}
    statistics = write(
        out,
        rows,
        dict(zip(ids, splits, strict=True)),
        graded=AGGREGATIONS[settings.ensemble.aggregation].is_graded,
        statistics={
            "texts": len(texts),
            "answers": answers,
            "proposals": proposals,
            "candidates": rows.candidates,
            "dropped": dropped_before,
            "warnings": [*doubts.warnings()],
            **({"judges": judges.to_dict()} if judges else {}),
        },
        run=record.made_of(),
    )
    for warning in doubts.warnings():
        notes.add(f"warning: {warning}")
    return Labelled(
        out=out,
        work=work,
        statistics=statistics,
        judges=judges,
        asked=asked,
        dropped={**dropped_before, **rows.dropped},
        spent_in_all=store.spent(),
        seconds=time.monotonic() - started,
        messages=tuple(notes),
    )
