"""Answers: short answers to a question, and answers that sound right and are wrong."""

from __future__ import annotations

from llm_labeler._filters import answer_turned_down
from llm_labeler._records import Item, Polarity
from llm_labeler._settings import FilterSettings
from llm_labeler._tasks.generation import GenerationTask


class AnswerTask(GenerationTask):
    """The text is a question; both polarities are statements that answer it."""

    def turned_down(self, item: Item, text: str, polarity: Polarity, settings: FilterSettings) -> str | None:
        """An answer must not ask back; how many words it shares with the question tells nothing."""
        return answer_turned_down(item.text, text, polarity, settings)
