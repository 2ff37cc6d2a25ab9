"""How a model reads texts: in how many tokens, and which of them are cut."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from aoe_train._evaluate.embedders.embedder import Embedder


class Read(NamedTuple):
    """Tokens of each text, at least 1, and how many texts were cut to the model's greatest length."""

    lengths: np.ndarray
    cut: int


@runtime_checkable
class Reading(Protocol):
    """An embedder that knows its tokens."""

    def read(self, texts: list[str], prompt: str | None = None) -> Read:
        """How it reads texts with its default prompt, or with this one."""
        ...


def read_as_tokens(embedder: Embedder, texts: list[str], prompt: str | None = None) -> Read:
    """How a model reads texts; words count as tokens where it has none.

    Raises:
        DataError, ConfigError: Texts that it can't read.
    """
    if isinstance(embedder, Reading):
        return embedder.read(texts, prompt)
    return _by_words(texts)


def read_by(tokenizer: Any, longest: int | None, texts: list[str]) -> Read:
    """How sentence-transformers reads texts.

    Args:
        tokenizer: Of tokenizers (a static model's) or of transformers; None for none.
        longest: The model's greatest length.
        texts: With their prompts.
    """
    if hasattr(tokenizer, "encode_batch_fast"):
        found = [len(one.ids) for one in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
    elif callable(tokenizer):
        found = [len(ids) for ids in tokenizer(texts, truncation=False, verbose=False)["input_ids"]]
    else:
        return _by_words(texts)
    lengths = np.maximum(found, 1)
    if longest is None:
        return Read(lengths, 0)
    return Read(np.minimum(lengths, longest), int((lengths > longest).sum()))


def _by_words(texts: list[str]) -> Read:
    return Read(np.array([max(1, len(text.split())) for text in texts], np.int64), 0)
