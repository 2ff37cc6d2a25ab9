"""The rules as something that can be asked, like an LLM."""

from __future__ import annotations

import asyncio
import json
from functools import cached_property

from llm_labeler._provider import Prices
from llm_labeler._providers.wordnet.annotator import Annotator
from llm_labeler._providers.wordnet.files import find_folder, load
from llm_labeler._records import Ask, Reply, Usage, digest
from llm_labeler._settings import LlmSettings
from pairkit.errors import ConfigError

VERSION = 1  # of the rules; another one's answers are asked for anew


class WordnetProvider:
    """Rules over WordNet (`kind = "wordnet"`). No LLM: it reads the text of an ask, not its prompt."""

    def __init__(self, name: str, settings: LlmSettings) -> None:
        self.name = name
        self.model = settings.model or "wordnet rules"
        # The same everywhere: whoever has WordNet gets these answers.
        self.parameters_text = json.dumps({"kind": "wordnet", "llm": False, "rules": VERSION}, sort_keys=True)
        self.parameters = digest(self.parameters_text)
        self.prices = Prices(0.0, 0.0)
        self.concurrency = settings.concurrency
        self.rpm = settings.rpm
        self.tpm = settings.tpm
        self.attempts = 1
        self.key_variable: str | None = None
        self.leaves_machine = False
        self._folder = find_folder(settings.path)

    def bound(self, ask: Ask) -> Usage:  # noqa: ARG002 - a Provider
        """Nothing: rules use no tokens."""
        return Usage(0, 0)

    async def check(self) -> None:
        """Load the database.

        Raises:
            ConfigError: no WordNet is there; says how to get it.
            DataError: one of its files is damaged.
        """
        _ = self._annotator

    async def reply(self, ask: Ask) -> Reply:
        """A numbered list of candidates, the surest first; empty where the rules find nothing safe.

        Raises:
            ConfigError: asked to judge.
        """
        if ask.key.task == "judge":
            raise ConfigError(
                f"llm.{self.name}: rules over WordNet can't judge candidates; name LLMs in judge.llms, "
                "or use the strategy union or agreement"
            )
        await asyncio.sleep(0)  # others get their turn: this one never waits for anything
        found = self._annotator.candidates(ask.text, ask.key.task, ask.size)
        raw = "\n".join(f"{number}. {candidate}" for number, candidate in enumerate(found, 1))
        return Reply(raw, "stop", Usage(0, 0), self.model)

    async def close(self) -> None:
        """Nothing is held open."""

    @cached_property
    def _annotator(self) -> Annotator:
        return Annotator(load(self._folder))
