"""Make the questions about each text, and turn stored answers into candidates and votes.

Every labelling task yields candidates: sentences that are a `positive` or a `negative` of a text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count, groupby, product
from typing import Any

from llm_labeler.dispatch.answer_store import AnswerStore
from llm_labeler.judging.ensemble import Judges, fit_judges
from llm_labeler.judging.questions import (
    CANDIDATES,
    Scale,
    judge_asks,
    object_schema,
    read_votes,
)
from llm_labeler.parsing.answer import parse_answer, parse_hard_negatives
from llm_labeler.parsing.filters import (
    reject_hard_negative,
    reject_query,
    reject_rewrite,
    screen,
)
from llm_labeler.records import (
    POLARITIES,
    Ask,
    AskKey,
    Candidate,
    Item,
    JudgeVote,
    Polarity,
    Proposal,
    StoredAnswer,
    Text,
    ending_of,
)
from llm_labeler.runs.label_folder import RunRecord
from llm_labeler.runs.prompts import PAPER_NAME
from llm_labeler.settings import FilterSettings

_STRING = {"type": "string"}


def _schema(item: dict[str, Any]) -> dict[str, object]:
    """JSON schema of an answer: a list of sentences."""
    return object_schema({"sentences": {"type": "array", "items": item}})


SENTENCES = _schema(_STRING)


class GenerationTask:
    """A run's questions, one for each text, polarity and sample, and the parsing of their answers."""

    def __init__(self, record: RunRecord) -> None:
        self.record = record
        self.settings = record.settings
        # The hash of each sample's prompt.
        self._hashes: dict[Polarity, list[str]] = {}
        for polarity in self.settings.prompt.polarities:
            self._hashes[polarity] = [
                record.template.prompt_hash(self.settings.size, polarity, sample)
                for sample in range(self.settings.samples)
            ]
        self._proposers = frozenset(self.settings.proposers)
        self._labelling = self.settings.labelling

    def questions_per_text(self, llm: str) -> int:
        """Number of questions about one text: polarities times samples."""
        return len(self._hashes) * self._samples(llm)

    def asks(self, texts: Iterable[Text], llm: str) -> Iterator[Ask]:
        """One LLM's questions, text by text."""
        template = self.record.template
        settings = self.settings
        samples = range(self._samples(llm))
        openings = {polarity: template.opening(polarity) for polarity in self._hashes}
        schemas = {
            polarity: self._schema_of(polarity, llm) for polarity in self._hashes
        }
        parameters, _ = self.record.parameters[llm]
        for text in texts:
            for polarity, sample in product(self._hashes, samples):
                prompt_hash = self._hashes[polarity][sample]
                question = template.question(text.text, settings.size, polarity)
                yield Ask(
                    key=AskKey(text.text_id, llm, polarity, prompt_hash, parameters),
                    messages=(*openings[polarity], question),
                    schema=schemas[polarity],
                    text=text.text,
                    size=settings.size,
                    sample=sample,
                )

    def is_of_run(self, key: AskKey) -> bool:
        """Whether a question has this run's LLMs, prompts and parameters."""
        return (
            key.llm in self._proposers
            and key.task in POLARITIES
            and key.prompt_hash in self._hashes.get(key.task, ())
            and self.record.asks(key)
        )

    def screen(
        self, text: Text, answers: Sequence[StoredAnswer]
    ) -> tuple[tuple[Proposal, ...], tuple[Candidate, ...]]:
        """Parse and filter the answers about one text into proposals and candidates."""
        items = [(answer.key, self._items(text, answer)) for answer in answers]
        return screen(text, items, self.settings.filters, self._reject)

    def _is_hard(self, polarity: Polarity) -> bool:
        """Whether sentences of this polarity are hard negatives, which name what they change."""
        return self._labelling.has_hard_negatives and polarity == "negative"

    def _samples(self, llm: str) -> int:
        """Samples of each question; rules are asked once, as they are deterministic."""
        return 1 if self.settings.llm[llm].is_rules else self.settings.samples

    def _schema_of(self, polarity: Polarity, llm: str) -> dict[str, object] | None:
        """The schema to request; none with the papers' prompt, whose request is kept as published."""
        if self._is_hard(polarity):
            kinds = {"type": "string", "enum": list(self.settings.prompt.changes)}
            return _schema(object_schema({"kind": kinds, "sentence": _STRING}))
        is_papers = self.record.template.name == PAPER_NAME
        if is_papers and self.settings.llm[llm].structured != "strict":
            return None
        return SENTENCES

    def _items(self, text: Text, answer: StoredAnswer) -> list[Item]:
        """Parse one answer; if it has both polarities, keep the requested one."""
        reply = answer.reply
        size = self.settings.size
        polarity = answer.key.polarity
        if self._is_hard(polarity):
            return parse_hard_negatives(
                reply.raw, text=text.text, finish=reply.finish, size=size
            )
        return parse_answer(
            reply.raw,
            text=text.text,
            finish=reply.finish,
            size=size,
            polarity=polarity,
        )

    def _reject(
        self, item: Item, text: str, polarity: Polarity, settings: FilterSettings
    ) -> str | None:
        """The reason to drop a sentence; None to keep it."""
        if self._labelling.asks_questions:
            return reject_query(item.text, text, polarity, settings)
        if self._is_hard(polarity):
            return reject_hard_negative(
                item, text, settings, self.settings.prompt.changes
            )
        return reject_rewrite(item, text, polarity, settings)


@dataclass(slots=True)
class TextCandidates:
    """One text with its proposals, candidates and votes."""

    text: Text
    proposals: tuple[Proposal, ...]
    candidates: tuple[Candidate, ...]
    judged: tuple[Candidate, ...]  # that judges are asked about
    answers: Counter[str]  # by LLM
    votes: dict[str, list[JudgeVote]] = field(default_factory=dict)  # by candidate_id
    unjudged: int = 0  # unanswered questions to judges
    endings: Counter[str] = field(default_factory=Counter)  # of the judges' answers


def _screening(record: RunRecord) -> tuple[object, ...]:
    """What candidates depend on, of the settings that `label parse` may change."""
    settings = record.settings
    return settings.proposers, settings.prompt.polarities, settings.filters


@dataclass
class ScreenedTexts:
    """The texts that have an answer of a run, parsed and filtered, in order of text_id.

    Several judges may iterate at once: each text is parsed only once. The judges were asked by the run `asked`,
    which may have had other filters.
    """

    store: AnswerStore
    record: RunRecord
    texts: Iterable[Text]
    asked: RunRecord | None = None

    def __post_init__(self) -> None:
        self.by_id = {text.text_id: text for text in self.texts}
        self._judges = self.record.settings.judges
        self._asked = self.asked if self.asked and self._judges else self.record
        self.restart()

    def restart(self) -> None:
        """Read the answers again, as there are new ones."""
        self._screened = self._screen()
        self._cache: list[TextCandidates] | None = [] if self._judges else None

    def __iter__(self) -> Iterator[TextCandidates]:
        if self._cache is None:
            yield from self._screened
            return
        for index in count():
            if index == len(self._cache):
                text = next(self._screened, None)
                if text is None:
                    return
                self._cache.append(text)
            yield replace(self._cache[index], votes={}, unjudged=0)

    def _screen(self) -> Iterator[TextCandidates]:
        task = GenerationTask(self.record)
        asked_task = GenerationTask(self._asked)
        has_same_candidates = _screening(self._asked) == _screening(self.record)
        stored = self.store.answers(POLARITIES, self.by_id)
        for text_id, group in groupby(stored, key=lambda answer: answer.key.text_id):
            of_text = [*group]
            answers = [answer for answer in of_text if task.is_of_run(answer.key)]
            if not answers:
                continue
            text = self.by_id[text_id]
            proposals, candidates = task.screen(text, answers)
            judged = candidates
            if not has_same_candidates:
                asked = [each for each in of_text if asked_task.is_of_run(each.key)]
                _, judged = asked_task.screen(text, asked)
            by_llm = Counter(answer.key.llm for answer in answers)
            yield TextCandidates(text, proposals, candidates, judged, by_llm)

    def with_votes(self) -> Iterator[TextCandidates]:
        """Each text with the judges' votes."""
        for text in self:
            add_votes(text, self._judges, self.store, self._asked)
            yield text

    def judges(self) -> Judges | None:
        """Estimate the judges' accuracies from all votes; None if there are no judges."""
        if not self._judges:
            return None
        by_candidate = (text.votes.values() for text in self.with_votes())
        votes = chain.from_iterable(chain.from_iterable(by_candidate))
        return fit_judges(votes, self.record.settings.ensemble)


def add_votes(
    text: TextCandidates,
    judges: Iterable[str],
    store: AnswerStore,
    record: RunRecord,
    scale: Scale = CANDIDATES,
) -> None:
    """Add the judges' votes on a text's candidates, and count the unanswered questions."""
    for judge in judges:
        for ask, batch in _questions_to(judge, text, record, scale):
            answer = store.answer(ask.key)
            if answer is None:
                text.unjudged += 1
                continue
            reply = answer.reply
            text.endings[ending_of(reply.finish)] += 1
            for vote in read_votes(ask, batch, reply.raw, reply.finish, scale):
                text.votes.setdefault(vote.candidate_id, []).append(vote)


def _questions_to(
    judge: str, text: TextCandidates, record: RunRecord, scale: Scale
) -> Iterator[tuple[Ask, list[Candidate]]]:
    """One judge's questions about one text's candidates."""
    settings = record.settings
    parameters, _ = record.parameters[judge]
    return judge_asks(
        text.text,
        text.judged,
        judge,
        parameters,
        settings.judge,
        settings.seed,
        scale,
    )


def judge_questions(
    texts: Iterable[TextCandidates],
    judge: str,
    record: RunRecord,
    scale: Scale = CANDIDATES,
) -> Iterator[Ask]:
    """One judge's questions, text by text."""
    for text in texts:
        for ask, _ in _questions_to(judge, text, record, scale):
            yield ask
