"""Queries: questions that a passage answers, and questions that it only looks like it answers."""

from __future__ import annotations

from llm_labeler._filters import query_turned_down
from llm_labeler._records import Item, Polarity
from llm_labeler._settings import FilterSettings
from llm_labeler._tasks.generation import GenerationTask


class QueryTask(GenerationTask):
    """The text is a passage; both polarities are questions about it."""

    def turned_down(self, item: Item, text: str, polarity: Polarity, settings: FilterSettings) -> str | None:
        """A query has to ask, and to share words with its passage; it may be much shorter."""
        return query_turned_down(item.text, text, polarity, settings)
