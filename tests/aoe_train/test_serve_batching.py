"""The line before the model: who comes when, in which batches, and that each text gets its own vector."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aoe_train.searching.serve.batching import Batcher
from aoe_train.searching.serve.requests import RefusalError
from aoe_train.settings.prompts import NamedPrompts


class Words:
    """A model whose tokens are words, and whose vectors tell the text."""

    name, identity, separator, prompts = "words", "words", "\n", NamedPrompts({})
    similarity: Any = "cosine"

    def __init__(self) -> None:
        self.batches: list[tuple[str | None, list[str]]] = []

    def encode(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
        self.batches.append((prompt, texts))
        return np.array([[len(text), hash((prompt, text)) % 10_007] for text in texts], np.float32)


class Unhurried(Words):
    """Takes so long over its first batch that all who come at once stand in line by then."""

    def encode(self, texts: list[str], prompt: str | None = None) -> np.ndarray:
        if not self.batches:
            time.sleep(0.5)
        return super().encode(texts, prompt)


Asked = tuple[list[str], str | None]


def encoded(model: Words, requests: list[Asked], batch_tokens: int) -> list[np.ndarray]:
    """What requests that come at once get."""

    async def ask() -> list[np.ndarray]:
        batcher = Batcher(model, batch_tokens=batch_tokens, most_texts=10_000)
        try:
            done = await asyncio.gather(*(batcher.encode(texts, prompt) for texts, prompt in requests))
            assert batcher.texts == batcher.requests == 0
            return [vectors for vectors, _ in done]
        finally:
            batcher.close()

    return asyncio.run(ask())


_TEXTS = st.lists(st.integers(1, 9).map(lambda words: " ".join(["a"] * words)), min_size=1, max_size=12)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(_TEXTS, st.sampled_from([None, "query: "])), min_size=1, max_size=8),
    st.integers(1, 30),
)
def test_each_text_gets_its_vector_once_in_batches_of_one_prompt(
    requests: list[Asked], batch_tokens: int
) -> None:
    model = Words()
    found = encoded(model, requests, batch_tokens)
    for (texts, prompt), vectors in zip(requests, found, strict=True):
        assert vectors.tolist() == Words().encode(texts, prompt).tolist()
    sent = sorted((prompt or "", text) for prompt, texts in model.batches for text in texts)
    assert sent == sorted((prompt or "", text) for texts, prompt in requests for text in texts)
    for _, texts in model.batches:
        assert len(texts) == 1 or sum(len(text.split()) for text in texts) <= batch_tokens


def test_a_large_request_lets_small_ones_in_between() -> None:
    model = Unhurried()
    large = [f"large {number}" for number in range(1000)]
    encoded(model, [(large, None), (["small"], None)], batch_tokens=100)
    where = next(place for place, (_, texts) in enumerate(model.batches) if "small" in texts)
    assert where <= 2
    assert len(model.batches) == 21


def test_what_is_too_much_is_refused_and_leaves_nothing_behind() -> None:
    async def ask() -> None:
        batcher = Batcher(Words(), batch_tokens=100, most_texts=3)
        try:
            first = asyncio.ensure_future(batcher.encode(["a"] * 5))
            await asyncio.sleep(0)
            with pytest.raises(RefusalError, match="too many texts"):
                await batcher.encode(["b"])
            await first
            assert len((await batcher.encode(["b"]))[0]) == 1
            gone = asyncio.ensure_future(batcher.encode(["c"]))
            await asyncio.sleep(0)
            gone.cancel()
            await asyncio.wait([gone])
            assert batcher.texts == batcher.requests == 0
        finally:
            batcher.close()

    asyncio.run(ask())
