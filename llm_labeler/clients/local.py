"""An LLM in this process (`kind = "local"`), by transformers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from llm_labeler.clients.provider import CallFailed, Completion, Prices, TokenizedPrompt, answer_parameters
from llm_labeler.records import Ask, LlmReply, TokenUsage, digest
from llm_labeler.settings import LlmSettings
from pairkit.app.errors import ConfigError
from pairkit.system.machine import is_out_of_memory
from pairkit.system.seeded import keyed_hash

if TYPE_CHECKING:
    from llm_labeler.clients.local_model import LocalModel

_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
_PICKLES = (".bin", ".pt", ".pth", ".ckpt")
# Tokenizer, configuration, templates and safetensors; neither pickled weights nor other frameworks'.
_WANTED = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"]


def check_source(name: str, settings: LlmSettings) -> None:
    """See that an entry names a model; nothing is looked up."""
    model = settings.model
    if not model:
        raise ConfigError(f"llm.{name}: no model; set `model` to a folder or a Hub id")
    if Path(model).is_dir():
        return
    if model.lower().endswith(".gguf"):
        raise _gguf(name, model)
    if Path(model).exists():
        raise ConfigError(f"llm.{name}: {model} is a file; expected a model's folder or a Hub id")
    if model.startswith((".", "/", "~")) or not _HUB_ID.fullmatch(model):
        raise ConfigError(f"llm.{name}: {model}: no such folder; expected a model's folder or a Hub id")


def _gguf(name: str, what: str) -> ConfigError:
    """An error for weights that transformers would first unpack to several times their size."""
    return ConfigError(
        f"llm.{name}: {what} is GGUF, which is not loaded here; serve it with llama.cpp (`llama-server -m"
        " FILE`) or Ollama and set kind openai_compatible and base_url, or give a folder of safetensors"
    )


def find_folder(name: str, settings: LlmSettings) -> Path:
    """The model's folder, fetched first where `model` is a Hub id."""
    check_source(name, settings)
    local = Path(settings.model)
    folder = local if local.is_dir() else _fetch(name, settings)
    _check_weights(name, folder)
    return folder


def _fetch(name: str, settings: LlmSettings) -> Path:
    from pairkit.dataset.hub import fetch_model

    model, called = settings.model, f"llm.{name}: {settings.model}"
    return fetch_model(model, settings.revision, _WANTED, called=called, instead="set `model` to a folder")


def _check_weights(name: str, folder: Path) -> None:
    if not any(folder.glob("*.safetensors")) and (found := sorted(folder.glob("*.gguf"))):
        raise _gguf(name, str(found[0]))
    if not (folder / "config.json").is_file():
        raise ConfigError(
            f"llm.{name}: {folder}: no config.json; expected the folder of a transformers model"
        )
    if any(folder.glob("*.safetensors")):
        return
    pickled = sorted(path.name for path in folder.iterdir() if path.suffix in _PICKLES)
    raise ConfigError(
        f"llm.{name}: {folder}: weights only as {pickled[0]}, a pickle, which can run code when loaded; "
        "convert it to model.safetensors if you trust it"
        if pickled
        else f"llm.{name}: {folder}: no weights; expected model.safetensors"
    )


_GATHER_S = 0.01  # how long a first question waits for others, against seconds that an answer takes


Complete = Callable[[Sequence[TokenizedPrompt]], list[Completion]]


@dataclass(eq=False)
class _WaitingPrompt:
    prompt: TokenizedPrompt
    answer: asyncio.Future[Completion]


class BatchQueue:
    """What waits for a model."""

    def __init__(
        self,
        name: str,
        complete: Complete,
        size: int,
        thread: ThreadPoolExecutor,
        free_memory: Callable[[], None],
    ) -> None:
        self._name, self._complete, self._thread = name, complete, thread
        self.size = size
        self._free_memory = free_memory
        self._waiting: list[_WaitingPrompt] = []
        self._answering: list[_WaitingPrompt] = []
        self._runner: asyncio.Task[None] | None = None
        self._closed = False

    async def answer(self, prompt: TokenizedPrompt) -> Completion:
        """Answer one question, together with others that wait."""
        waiting = _WaitingPrompt(prompt, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._runner is None or self._runner.done():
            self._runner = asyncio.create_task(self._run())
        return await waiting.answer

    def ended(self, prompt: TokenizedPrompt, completion: Completion) -> None:
        """Give an answer to whoever waits for it while its batch goes on; called in the model's thread."""
        for waiting in self._answering:
            if waiting.prompt is prompt:
                waiting.answer.get_loop().call_soon_threadsafe(self._give, waiting, completion)

    def _give(self, waiting: _WaitingPrompt, completion: Completion) -> None:
        if self._closed:
            waiting.answer.cancel()
        elif not waiting.answer.done():
            waiting.answer.set_result(completion)

    async def close(self) -> None:
        """Cancel what waits, and let the batch that is being answered end; nobody gets its answers."""
        self._closed = True
        for waiting in self._waiting:
            waiting.answer.cancel()
        if self._runner is not None:
            await asyncio.wait({self._runner})

    async def _run(self) -> None:
        """Answer batches until none waits."""
        if len(self._waiting) < self.size:
            await asyncio.sleep(_GATHER_S)
        while batch := self._next_batch():
            self._answering = batch
            prompts = [waiting.prompt for waiting in batch]
            found = asyncio.get_running_loop().run_in_executor(self._thread, self._answer_all, prompts)
            await asyncio.wait({found})
            error = found.exception()
            for place, waiting in enumerate(batch):
                if self._closed:
                    waiting.answer.cancel()
                elif error is None:
                    self._give(waiting, found.result()[place])
                elif not waiting.answer.done():  # whoever asked may have gone
                    waiting.answer.set_exception(error)

    def _next_batch(self) -> list[_WaitingPrompt]:
        """The question that waits longest, and those nearest to it in length: padding is work for nothing."""
        self._waiting = [waiting for waiting in self._waiting if not waiting.answer.done()]
        if not self._waiting:
            return []
        by_length = sorted(self._waiting, key=lambda waiting: len(waiting.prompt.ids))
        start = by_length.index(self._waiting[0]) - self.size // 2
        start = max(0, min(start, len(by_length) - self.size))
        batch = by_length[start : start + self.size]
        self._waiting = [waiting for waiting in self._waiting if waiting not in batch]
        return batch

    def _answer_all(self, prompts: Sequence[TokenizedPrompt]) -> list[Completion]:
        """Answer a batch, in smaller parts where memory does not do for the whole."""
        found: list[Completion] = []
        while len(found) < len(prompts):
            part = prompts[len(found) : len(found) + self.size]
            try:
                found += self._complete(part)
                continue
            except (RuntimeError, MemoryError, ValueError, IndexError) as error:
                self._check_can_be_halved(part, error)
            # Out of the except clause: the error's traceback holds the tensors that have to go.
            self.size = max(1, len(part) // 2)
            self._free_memory()
        return found

    def _check_can_be_halved(self, part: Sequence[TokenizedPrompt], error: Exception) -> None:
        if not is_out_of_memory(error):
            raise ConfigError(
                f"llm.{self._name}: the model failed while it answered ({type(error).__name__}: "
                f"{str(error)[:200]}); see whether it runs in transformers by itself"
            ) from error
        if len(part) == 1:
            raise ConfigError(
                f"llm.{self._name}: not enough memory for one question of {len(part[0].ids)} tokens; lower "
                "max_tokens or input.max_chars, set load_in_4bit, or take a smaller model"
            ) from error


_TOKENS_A_MESSAGE = 32  # a template's own, round each turn
_TOKENS_A_CALL = 256  # and a default system turn, which some templates bring


class LocalProvider:
    """A causal language model of transformers, run here; greedy where no temperature is set."""

    def __init__(self, name: str, settings: LlmSettings) -> None:
        check_source(name, settings)
        if settings.structured == "strict":
            raise ConfigError(
                f"llm.{name}: structured = strict needs a server that forces JSON; set auto, or serve it"
            )
        self.name, self.model = name, settings.model
        further = {"revision": settings.revision, "load_in_4bit": settings.load_in_4bit}
        self.parameters_text = answer_parameters(name, settings, further)
        self.parameters = digest(self.parameters_text)
        self.prices = Prices(0.0, 0.0)
        # While one batch is answered the next one has to be waiting.
        self.concurrency = max(settings.concurrency, 2 * settings.batch_size)
        self.rpm, self.tpm, self.attempts = settings.rpm, settings.tpm, settings.attempts
        self.key_variable: str | None = None
        self.leaves_machine = False
        self._settings = settings
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"llm-{name}")
        self._loaded: tuple[LocalModel, BatchQueue] | None = None

    def bound(self, ask: Ask) -> TokenUsage:
        """A token is a byte at least, so bytes bound the prompt."""
        sizes = [len(message.content.encode("utf-8", "surrogatepass")) for message in ask.messages]
        prompt = sum(sizes) + _TOKENS_A_MESSAGE * len(sizes) + _TOKENS_A_CALL
        return TokenUsage(prompt, self._settings.max_tokens)

    async def check(self) -> None:
        """Load the model."""
        await self._model()

    async def reply(self, ask: Ask) -> LlmReply:
        """Answer one question, together with others that wait."""
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
        found = await batches.answer(TokenizedPrompt(ids, seed))
        return LlmReply(found.text, found.finish, TokenUsage(len(ids), found.tokens), self.model)

    async def close(self) -> None:
        """End the batch at its next token, and let go of model and thread."""
        if self._loaded is not None:
            model, batches = self._loaded
            model.stop()
            await batches.close()
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._loaded = None

    async def _model(self) -> tuple[LocalModel, BatchQueue]:
        if self._loaded is not None:
            return self._loaded
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._load)

    def _load(self) -> tuple[LocalModel, BatchQueue]:
        if self._loaded is None:
            try:
                from llm_labeler.clients.local_model import LocalModel, free_memory
            except ImportError as error:
                raise ConfigError(
                    f"llm.{self.name}: an LLM in this process needs torch and transformers ({error}); "
                    "pip install 'aoe-toolkit[train]'"
                ) from error
            model = LocalModel(self.name, find_folder(self.name, self._settings), self._settings)
            size = self._settings.batch_size
            batches = BatchQueue(self.name, model.complete, size, self._thread, free_memory)
            model.on_end = batches.ended
            self._loaded = model, batches
        return self._loaded
