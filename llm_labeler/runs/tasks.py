"""What LLMs are asked about each text, and what is read out of the answers: a class for each task.

Whatever the task, what comes of it are candidates: sentences that belong to a text as a `positive` or a
`negative`. Judges, ensembles, splits and the dataset go on from there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from llm_labeler.dataset.filters import Screened, hard_turned_down, query_turned_down, rewritten, screen
from llm_labeler.parsing import MAX_CHARS, parse_answer
from llm_labeler.prompts.templates import Template
from llm_labeler.prompts.words import PAPER_NAME
from llm_labeler.records import CHANGES, POLARITIES, Answer, Ask, AskKey, ChangeKind, Item, Polarity, Text
from llm_labeler.settings.kinds import LLM_KINDS
from llm_labeler.settings.labelling import FilterSettings
from llm_labeler.store.workplace import RunRecord

# For servers that can hold an answer to a schema.
SENTENCES: dict[str, Any] = {
    "type": "object",
    "properties": {"sentences": {"type": "array", "items": {"type": "string"}}},
    "required": ["sentences"],
    "additionalProperties": False,
}
_LABEL = re.compile(
    r"^([ \t]{0,20}(?:\d{1,3}[ \t]?[.):][ \t]{0,9}|[-*•][ \t]{1,9})?)"
    rf"[*_\[(\"']{{0,3}}({'|'.join(CHANGES)})"
    r"(?:[ \t]change)?[*_\])\"']{0,3}[ \t]{0,9}[:：–—-][*_]{0,2}[ \t]{0,9}",
    re.IGNORECASE | re.MULTILINE,
)
_LONGEST = 4000  # characters of a line
_LETTERS = re.compile(r"[^\W_]+")


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

    def screen(self, text: Text, answers: Sequence[Answer]) -> Screened:
        """Each sentence of each answer, kept or turned down."""
        items = [(answer.key, self.items(text, answer)) for answer in answers]
        return screen(text, items, self.record.settings.filters, self.turned_down)

    def schema(self, polarity: Polarity, llm: str) -> dict[str, Any] | None:  # noqa: ARG002 - for others
        """What servers are to hold an answer to, where they can."""
        return SENTENCES

    def changes(self) -> tuple[ChangeKind, ...]:
        """The kinds of hard negatives that are asked for; none where negatives have no kinds."""
        return ()

    def items(self, text: Text, answer: Answer) -> list[Item]:
        """What one answer holds; where it has both polarities, of the one that was asked for."""
        task, reply = answer.key.task, answer.reply
        polarity = None if task == "judge" else task
        size = self.record.settings.size
        return parse_answer(reply.raw, text=text.text, finish=reply.finish, size=size, polarity=polarity)

    def turned_down(self, item: Item, text: str, polarity: Polarity, settings: FilterSettings) -> str | None:
        """Why a sentence is no candidate; None: it is one."""
        return rewritten(item, text, polarity, settings)


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

    def items(self, text: Text, answer: Answer) -> list[Item]:
        """As of the papers' task, negatives with their kinds."""
        if answer.key.task != "negative":
            return super().items(text, answer)
        reply, size = answer.reply, self.record.settings.size
        return with_changes(reply.raw, text=text.text, finish=reply.finish, size=size)

    def turned_down(self, item: Item, text: str, polarity: Polarity, settings: FilterSettings) -> str | None:
        """A negative has to keep words of its text as well."""
        if polarity == "positive":
            return rewritten(item, text, polarity, settings)
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


def with_changes(raw: str, *, text: str, finish: str, size: int | None) -> list[Item]:
    """As `parse_answer` of negatives, each item with the kind that stood before it; None where none did."""
    plain = _from_json(raw[:MAX_CHARS]) or raw
    kinds = dict(_labels(plain))
    bare = _LABEL.sub(r"\1", plain)
    items = parse_answer(bare, text=text, finish=finish, size=size, polarity="negative")
    return [replace(item, change=kinds.get(_letters(item.text))) for item in items]


def _from_json(raw: str) -> str | None:
    """An answer in the schema's shape as a list of lines; None of any other."""
    try:
        found = json.loads(raw)
        lines = [f"{one['kind']}: {' '.join(one['sentence'].split())}" for one in found["sentences"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))


def _labels(plain: str) -> Iterator[tuple[tuple[str, ...], str]]:
    for match in _LABEL.finditer(plain):
        line = plain[match.end() : match.end() + _LONGEST].partition("\n")[0]
        yield _letters(line), match[2].lower()


def _letters(sentence: str) -> tuple[str, ...]:
    return tuple(_LETTERS.findall(sentence.lower()))
