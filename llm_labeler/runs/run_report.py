"""`label report` and `label show`: yield, cost, drop reasons and warnings by LLM; the details of one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from llm_labeler.dispatch.answer_store import AnswerStore
from llm_labeler.dispatch.budget import Spending, money
from llm_labeler.judging.ensemble import label
from llm_labeler.parsing.answer import REASONS as ANSWER_REASONS
from llm_labeler.parsing.filters import COPIES, OFF_TOPIC, shared
from llm_labeler.parsing.filters import REASONS as FILTER_REASONS
from llm_labeler.records import (
    POLARITIES,
    Failure,
    LabelledPair,
    StoredAnswer,
    Text,
)
from llm_labeler.runs.label_folder import (
    CANDIDATES_FILE,
    STORE_FILE,
    load_run,
    read_private,
)
from llm_labeler.runs.questions_and_votes import ScreenedTexts, TextCandidates
from llm_labeler.settings import LabelSettings
from llm_labeler.settings.llms import FUNCTION
from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.cli.terminal import CommandResult
from pairkit.base.errors import DataError, spoken

_MEANINGS = {**FILTER_REASONS, **ANSWER_REASONS}  # of reasons to drop a proposal
_HEADER = ("LLM", "answers", "proposals", "kept", "pairs", "calls", "tokens", "cost")
_MIN_COUNT = 3  # fewer cases give no warning
_MIN_SHARED = 0.2  # share of common content words; 3 % of true paraphrases have less


@dataclass(slots=True)
class Yield:
    """The counts of one LLM.

    Attributes:
        proposals: Number of proposed sentences, usable or not.
        kept: Number of proposals that became candidates.
        pairs: Number of candidates that became pairs.
        dropped: Number of dropped proposals by reason.
    """

    answers: int = 0
    proposals: int = 0
    kept: int = 0
    pairs: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    spent: Spending = field(default_factory=Spending)

    def to_dict(self) -> dict[str, Any]:
        """The counts for JSON."""
        return {
            "answers": self.answers,
            "proposals": self.proposals,
            "kept": self.kept,
            "pairs": self.pairs,
            "dropped": dict(sorted(self.dropped.items())),
            "calls": self.spent.requests,
            "tokens": self.spent.tokens,
            "estimated_calls": self.spent.estimated,
            "cost": self.spent.cost,
        }


class Yields:
    """The counts of each LLM, and warnings that follow from them."""

    def __init__(self, settings: LabelSettings) -> None:
        names = sorted({*settings.proposers, *settings.judges})
        self.by_llm = {name: Yield() for name in names}
        self._settings = settings
        # By LLM: kept positives, those unlike their texts, negatives, and those that are copies.
        self._signs = {name: Counter[str]() for name in names}

    @property
    def answers(self) -> int:
        """Number of all answers."""
        return sum(counts.answers for counts in self.by_llm.values())

    def add(self, screened: TextCandidates) -> None:
        """Count the answers and proposals on one text."""
        text = screened.text.text
        for llm, number in screened.answers.items():
            self.by_llm[llm].answers += number
        for proposal in screened.proposals:
            counts = self.by_llm[proposal.llm]
            signs = self._signs[proposal.llm]
            counts.proposals += 1
            is_copy = proposal.reason in COPIES
            if proposal.reason is not None:
                counts.dropped[proposal.reason] += 1
            else:
                counts.kept += 1
                if proposal.polarity == "positive":
                    signs["positives"] += 1
                    signs["unlike"] += shared(proposal.candidate, text) < _MIN_SHARED
            if proposal.polarity == "negative":
                signs["negatives"] += is_copy or proposal.reason is None
                signs["copies"] += is_copy

    def warnings(self) -> tuple[str, ...]:
        """The warnings, one line each, sorted by LLM."""
        lines = []
        for llm, counts in self.by_llm.items():
            if counts.answers:
                lines += [f"{llm}: {warning}" for warning in self._warnings(llm)]
        return tuple(lines)

    def _warnings(self, llm: str) -> Iterator[str]:
        counts = self.by_llm[llm]
        signs = self._signs[llm]
        if self._settings.llm[llm].is_rules:
            polarities = self._settings.prompt.polarities
            if "positive" in polarities and not signs["positives"]:
                yield "no positives; its rules fit few sentences, all English: use an LLM"
            return
        off_topic = signs["unlike"] + sum(counts.dropped[name] for name in OFF_TOPIC)
        judged = off_topic + counts.kept - signs["unlike"]
        if off_topic >= _MIN_COUNT and 2 * off_topic > judged:
            yield (
                f"{off_topic:,} of {judged:,} sentences have little to do with their texts (dropped as"
                f" {', '.join(OFF_TOPIC)}, or kept with almost no word in common); it may answer them instead"
                " of rewriting them: look at some with `label show`, and try another model or another --prompt"
            )
        copies = signs["copies"]
        negatives = signs["negatives"]
        if copies >= _MIN_COUNT and 2 * copies > negatives:
            yield (
                f"{copies:,} of {negatives:,} negatives repeat their texts"
                f" ({', '.join(COPIES)}); it may be too small for the task: look at some with `label show`,"
                " and use a larger model, or let other LLMs judge with --aggregation=vote"
            )
        answers = counts.answers
        empty = counts.dropped["empty_answer"]
        if empty >= _MIN_COUNT and 2 * empty >= answers:
            remedy = "another model"
            if self._settings.llm[llm].kind != FUNCTION:
                remedy = f"llm.{llm}.structured=off, or another model"
            yield (
                f"{empty:,} of {answers:,} answers have no sentence; look at some with `label show`,"
                f" and try {remedy}"
            )
        spent = counts.dropped["limit_spent"]
        if spent >= _MIN_COUNT and 2 * spent > answers:
            yield (
                f"{spent:,} of {answers:,} answers reached the token limit before they began, usually"
                f" by reasoning; raise llm.{llm}.max_tokens, or turn reasoning off in llm.{llm}.extra"
            )


@dataclass(frozen=True, slots=True, repr=False)
class Report(Printed):
    """The counts of a run.

    Attributes:
        texts: Number of labelled sentences.
        dropped_texts: Number of unused input rows by reason.
        llms: The counts of each LLM.
        turned_down: Number of candidates that the aggregation rejected, by reason.
        failures: Number of unanswered questions by reason.
        warnings: Warnings about the quality of the pairs.
        work: Folder of the answers.
        example: text_id of the first sentence with a dropped proposal, else of the first sentence.
    """

    texts: int
    dropped_texts: Mapping[str, int]
    llms: Mapping[str, Yield]
    turned_down: Mapping[str, int]
    failures: Mapping[str, int]
    warnings: tuple[str, ...]
    work: Path
    example: str

    def to_dict(self) -> dict[str, Any]:
        """The report for JSON."""
        llms = {name: counts.to_dict() for name, counts in self.llms.items()}
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        return plain | {"llms": llms, "work": str(self.work)}

    def next_steps(self) -> list[tuple[str, list[str]]]:
        """The command to look at the example."""
        command = ["label", "show", self.example, "--work", str(self.work)]
        return [("look at one sentence", command)]

    def table(self) -> ResultTable:
        """One row per LLM."""
        title = f"{self.texts:,} sentences"
        table = ResultTable(*_HEADER, title=title, caption="\n".join(self.warnings))
        for name, counts in self.llms.items():
            share = counts.kept / counts.proposals if counts.proposals else 0.0
            table.add_row(
                name,
                counts.answers,
                counts.proposals,
                f"{counts.kept:,} ({share:.0%})",
                counts.pairs,
                counts.spent.requests,
                counts.spent.tokens,
                money(counts.spent.cost),
            )
        return table

    def tables(self) -> list[ResultTable]:
        """The table by LLM, and a table of reasons for each kind of loss."""
        losses = [_losses("Unused input rows", self.dropped_texts)]
        for name, counts in self.llms.items():
            title = f"Dropped proposals of {name}"
            losses.append(_losses(title, counts.dropped, _MEANINGS))
        losses += [
            _losses("Candidates rejected by the aggregation", self.turned_down),
            _losses("Unanswered questions", self.failures),
        ]
        return [self.table(), *(table for table in losses if table.rows)]


def _losses(
    title: str, reasons: Mapping[str, int], meanings: Mapping[str, str] = {}
) -> ResultTable:
    """Counts by reason, with the meanings of reasons that need one."""
    columns = ("meaning",) if meanings else ()
    table = ResultTable("reason", "number", *columns, title=title, left=columns)
    for reason, number in sorted(reasons.items()):
        table.add_row(reason, number, *(meanings.get(reason, "") for _ in columns))
    return table


def report_run(work: Path) -> Report:
    """Count answers, proposals, candidates and failures of a working folder."""
    record, texts = load_run(work)
    yields = Yields(record.settings)
    example = ""
    with AnswerStore(work / STORE_FILE) as store:
        for screened in ScreenedTexts(store, record, texts):
            yields.add(screened)
            if not example and any(each.reason for each in screened.proposals):
                example = screened.text.text_id
        for name, spent in store.spent_by_llm().items():
            yields.by_llm.setdefault(name, Yield()).spent = spent
        failures = Counter(failure.reason for failure in store.failures())
    return Report(
        texts=len(texts),
        dropped_texts=record.dropped_texts,
        llms=yields.by_llm,
        turned_down=_count_pairs(work / CANDIDATES_FILE, yields.by_llm),
        failures=failures,
        warnings=tuple(map(spoken, yields.warnings())),
        work=work,
        example=example or texts[0].text_id,
    )


def _count_pairs(path: Path, llms: Mapping[str, Yield]) -> Counter[str]:
    """Count each LLM's pairs; return the reasons of the rejected candidates."""
    turned_down = Counter[str]()
    if not path.exists():  # a run that failed wrote no dataset
        return turned_down
    candidates = read_private(path).select("llms", "reason")
    for proposers, reason in candidates.iter_rows():
        if reason is not None:
            turned_down[reason] += 1
            continue
        for name in proposers:
            llms[name].pairs += 1
    return turned_down


@dataclass(frozen=True, slots=True, repr=False)
class Shown(CommandResult):
    """One sentence with its prompts, answers, proposals and votes.

    Attributes:
        prompts: The sent messages by polarity, as (role, content); none to rules.
        answers: All stored answers, including those of earlier runs.
        failures: The unanswered questions.
        gathered: Proposals and candidates of the last run; None without an answer.
        pairs: The candidates with their labels, or with the reason of their rejection.
    """

    text: Text
    prompts: dict[str, list[tuple[str, str]]]
    answers: tuple[StoredAnswer, ...]
    failures: tuple[Failure, ...]
    gathered: TextCandidates | None
    pairs: tuple[LabelledPair, ...]

    def parts(self) -> Iterator[tuple[str, list[str]]]:
        """The sections of the output: title and lines."""
        for polarity, messages in self.prompts.items():
            lines = [f"{role}: {content}" for role, content in messages]
            yield f"prompt, {polarity}", lines
        for answer in self.answers:
            key = answer.key
            reply = answer.reply
            title = f"answer of {key.llm}, {key.task} ({reply.finish}; prompt {key.prompt_hash})"
            yield title, [reply.raw or "(empty)"]
        for failure in self.failures:
            line = f"{failure.reason} after {failure.attempts} calls: {failure.detail}"
            yield f"no answer of {failure.key.llm}, {failure.key.task}", [line]
        if self.gathered is not None:
            lines = []
            for proposal in self.gathered.proposals:
                mark = proposal.reason or proposal.change or "kept"
                lines.append(
                    f"{proposal.llm} {proposal.polarity} [{mark}] {proposal.candidate}"
                )
            yield "proposals", lines
        if self.pairs:
            lines = []
            for pair in self.pairs:
                mark = pair.reason or f"{pair.polarity}, label {pair.label:g}"
                line = f"[{mark}] {pair.candidate.candidate}"
                if pair.votes:
                    votes = [f"{vote.judge}: {vote.vote}" for vote in pair.votes]
                    line += f"  ({', '.join(votes)})"
                lines.append(line)
            yield "pairs", lines

    def tables(self) -> list[str]:
        """The text for the terminal."""
        return [repr(self)]

    def __repr__(self) -> str:
        shown = [f"{self.text.text_id}  row {self.text.row}", self.text.text]
        for title, lines in self.parts():
            shown += ["", title, *lines]
        return "\n".join(shown)


def show_sentence(work: Path, sentence: str) -> Shown:
    """Collect all that is stored about a sentence."""
    record, texts = load_run(work)
    text = find_text(texts, sentence, work)
    settings = record.settings
    are_rules = all(settings.llm[name].is_rules for name in settings.proposers)
    prompts: dict[str, list[tuple[str, str]]] = {}
    for polarity in () if are_rules else settings.prompt.polarities:
        opening = record.template.opening(polarity)
        question = record.template.question(text.text, settings.size, polarity)
        messages = (*opening, question)
        prompts[polarity] = [(message.role, message.content) for message in messages]
    with AnswerStore(work / STORE_FILE) as store:
        judged = next(ScreenedTexts(store, record, [text]).with_votes(), None)
        pairs: list[LabelledPair] = []
        if judged is not None:
            # The judges' accuracies are estimated from the votes on all sentences.
            judges = ScreenedTexts(store, record, texts).judges()
            pairs = label(judged.candidates, judged.votes, settings.ensemble, judges)
        failures = [f for f in store.failures() if f.key.text_id == text.text_id]
        return Shown(
            text=text,
            prompts=prompts,
            answers=tuple(store.answers([*POLARITIES, "judge"], [text.text_id])),
            failures=tuple(failures),
            gathered=judged,
            pairs=tuple(pairs),
        )


def find_text(texts: tuple[Text, ...], sentence: str, work: Path) -> Text:
    """The text with this id, row or content."""
    matches = [
        text
        for text in texts
        if sentence in (text.text_id, text.text, f"row:{text.row}")
    ]
    if sentence and not matches:
        matches = [text for text in texts if text.text_id.startswith(sentence)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise DataError(
            f"{len(matches)} sentences match {sentence!r}; give one or its whole text_id",
            path=work,
        )
    raise DataError(
        f"no sentence {sentence!r} among {len(texts):,}; give a text_id (a column of the dataset), row:N or"
        " the sentence",
        path=work,
    )
