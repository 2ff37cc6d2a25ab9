"""What LLMs are asked about each text, and which candidates their stored answers hold: a class for each task.

Whatever the task, its results are candidates: sentences that are a `positive` or a `negative` of a text.
Judges, ensembles, splits and the dataset go on from there.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, groupby
from typing import Any

from llm_labeler.judging.judges import Judges, fit_judges
from llm_labeler.judging.questions import CANDIDATES, Scale, judge_asks, read_votes
from llm_labeler.parsing.answer import parse_answer, parse_hard_negatives
from llm_labeler.parsing.filters import (
    Screened,
    hard_turned_down,
    query_turned_down,
    rewrite_turned_down,
    screen,
)
from llm_labeler.prompts import PAPER_NAME, Template
from llm_labeler.records import (
    POLARITIES,
    Ask,
    AskKey,
    Candidate,
    ChangeKind,
    Item,
    JudgeVote,
    Polarity,
    Proposal,
    StoredAnswer,
    Text,
)
from llm_labeler.settings import LLM_KINDS, FilterSettings
from llm_labeler.store.answers import AnswerStore
from llm_labeler.store.run_folder import RunRecord
from pairkit.system.database import scratch_database, scratch_errors

# For servers that can hold an answer to a schema.
SENTENCES: dict[str, Any] = {
    "type": "object",
    "properties": {"sentences": {"type": "array", "items": {"type": "string"}}},
    "required": ["sentences"],
    "additionalProperties": False,
}


class GenerationTask:
    """A question for each polarity; its answer is a list of sentences, in whatever shape."""

    def __init__(self, record: RunRecord) -> None:
        self.record = record
        size, samples = record.settings.size, range(record.settings.samples)
        self._hashes = {
            polarity: frozenset(record.template.prompt_hash(size, polarity, sample) for sample in samples)
            for polarity in record.polarities
        }
        self._proposers = frozenset(record.settings.proposers)

    def questions_a_text(self, llm: str) -> int:
        """One for each polarity and sample."""
        return len(self._hashes) * self.samples(llm)

    def samples(self, llm: str) -> int:
        """How often an LLM is asked the same: rules once, as they always answer alike."""
        settings = self.record.settings
        return settings.samples if LLM_KINDS[settings.llm[llm].kind].is_llm else 1

    def asks(self, texts: Sequence[Text], llm: str) -> Iterator[Ask]:
        """One LLM's questions, text by text, each polarity in turn."""
        record = self.record
        return generation_asks(
            texts,
            record.template,
            record.settings.size,
            (*self._hashes,),
            llm,
            record.parameters[llm][0],
            schemas={polarity: self.schema(polarity, llm) for polarity in self._hashes},
            labelling=record.settings.task,
            changes=self.changes(),
            samples=self.samples(llm),
        )

    def is_of_run(self, key: AskKey) -> bool:
        """Whether a question is of this run's LLMs, prompts and parameters."""
        return (
            key.llm in self._proposers
            and key.task in POLARITIES
            and key.prompt_hash in self._hashes.get(key.task, ())
            and self.record.asks(key)
        )

    def screen(self, text: Text, answers: Sequence[StoredAnswer]) -> Screened:
        """Each sentence of each answer, kept or turned down."""
        items = [(answer.key, self.items(text, answer)) for answer in answers]
        return screen(text, items, self.record.settings.filters, self.turned_down)

    def schema(self, polarity: Polarity, llm: str) -> dict[str, Any] | None:  # noqa: ARG002 - for others
        """What servers are to hold an answer to, where they can."""
        return SENTENCES

    def changes(self) -> tuple[ChangeKind, ...]:
        """The kinds of hard negatives that are asked for; none where negatives have no kinds."""
        return ()

    def items(self, text: Text, answer: StoredAnswer) -> list[Item]:
        """What one answer holds; where it has both polarities, of the one that was asked for."""
        task, reply = answer.key.task, answer.reply
        polarity = None if task == "judge" else task
        size = self.record.settings.size
        return parse_answer(reply.raw, text=text.text, finish=reply.finish, size=size, polarity=polarity)

    def turned_down(self, item: Item, text: str, polarity: Polarity, settings: FilterSettings) -> str | None:
        """Why a sentence is no candidate; None: it is one."""
        return rewrite_turned_down(item, text, polarity, settings)


class PapersTask(GenerationTask):
    """Under the papers' prompt the request is the papers', word for word: no schema goes along."""

    def schema(self, polarity: Polarity, llm: str) -> dict[str, Any] | None:
        """None with the papers' prompt, unless a schema is demanded of this LLM."""
        is_papers = self.record.template.name == PAPER_NAME
        demanded = self.record.settings.llm[llm].structured == "strict"
        return None if is_papers and not demanded else super().schema(polarity, llm)


class QueryTask(GenerationTask):
    """The text is a passage; both polarities are questions about it."""

    def turned_down(self, item: Item, text: str, polarity: Polarity, settings: FilterSettings) -> str | None:
        """A query has to ask, and to share words with its passage; it may be much shorter."""
        return query_turned_down(item.text, text, polarity, settings)


class TripletTask(GenerationTask):
    """Positives as in the papers' task; each negative is asked for with the kind of its change."""

    def schema(self, polarity: Polarity, llm: str) -> dict[str, Any] | None:
        """Sentences; of negatives each with its kind, which is written first and so thought of first."""
        return super().schema(polarity, llm) if polarity == "positive" else _of_kinds(self.changes())

    def changes(self) -> tuple[ChangeKind, ...]:
        """The kinds in the settings."""
        return self.record.settings.prompt.changes

    def items(self, text: Text, answer: StoredAnswer) -> list[Item]:
        """As of the papers' task, negatives with their kinds."""
        if answer.key.task != "negative":
            return super().items(text, answer)
        reply, size = answer.reply, self.record.settings.size
        return parse_hard_negatives(reply.raw, text=text.text, finish=reply.finish, size=size)

    def turned_down(self, item: Item, text: str, polarity: Polarity, settings: FilterSettings) -> str | None:
        """A negative has to keep words of its text as well."""
        if polarity == "positive":
            return rewrite_turned_down(item, text, polarity, settings)
        return hard_turned_down(item, text, settings, self.changes())


def _of_kinds(changes: tuple[ChangeKind, ...]) -> dict[str, Any]:
    one = {
        "type": "object",
        "properties": {"kind": {"type": "string", "enum": list(changes)}, "sentence": {"type": "string"}},
        "required": ["kind", "sentence"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"sentences": {"type": "array", "items": one}},
        "required": ["sentences"],
        "additionalProperties": False,
    }


_TASKS: Mapping[str, type[GenerationTask]] = {
    "papers": PapersTask,
    "triplet": TripletTask,
    "query": QueryTask,
}


def task_of(record: RunRecord) -> GenerationTask:
    """The task that a run's settings name."""
    return _TASKS[record.settings.task](record)


def generation_asks(
    texts: Iterable[Text],
    template: Template,
    size: int,
    polarities: tuple[Polarity, ...],
    llm: str,
    parameters: str,
    *,
    schemas: Mapping[Polarity, dict[str, Any] | None] | None = None,
    labelling: str = "papers",
    changes: tuple[ChangeKind, ...] = (),
    samples: int = 1,
) -> Iterator[Ask]:
    """One LLM's questions, text by text, each polarity in turn."""
    turns = [(polarity, sample) for polarity in polarities for sample in range(samples)]
    hashes = {turn: template.prompt_hash(size, *turn) for turn in turns}
    openings = {polarity: template.opening(polarity) for polarity in polarities}
    for text in texts:
        for polarity, sample in turns:
            yield Ask(
                AskKey(text.text_id, llm, polarity, hashes[polarity, sample], parameters),
                (*openings[polarity], template.question(text.text, size, polarity)),
                SENTENCES if schemas is None else schemas[polarity],
                text.text,
                size,
                labelling,
                changes,
                sample,
            )


@dataclass(slots=True)
class TextCandidates:
    """One text with all that was proposed for it."""

    text: Text
    proposals: tuple[Proposal, ...]
    candidates: tuple[Candidate, ...]
    answers: Counter[str]
    votes: dict[str, list[JudgeVote]] = field(default_factory=dict)
    unjudged: int = 0


def screen_texts(
    store: AnswerStore, record: RunRecord, texts: Mapping[str, Text]
) -> Iterator[TextCandidates]:
    """Each text that has an answer of this run, not of an earlier one in the folder, in order of text_id."""
    task = task_of(record)
    stored = store.answers(POLARITIES, texts)
    for text_id, group in groupby(stored, key=lambda answer: answer.key.text_id):
        if answers := [answer for answer in group if task.is_of_run(answer.key)]:
            screened = task.screen(texts[text_id], answers)
            by_llm = Counter(answer.key.llm for answer in answers)
            yield TextCandidates(texts[text_id], screened.proposals, screened.candidates, by_llm)


class ScreenedTexts:
    """`screen_texts` for several readers at once: each judge's questions, and both passes over the votes."""

    def __init__(self, store: AnswerStore, record: RunRecord, texts: Mapping[str, Text]) -> None:
        self._screened, self._kept = screen_texts(store, record, texts), 0
        table = "CREATE TABLE texts (place INTEGER PRIMARY KEY, pickled BLOB);"
        self._scratch = scratch_database(table) if record.settings.judges else None

    def __iter__(self) -> Iterator[TextCandidates]:
        if self._scratch is None:
            yield from self._screened
            return
        for place in count():
            if place < self._kept:
                with scratch_errors():
                    ((pickled,),) = self._scratch.execute(
                        "SELECT pickled FROM texts WHERE place = ?", (place,)
                    )
                yield pickle.loads(pickled)  # noqa: S301 - our own, in a file without a name
            elif (text := next(self._screened, None)) is not None:
                with scratch_errors():
                    self._scratch.execute("INSERT INTO texts VALUES (?, ?)", (place, pickle.dumps(text)))
                self._kept += 1
                yield text
            else:
                return


def with_votes(
    texts: Iterable[TextCandidates], store: AnswerStore, record: RunRecord
) -> Iterator[TextCandidates]:
    """The texts with the judges' votes on each candidate."""
    for text in texts:
        add_votes(text, record.settings.judges, store, record)
        yield text


def add_votes(
    text: TextCandidates,
    judges: Iterable[str],
    store: AnswerStore,
    record: RunRecord,
    scale: Scale = CANDIDATES,
) -> None:
    """Add the judges' votes on a text's candidates, and count the questions without an answer."""
    for judge in judges:
        for ask, batch in _questions_to(judge, text, record, scale):
            if (answer := store.answer(ask.key)) is None:
                text.unjudged += 1
                continue
            for vote in read_votes(ask, batch, answer.reply.raw, answer.reply.finish, scale):
                text.votes.setdefault(vote.candidate_id, []).append(vote)


def estimate_judges(texts: Iterable[TextCandidates], store: AnswerStore, record: RunRecord) -> Judges | None:
    """The judges' accuracies by all votes; None if there are no judges."""
    if not record.settings.judges:
        return None
    cast = (votes for text in with_votes(texts, store, record) for votes in text.votes.values())
    return fit_judges(chain.from_iterable(cast), record.settings.ensemble)


def _questions_to(
    judge: str, text: TextCandidates, record: RunRecord, scale: Scale
) -> list[tuple[Ask, tuple[Candidate, ...]]]:
    """One judge's questions about one text's candidates."""
    settings = record.settings
    parameters = record.parameters[judge][0]
    return judge_asks(text.text, text.candidates, judge, parameters, settings.judge, settings.seed, scale)


def judge_questions(
    texts: Iterable[TextCandidates], judge: str, record: RunRecord, scale: Scale = CANDIDATES
) -> Iterator[Ask]:
    """One judge's questions, text by text."""
    for text in texts:
        yield from (ask for ask, _ in _questions_to(judge, text, record, scale))
