"""An LLM in this process (`kind = "local"`), by transformers."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from llm_labeler._provider import CallFailed, Prices, shaping
from llm_labeler._providers.local_batches import Batches, Prompt
from llm_labeler._providers.local_files import check_source, find_folder
from llm_labeler._records import Ask, Reply, Usage, digest
from llm_labeler._settings import LlmSettings
from pairkit.errors import ConfigError
from pairkit.keyed import keyed_hash

if TYPE_CHECKING:
    from llm_labeler._providers.local_model import LocalModel

_TOKENS_A_MESSAGE = 32  # a template's own, round each turn
_TOKENS_A_CALL = 256  # and a default system turn, which some templates bring


class LocalProvider:
    """A causal language model of transformers, run here; greedy where no temperature is set.

    `timeout_s` is left aside: what runs here either goes on or fails. `extra` goes to the chat template, such
    as `enable_thinking = false`.

    Raises:
        ConfigError: the entry names no model, or wants code that no commit pins.
    """

    def __init__(self, name: str, settings: LlmSettings) -> None:
        check_source(name, settings)
        if settings.structured == "strict":
            raise ConfigError(
                f"llm.{name}: structured = strict needs a server that forces JSON; set auto, or serve it"
            )
        self.name, self.model = name, settings.model
        further = {"revision": settings.revision, "load_in_4bit": settings.load_in_4bit}
        self.parameters_text = shaping(name, settings, further)
        self.parameters = digest(self.parameters_text)
        self.prices = Prices(0.0, 0.0)
        # While one batch is answered the next one has to be waiting.
        self.concurrency = max(settings.concurrency, 2 * settings.batch_size)
        self.rpm, self.tpm, self.attempts = settings.rpm, settings.tpm, settings.attempts
        self.key_variable: str | None = None
        self.leaves_machine = False
        self._settings = settings
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"llm-{name}")
        self._loaded: tuple[LocalModel, Batches] | None = None

    def bound(self, ask: Ask) -> Usage:
        """A token is a byte at least, so bytes bound the prompt."""
        sizes = [len(message.content.encode("utf-8", "surrogatepass")) for message in ask.messages]
        prompt = sum(sizes) + _TOKENS_A_MESSAGE * len(sizes) + _TOKENS_A_CALL
        return Usage(prompt, self._settings.max_tokens)

    async def check(self) -> None:
        """Load the model.

        Raises:
            ConfigError: torch and transformers are missing, or the model can't be used; says why.
            DataError: damaged files.
            RemoteError: the Hub can't be reached.
        """
        await self._model()

    async def reply(self, ask: Ask) -> Reply:
        """Answer one question, together with others that wait.

        Raises:
            CallFailed: `rejected`: the question is longer than the model can read.
            ConfigError: not enough memory for even one question.
        """
        model, batches = await self._model()
        ids = model.prompt_ids(ask.messages)
        if model.context is not None and len(ids) + self._settings.max_tokens > model.context:
            raise CallFailed(
                "rejected",
                f"{len(ids)} tokens and {self._settings.max_tokens} for the answer are more than the "
                f"{model.context} that the model can read; shorten the text or lower max_tokens",
                retry=False,
            )
        again = ("sample", ask.sample) if ask.sample else ()
        seed = keyed_hash(self._settings.seed or 0, *again, *ids) >> 1  # torch wants 63 bits
        found = await batches.answer(Prompt(ids, seed))
        return Reply(found.text, found.finish, Usage(len(ids), found.tokens), self.model)

    async def close(self) -> None:
        """End the batch at its next token, and let go of model and thread."""
        if self._loaded is not None:
            model, batches = self._loaded
            model.stop()
            await batches.close()
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._loaded = None

    async def _model(self) -> tuple[LocalModel, Batches]:
        if self._loaded is not None:
            return self._loaded
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._load)

    def _load(self) -> tuple[LocalModel, Batches]:
        if self._loaded is None:
            try:
                from llm_labeler._providers.local_model import LocalModel, free_memory
            except ImportError as error:
                raise ConfigError(
                    f"llm.{self.name}: an LLM in this process needs torch and transformers ({error}); "
                    "pip install 'aoe-toolkit[train]'"
                ) from error
            model = LocalModel(self.name, find_folder(self.name, self._settings), self._settings)
            size = self._settings.batch_size
            self._loaded = model, Batches(self.name, model.complete, size, self._thread, free_memory)
        return self._loaded
