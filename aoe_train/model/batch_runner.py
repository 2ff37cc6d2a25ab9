"""Runs a model on many texts: tokenises ahead of it, and halves batches if memory runs out."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy import ndarray

from aoe_train.model.device import one_thread, upload
from aoe_train.model.text_model import TextModel
from aoe_train.model.tokenised import TokenStore
from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.errors import ConfigError
from pairkit.base.system.machine import is_out_of_memory, keep_freed_memory

if TYPE_CHECKING:
    from aoe_train.model.encoder import Encoder

TOKENS_ACCELERATOR = 65_536  # per batch
# Most tokens have more characters, so a slice of texts rarely has many more tokens than a batch.
_CHARACTERS_A_TOKEN = 3
# Slices that are tokenised while the model runs.
_AHEAD = 2
# So many products take about 10 ms on one core, which a second thread would not shorten.
_ONE_THREAD_PRODUCTS = 1 << 30
# Tokens per batch on a CPU. The largest activation stays below the size from which the C library requests
# fresh, zeroed pages each time (see `keep_freed_memory`).
_TOKENS_CPU = 8_192
_ACTIVATION_BYTES = 24 << 20


@dataclass
class BatchRunner:
    """Runs a model on texts."""

    model: TextModel

    def vectors(
        self,
        encoder: Encoder,
        texts: Sequence[str],
        prompts: str | Sequence[str],
        batch_tokens: int | None,
        show: Listener,
        *,
        halve: bool,
    ) -> Generator[tuple[ndarray, torch.Tensor]]:
        """Text indices and vectors batch by batch; once memory runs out, all later batches are split."""
        budget = batch_tokens or TOKENS_ACCELERATOR
        if self._device.type == "cpu":
            keep_freed_memory()
            budget = batch_tokens or self._tokens_on_cpu
        starts = [0]
        if self._tokenises_ahead and isinstance(prompts, str):
            longest = min(encoder.settings.max_length or budget, budget)
            starts = _slice_starts(texts, longest, budget)
        parts = 1
        for first, store in _stores(encoder, texts, prompts, starts, show):
            for batch in batches(store.lengths, budget):
                waiting = np.array_split(batch, min(parts, len(batch)))
                while waiting:
                    indices = waiting.pop()
                    vectors = self._run(store, indices, halve=halve)
                    if vectors is not None:
                        yield first + indices, vectors
                        continue
                    waiting += np.array_split(indices, 2)
                    parts = 2 * len(batch) // len(indices)
                    if torch.accelerator.is_available():
                        torch.accelerator.empty_cache()

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    @cached_property  # each call needs it, even for one text
    def _tokens_on_cpu(self) -> int:
        """The batch size that is fastest on a CPU; memory is rarely the limit."""
        widest = 1
        for weight in _weights(self.model.backbone):
            if weight.ndim > 1:
                widest = max(widest, *weight.shape[-2:])
        size = next(self.model.parameters()).element_size()
        return min(_TOKENS_CPU, max(1, _ACTIVATION_BYTES // (widest * size)))

    @property
    def _tokenises_ahead(self) -> bool:
        """Not on a CPU, for which both would compete, nor without packing, which needs all lengths."""
        return self._device.type != "cpu" and self.model.packed

    @cached_property
    def _products_per_token(self) -> int:
        return sum(weight.numel() for weight in _weights(self.model))

    def _run(
        self, store: TokenStore, texts: ndarray, *, halve: bool
    ) -> torch.Tensor | None:
        """The vectors of some texts; with `halve`, None if they need too much memory together."""
        device = self._device
        try:
            batch = store.batch(texts)
            tokens = upload(batch["input_ids"], device)
            products = len(tokens) * self._products_per_token
            is_small = device.type == "cpu" and products <= _ONE_THREAD_PRODUCTS
            with one_thread() if is_small else nullcontext():
                return self.model(  # type: ignore[no-any-return]
                    tokens, batch["lengths"], batch.get("prompt_lengths")
                )
        except (MemoryError, RuntimeError) as error:
            if not halve or not is_out_of_memory(error):
                raise
            if len(texts) == 1:
                raise ConfigError(
                    f"out of memory for one text of {store.lengths[texts[0]]} tokens; lower max_length or use"
                    " a smaller model"
                ) from error
            return None


def batches(lengths: ndarray, budget: int) -> Iterator[ndarray]:
    """Indices of texts, longest first, in batches within the budget of tokens."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        tokens = np.cumsum(lengths[order[start : start + budget]])
        within = int(np.searchsorted(tokens, budget, side="right"))
        stop = start + max(1, within)
        yield order[start:stop][::-1]  # ascending, as packed sequences are
        start = stop


def _slice_starts(texts: Sequence[str], max_length: int, budget: int) -> list[int]:
    """The first text of each slice of texts with about a batch's tokens."""
    tokens = [min(len(text) // _CHARACTERS_A_TOKEN, max_length) for text in texts]
    slices = np.cumsum(tokens) // budget
    return [0, *(np.flatnonzero(np.diff(slices)) + 1).tolist()]


def _weights(module: torch.nn.Module) -> Iterator[torch.Tensor]:
    """All weights other than embeddings."""
    for layer in module.modules():
        if not isinstance(layer, torch.nn.Embedding):
            yield from layer.parameters(recurse=False)


def _stores(
    encoder: Encoder,
    texts: Sequence[str],
    prompts: str | Sequence[str],
    starts: list[int],
    show: Listener,
) -> Iterator[tuple[int, TokenStore]]:
    """The tokens of consecutive texts with the index of the first, a few stores ahead of their use."""
    begun = Progress("encode", 0, len(texts))
    if len(starts) == 1:
        store = encoder.tokens(texts, prompts, progress=show)
        show(begun)
        yield 0, store
        return
    show(begun)
    with ThreadPoolExecutor(1) as producer:
        started = (
            (start, producer.submit(encoder.tokens, texts[start:stop], prompts))
            for start, stop in pairwise([*starts, len(texts)])
        )
        waiting = deque(islice(started, _AHEAD))
        while waiting:
            waiting.extend(islice(started, 1))
            first, tokenised = waiting.popleft()
            yield first, tokenised.result()
