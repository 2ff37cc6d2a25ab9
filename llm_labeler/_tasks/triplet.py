"""Triplets: a paraphrase of a text, and hard negatives that keep its words and change what it says."""

from __future__ import annotations

from typing import Any

from llm_labeler._filters import hard_turned_down, rewritten
from llm_labeler._parse import with_changes
from llm_labeler._records import Answer, ChangeKind, Item, Polarity, Text
from llm_labeler._settings import FilterSettings
from llm_labeler._tasks.generation import GenerationTask


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
