"""Questions gathered into batches, which one thread answers, one after another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pairkit.errors import ConfigError
from pairkit.memory import is_out_of_memory

_GATHER_S = 0.01  # how long a first question waits for others, against seconds that an answer takes


@dataclass(frozen=True, slots=True)
class Prompt:
    """A question as the model reads it."""

    ids: tuple[int, ...]
    seed: int  # of its sampling


@dataclass(frozen=True, slots=True)
class Completion:
    """What the model wrote after a prompt."""

    text: str
    tokens: int  # with the one that ends it
    finish: str  # stop or length


Complete = Callable[[Sequence[Prompt]], list[Completion]]


@dataclass(eq=False)
class _Waiting:
    prompt: Prompt
    answer: asyncio.Future[Completion]


class Batches:
    """What waits for a model.

    Args:
        name: The entry's name, for errors.
        complete: Answers a batch, in order; runs in `thread`.
        size: Questions in a batch; halved for good whenever memory doesn't do.
        thread: The one thread that the model is used in.
        free_memory: Gives back what a failed batch left behind.
    """

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
        self._waiting: list[_Waiting] = []
        self._runner: asyncio.Task[None] | None = None
        self._closed = False

    async def answer(self, prompt: Prompt) -> Completion:
        """Answer one question, together with others that wait.

        Raises:
            ConfigError: not enough memory for this one alone, or the model failed.
        """
        waiting = _Waiting(prompt, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._runner is None or self._runner.done():
            self._runner = asyncio.create_task(self._run())
        return await waiting.answer

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
            prompts = [waiting.prompt for waiting in batch]
            found = asyncio.get_running_loop().run_in_executor(self._thread, self._answer_all, prompts)
            await asyncio.wait({found})
            error = found.exception()
            for place, waiting in enumerate(batch):
                if self._closed:
                    waiting.answer.cancel()
                elif waiting.answer.done():
                    continue  # whoever asked has gone
                elif error is not None:
                    waiting.answer.set_exception(error)
                else:
                    waiting.answer.set_result(found.result()[place])

    def _next_batch(self) -> list[_Waiting]:
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

    def _answer_all(self, prompts: Sequence[Prompt]) -> list[Completion]:
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

    def _check_can_be_halved(self, part: Sequence[Prompt], error: Exception) -> None:
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
