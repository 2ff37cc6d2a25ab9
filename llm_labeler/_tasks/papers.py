"""The papers' task: sentences that mean the same as a text, and sentences that mean the opposite."""

from __future__ import annotations

from typing import Any

from llm_labeler._prompt_words import PAPER_NAME
from llm_labeler._records import Polarity
from llm_labeler._tasks.generation import GenerationTask


class PapersTask(GenerationTask):
    """Under the papers' prompt the request is the papers', word for word: no schema goes along."""

    def schema(self, polarity: Polarity, llm: str) -> dict[str, Any] | None:
        """None with the papers' prompt, unless a schema is demanded of this LLM."""
        is_papers = self.record.template.name == PAPER_NAME
        demanded = self.record.settings.llm[llm].structured == "strict"
        return None if is_papers and not demanded else super().schema(polarity, llm)
