"""What all tasks have in common: a question for each polarity, and lists of sentences as answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from llm_labeler._filters import Screened, rewritten, screen
from llm_labeler._kinds import LLM_KINDS
from llm_labeler._parse import parse_answer
from llm_labeler._prompts import Template
from llm_labeler._records import POLARITIES, Answer, Ask, AskKey, ChangeKind, Item, Polarity, Text
from llm_labeler._settings import FilterSettings
from llm_labeler._workplace import RunRecord

Schema = Mapping[str, Any]

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
    """One LLM's questions, text by text, each polarity in turn.

    Args:
        texts: In the order of asking.
        template: What to ask.
        size: Sentences wanted.
        polarities: Which ones.
        llm: Its name in the configuration.
        parameters: See `AskKey`.
        schemas: By polarity, of the answer; by default a list of sentences.
        labelling: The task that asks.
        changes: The kinds of hard negatives that are wanted.
        samples: How often the same is asked.
    """
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
