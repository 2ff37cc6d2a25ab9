"""`label report` and `label show`: yield, cost and drop reasons by LLM, and the details of one sentence."""

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
from llm_labeler.parsing.filters import REASONS as FILTER_REASONS
from llm_labeler.records import POLARITIES, Failure, LabelledPair, StoredAnswer, Text
from llm_labeler.runs.assemble import QualityWarnings
from llm_labeler.runs.label_folder import (
    CANDIDATES_FILE,
    STORE_FILE,
    RunRecord,
    load_run,
    read_private,
)
from llm_labeler.runs.questions_and_votes import (
    TextCandidates,
    estimate_judges,
    screen_texts,
    with_votes,
)
from pairkit.base.cli.result_table import Printed, ResultTable
from pairkit.base.cli.terminal import CommandResult
from pairkit.base.errors import DataError

_MEANINGS = {**FILTER_REASONS, **ANSWER_REASONS}  # of reasons to drop a proposal
_HEADER = ("LLM", "answers", "proposals", "kept", "pairs", "calls", "tokens", "cost")


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
            **{name: getattr(self, name) for name in ("answers", "proposals", "kept", "pairs")},
            "dropped": dict(sorted(self.dropped.items())),
            "calls": self.spent.requests,
            "tokens": self.spent.tokens,
            "estimated_calls": self.spent.estimated,
            "cost": self.spent.cost,
        }


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
        return [("look at one sentence", ["label", "show", self.example, "--work", str(self.work)])]

    def table(self) -> ResultTable:
        """One row per LLM."""
        table = ResultTable(
            *_HEADER, title=f"{self.texts:,} sentences", caption="\n".join(self.warnings)
        )
        for name, counts in self.llms.items():
            kept = f"{counts.kept:,} ({counts.kept / counts.proposals if counts.proposals else 0.0:.0%})"
            spent = (counts.spent.requests, counts.spent.tokens, money(counts.spent.cost))
            table.add_row(name, counts.answers, counts.proposals, kept, counts.pairs, *spent)
        return table

    def tables(self) -> list[ResultTable]:
        """The table by LLM, and a table of reasons for each kind of loss."""
        tables = [self.table()]
        proposals = {
            f"Dropped proposals of {name}": counts.dropped for name, counts in self.llms.items()
        }
        losses: dict[str, Mapping[str, int]] = {
            "Unused input rows": self.dropped_texts,
            **proposals,
            "Candidates rejected by the aggregation": self.turned_down,
            "Unanswered questions": self.failures,
        }
        for title, counts in losses.items():
            columns = ("meaning",) if _MEANINGS.keys() & counts.keys() else ()
            if counts:
                tables.append(ResultTable("reason", "number", *columns, title=title, left=columns))
            for reason, number in sorted(counts.items()):
                tables[-1].add_row(reason, number, *(_MEANINGS.get(reason, "") for _ in columns))
        return tables


def report_run(work: Path) -> Report:
    """Count answers, proposals, candidates and failures of a working folder."""
    record, texts = load_run(work)
    llms = {name: Yield() for name in sorted({*record.settings.proposers, *record.settings.judges})}
    quality = QualityWarnings(record.settings)
    example = ""
    with AnswerStore.open(work / STORE_FILE) as store:
        for screened in screen_texts(store, record, {text.text_id: text for text in texts}):
            quality.add(screened.text.text, screened.proposals, screened.answers)
            for name, answers in screened.answers.items():
                llms[name].answers += answers
            for proposal in screened.proposals:
                counts = llms[proposal.llm]
                counts.proposals += 1
                if proposal.reason is None:
                    counts.kept += 1
                else:
                    counts.dropped[proposal.reason] += 1
                    example = example or screened.text.text_id
        for name, spent in store.spent_by_llm().items():
            llms.setdefault(name, Yield()).spent = spent
        failures = Counter(failure.reason for failure in store.failures())
    turned_down: Counter[str] = Counter()
    if (work / CANDIDATES_FILE).exists():  # a run that failed wrote no dataset
        candidates = read_private(work / CANDIDATES_FILE)
        for proposers, reason in candidates.select("llms", "reason").iter_rows():
            for name in proposers if reason is None else ():
                llms[name].pairs += 1
        turned_down.update(candidates["reason"].drop_nulls().to_list())
    counted = (len(texts), record.dropped_texts, llms, turned_down, failures, quality.warnings())
    return Report(*counted, work, example or texts[0].text_id)


@dataclass(frozen=True, slots=True, repr=False)
class Shown(CommandResult):
    """One sentence with its prompts, answers, proposals and votes.

    Attributes:
        prompts: The sent messages by polarity, as (role, content).
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
            yield f"prompt, {polarity}", [f"{role}: {content}" for role, content in messages]
        for answer in self.answers:
            key = answer.key
            reply = answer.reply
            title = f"answer of {key.llm}, {key.task} ({reply.finish}; prompt {key.prompt_hash})"
            yield title, [reply.raw or "(empty)"]
        for failure in self.failures:
            line = f"{failure.reason} after {failure.attempts} calls: {failure.detail}"
            yield f"no answer of {failure.key.llm}, {failure.key.task}", [line]
        if self.gathered is not None:
            yield (
                "proposals",
                [
                    f"{p.llm} {p.polarity} [{p.reason or p.change or 'kept'}] {p.candidate}"
                    for p in self.gathered.proposals
                ],
            )
        if self.pairs:
            yield "pairs", [*map(_pair_line, self.pairs)]

    def tables(self) -> list[str]:
        """The text for the terminal."""
        return [repr(self)]

    def __repr__(self) -> str:
        parts = (f"\n{title}\n{chr(10).join(lines)}" for title, lines in self.parts())
        return "\n".join((f"{self.text.text_id}  row {self.text.row}", self.text.text, *parts))


def _pair_line(pair: LabelledPair) -> str:
    votes = ", ".join(f"{vote.judge}: {vote.vote}" for vote in pair.votes)
    mark = pair.reason or f"{pair.polarity}, label {pair.label:g}"
    return f"[{mark}] {pair.candidate.candidate}{f'  ({votes})' if votes else ''}"


def show_sentence(work: Path, sentence: str) -> Shown:
    """Collect all that is stored about a sentence."""
    record, texts = load_run(work)
    text = find_text(texts, sentence, work)
    with AnswerStore.open(work / STORE_FILE) as store:
        screened = screen_texts(store, record, {text.text_id: text})
        judged = next(with_votes(screened, store, record), None)
        return Shown(
            text,
            {
                polarity: [
                    (message.role, message.content)
                    for message in record.template.messages(
                        text.text, record.settings.size, polarity
                    )
                ]
                for polarity in record.settings.prompt.polarities
            },
            tuple(store.answers([*POLARITIES, "judge"], [text.text_id])),
            tuple(failure for failure in store.failures() if failure.key.text_id == text.text_id),
            judged,
            _pairs(store, record, {text.text_id: text for text in texts}, judged),
        )


def find_text(texts: tuple[Text, ...], sentence: str, work: Path) -> Text:
    """The text with this id, row or content."""
    matches = [text for text in texts if sentence in (text.text_id, text.text, f"row:{text.row}")]
    matches = matches or [text for text in texts if sentence and text.text_id.startswith(sentence)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise DataError(
            f"{len(matches)} sentences have ids that begin with {sentence!r}; give more characters",
            path=work,
        )
    raise DataError(
        f"no sentence {sentence!r} among {len(texts):,}; give a text_id (a column of the dataset), row:N or"
        " the sentence",
        path=work,
    )


def _pairs(
    store: AnswerStore, record: RunRecord, texts: Mapping[str, Text], judged: TextCandidates | None
) -> tuple[LabelledPair, ...]:
    if judged is None:
        return ()
    judges = estimate_judges(screen_texts(store, record, texts), store, record)
    return tuple(label(judged.candidates, judged.votes, record.settings.ensemble, judges))
