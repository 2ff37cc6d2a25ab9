"""Reports of a run: drop reasons, yield and cost by LLM, and the details of one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from llm_labeler.dispatch.answers import AnswerStore
from llm_labeler.dispatch.budget import Spending, money
from llm_labeler.judging.ensemble import label
from llm_labeler.records import POLARITIES, Failure, LabelledPair, StoredAnswer, Text
from llm_labeler.runs.assemble import QualityWarnings
from llm_labeler.runs.run_folder import CANDIDATES_FILE, STORE_FILE, RunRecord, load_run, read_private
from llm_labeler.runs.tasks import TextCandidates, estimate_judges, screen_texts, with_votes
from pairkit.app.errors import DataError
from pairkit.app.result_table import Printed, ResultTable

_HEADER = ("LLM", "answers", "proposals", "kept", "pairs", "calls", "tokens", "cost")


@dataclass(slots=True)
class Yield:
    """One LLM's part.

    Attributes:
        proposals: Sentences that it proposed, usable or not.
        kept: Proposals that became candidates.
        pairs: Its candidates that the ensemble let through.
        dropped: Reason to proposals.
    """

    answers: int = 0
    proposals: int = 0
    kept: int = 0
    pairs: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    spent: Spending = field(default_factory=Spending)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
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


@dataclass(frozen=True, slots=True, repr=False)
class Report(Printed):
    """The whole run.

    Attributes:
        texts: Sentences that were labelled.
        dropped_texts: Reason to rows of the input that were not used.
        llms: Each LLM's part.
        turned_down: Candidates by the reason of the ensemble.
        failures: Questions without an answer, by reason.
        warnings: Warnings about the quality of the pairs.
    """

    texts: int
    dropped_texts: Mapping[str, int]
    llms: Mapping[str, Yield]
    turned_down: Mapping[str, int]
    failures: Mapping[str, int]
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        llms = {name: one.to_dict() for name, one in self.llms.items()}
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"llms": llms}

    def table(self) -> ResultTable:
        """One LLM a row."""
        found = ResultTable(*_HEADER, title=f"{self.texts:,} sentences", caption="\n".join(self.warnings))
        for name, one in self.llms.items():
            kept = f"{one.kept:,} ({one.kept / one.proposals if one.proposals else 0.0:.0%})"
            spent = (one.spent.requests, one.spent.tokens, money(one.spent.cost))
            found.add_row(name, one.answers, one.proposals, kept, one.pairs, *spent)
        return found

    def tables(self) -> list[ResultTable]:
        """The table by LLM, and one of reasons for each kind of loss."""
        found = [self.table()]
        proposals = {f"Proposals of {name} that were dropped": one.dropped for name, one in self.llms.items()}
        losses: dict[str, Mapping[str, int]] = {
            "Rows of the input that were not used": self.dropped_texts,
            **proposals,
            "Candidates that the ensemble turned down": self.turned_down,
            "Questions without an answer": self.failures,
        }
        for title, counts in losses.items():
            if counts:
                found.append(ResultTable("reason", "number", title=title))
                for reason, number in sorted(counts.items()):
                    found[-1].add_row(reason, number)
        return found


def report(work: Path) -> Report:
    """Count what a working folder holds."""
    record, texts = load_run(work)
    llms = {name: Yield() for name in sorted({*record.settings.proposers, *record.settings.judges})}
    doubts = QualityWarnings(record.settings)
    with AnswerStore.open(work / STORE_FILE) as store:
        for about in screen_texts(store, record, {text.text_id: text for text in texts}):
            doubts.add(about.text.text, about.proposals, about.answers)
            for name, answers in about.answers.items():
                llms[name].answers += answers
            for proposal in about.proposals:
                one = llms[proposal.llm]
                one.proposals += 1
                if proposal.reason is None:
                    one.kept += 1
                else:
                    one.dropped[proposal.reason] += 1
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
    return Report(len(texts), record.dropped_texts, llms, turned_down, failures, doubts.warnings())


@dataclass(frozen=True, slots=True, repr=False)
class Shown:
    """One sentence with its prompts, answers, proposals and votes.

    Attributes:
        prompts: By polarity: the messages as they were sent, role and words.
        answers: All stored ones of the sentence, of earlier runs, too.
        failures: Its questions without an answer.
        gathered: What the present run makes of it; None where it has no answer yet.
        pairs: The candidates with their labels or why they were turned down.
    """

    text: Text
    prompts: dict[str, list[tuple[str, str]]]
    answers: tuple[StoredAnswer, ...]
    failures: tuple[Failure, ...]
    gathered: TextCandidates | None
    pairs: tuple[LabelledPair, ...]

    def parts(self) -> Iterator[tuple[str, list[str]]]:
        """Titles with the lines below each."""
        for polarity, messages in self.prompts.items():
            yield f"prompt, {polarity}", [f"{role}: {words}" for role, words in messages]
        for answer in self.answers:
            key, reply = answer.key, answer.reply
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
            yield "pairs", [_pair_line(pair) for pair in self.pairs]

    def tables(self) -> list[str]:
        """For the terminal, which must not take it for markup."""
        return [repr(self)]

    def __repr__(self) -> str:
        parts = (f"\n{title}\n{chr(10).join(lines)}" for title, lines in self.parts())
        return "\n".join((f"{self.text.text_id}  row {self.text.row}", self.text.text, *parts))


def _pair_line(pair: LabelledPair) -> str:
    votes = ", ".join(f"{vote.judge}: {vote.vote}" for vote in pair.votes)
    mark = pair.reason or f"{pair.polarity}, label {pair.label:g}"
    return f"[{mark}] {pair.candidate.candidate}{f'  ({votes})' if votes else ''}"


def show(work: Path, wanted: str) -> Shown:
    """Look a sentence up."""
    record, texts = load_run(work)
    text = find(texts, wanted, work)
    with AnswerStore.open(work / STORE_FILE) as store:
        one = screen_texts(store, record, {text.text_id: text})
        about = next(with_votes(one, store, record), None)
        return Shown(
            text,
            dict(_prompts(record, text)),
            tuple(store.answers([*POLARITIES, "judge"], [text.text_id])),
            tuple(failure for failure in store.failures() if failure.key.text_id == text.text_id),
            about,
            _pairs(store, record, {text.text_id: text for text in texts}, about),
        )


def find(texts: tuple[Text, ...], wanted: str, work: Path) -> Text:
    """The text with this id, row or content."""
    found = [text for text in texts if wanted in (text.text_id, text.text, f"row:{text.row}")]
    found = found or [text for text in texts if wanted and text.text_id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise DataError(f"{len(found)} sentences begin with the id {wanted!r}; give more of it", path=work)
    raise DataError(
        f"no sentence {wanted!r} among {len(texts):,}; give a text_id (a column of the dataset), row:N or "
        "the sentence itself",
        path=work,
    )


def _prompts(record: RunRecord, text: Text) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for polarity in record.settings.prompt.polarities:
        messages = record.template.messages(text.text, record.settings.size, polarity)
        yield polarity, [(message.role, message.content) for message in messages]


def _pairs(
    store: AnswerStore, record: RunRecord, texts: Mapping[str, Text], about: TextCandidates | None
) -> tuple[LabelledPair, ...]:
    settings = record.settings.ensemble
    if about is None:
        return ()
    judges = estimate_judges(screen_texts(store, record, texts), store, record)
    return tuple(label(about.candidates, about.votes, settings, judges))
