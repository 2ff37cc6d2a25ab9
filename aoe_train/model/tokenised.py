"""Tokenises each distinct text once, and gathers batches without a loop over texts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy import ndarray

from aoe_train.model.folder_checks import panics_as_errors
from aoe_train.model.model_folder import add_texts
from aoe_train.model.tokenizer import (
    PromptTokens,
    prompt_tokens,
    raw_tokenizer,
)
from aoe_train.objectives.training_rows import TokenBatch
from aoe_train.settings.train_settings import read_prompt
from pairkit.base.cli.progress import Listener, Progress
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line
from pairkit.base.system.files import apply_umask, remove, write_errors

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer
    from transformers import PreTrainedTokenizerFast


UNLIMITED = 1 << 30
"""Maximum tokens of a text if neither model nor settings have a limit."""

# The tokenizer divides the texts of a call among its threads.
_TEXTS_PER_CALL = 4096
# Files of a cached store.
_IDS = "ids.npy"
_ENDS = "ends.npy"
_TRUNCATED = "truncated.npy"
# Increment it when the same texts and settings result in other arrays.
_CACHE_VERSION = "7"
# Characters to read per token that is kept: at first, and while they are too few;
# then the whole text is read. Most tokens have 1 to 6.
_CHARACTERS = (16, 128, 1024)
# More than the tokens of one word that was cut.
_MIN_TOKENS = 256
_SURROGATE = re.compile("[\ud800-\udfff]")


def check_texts(texts: Any) -> None:
    """Refuse a table, a mapping, bytes, and a sequence of anything but strings."""
    is_other = hasattr(texts, "columns") or isinstance(texts, Mapping | bytes)
    if is_other or not hasattr(texts, "__getitem__"):
        raise DataError(
            f"expected a text, or a list of texts; found {type(texts).__name__}"
        )
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataError(
                f"text {index} (from 0) is {type(text).__name__}; expected a string"
            )


@dataclass(frozen=True)
class TokenStore:
    """Token ids of texts, each cut to what the model reads."""

    ids: ndarray  # (token,)
    ends: ndarray  # (text + 1,), the first of which is 0
    truncated: int
    prompt_lengths: ndarray | None = None  # (text,), tokens that pooling leaves out

    @classmethod
    def build(
        cls,
        texts: Sequence[str],
        tokenizer: PreTrainedTokenizerFast,
        *,
        max_length: int,
        prompts: str | Sequence[str] = "",
        include_prompt: bool = True,
        empty: bool = False,
        cache_dir: Path | None = None,
        progress: Listener | None = None,
    ) -> TokenStore:
        """Tokenise `texts`, or load them from the cache."""
        raw = raw_tokenizer(tokenizer)
        distinct, numbers = _distinct_prompts(prompts, len(texts))
        tokenised = [prompt_tokens(raw, words, max_length) for words in distinct]
        left_out: list[int] = []
        if not include_prompt:
            end_tokens = _end_tokens(tokenizer, distinct)
            left_out = [prompt.length(end_tokens) for prompt in tokenised]

        folder = None
        store = None
        if cache_dir is not None:
            how = (raw.to_str(), raw.encode_special_tokens, max_length, distinct)
            folder = cache_dir / _key(texts, numbers, *how)
            store = _load(folder)
        if store is None:
            store = _tokenise(texts, numbers, raw, tokenised, max_length, progress)
            if folder is not None:
                _save(store, folder)
                store = _load(folder) or store
        without_tokens = np.flatnonzero(store.lengths == 0)
        if len(without_tokens) and not empty:
            raise DataError(
                f"text {texts[without_tokens[0]][:60]!r} has no tokens, and this tokenizer"
                f" adds none; drop its rows ({len(without_tokens)} such texts)"
            )
        if any(left_out):
            lengths = np.array(left_out, np.int32)[numbers]
            return replace(store, prompt_lengths=lengths)
        return store

    def __len__(self) -> int:
        return len(self.ends) - 1

    @cached_property
    def lengths(self) -> ndarray:
        """int64 (text,): tokens of each text."""
        return np.diff(self.ends)

    def batch(self, texts: Sequence[int] | ndarray) -> TokenBatch:
        """The tokens of texts, by index and in this order; an index may be repeated."""
        texts = np.asarray(texts, dtype=np.int64)
        lengths = self.lengths[texts]
        ids = self.ids[ranges(self.ends[texts], lengths)].astype(np.int64)
        batch = TokenBatch(input_ids=torch.from_numpy(ids), lengths=lengths)
        if self.prompt_lengths is not None:
            batch["prompt_lengths"] = self.prompt_lengths[texts]
        return batch


def ranges(starts: ndarray, counts: ndarray) -> ndarray:
    """The numbers from `starts[i]` to `starts[i] + counts[i] - 1`, for each i in turn."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - ends + counts, counts) + np.arange(total)


def _encode_starts(
    raw: Tokenizer, texts: list[str], needed: int | None
) -> list[Encoding]:
    """Encode the start of each text, which contains the `needed` tokens; None encodes all of it."""
    if needed is None:
        return _encode(raw, texts)
    for text in texts:
        if len(text) > _CHARACTERS[0] * needed:
            _refuse_surrogates(text)  # only its start is encoded
    encodings: dict[int, Encoding] = {}
    waiting = list(range(len(texts)))
    for characters in (*_CHARACTERS, None):
        limit = None if characters is None else characters * needed
        starts = [texts[index][:limit] for index in waiting]
        encodings.update(zip(waiting, _encode(raw, starts), strict=True))
        cut = [index for index in waiting if limit and len(texts[index]) > limit]
        # Tokens near the cut may differ from those of the whole text, so twice as many are needed.
        waiting = [index for index in cut if len(encodings[index]) < 2 * needed]
        if not waiting:
            break
    return [encodings[index] for index in range(len(texts))]


def _refuse_surrogates(text: str) -> None:
    """Report a text that can't be encoded as UTF-8."""
    if _SURROGATE.search(text):
        raise DataError(
            f"text {text[:60]!r} contains half a surrogate pair; fix or drop its rows"
        )


def _encode(raw: Tokenizer, texts: list[str]) -> list[Encoding]:
    try:
        with panics_as_errors(f"on a text, such as {texts[0][:60]!r}"):
            return raw.encode_batch_fast(texts, add_special_tokens=False)
    except TypeError:
        for text in texts:
            _refuse_surrogates(text)
        raise


def _tokenise(
    texts: Sequence[str],
    numbers: ndarray,
    raw: Tokenizer,
    prompts: Sequence[PromptTokens],
    max_length: int,
    progress: Listener | None,
) -> TokenStore:
    """The tokens of texts, each with the prompt of its number."""
    total = len(texts)
    needed = None
    if max_length < UNLIMITED:
        longest_prompt = max(len(prompt.ids) for prompt in prompts)
        needed = max(_MIN_TOKENS, max_length + longest_prompt)
    ids: list[ndarray] = [np.empty(0, np.uint16)]
    lengths = [np.zeros(1, np.int64)]
    truncated = 0
    for first in range(0, total, _TEXTS_PER_CALL):
        block = slice(first, first + _TEXTS_PER_CALL)
        prompt_of = [prompts[number] for number in numbers[block].tolist()]
        pairs = zip(prompt_of, texts[block], strict=True)
        joined = [prompt.text + text for prompt, text in pairs]
        by_text: list[list[int]] = []
        encodings = _encode_starts(raw, joined, needed)
        for prompt, encoding in zip(prompt_of, encodings, strict=True):
            tokens, is_truncated = prompt.cut(encoding.ids, max_length)
            by_text.append(tokens)
            truncated += is_truncated
        lengths.append(np.fromiter(map(len, by_text), np.int64, len(by_text)))
        flat = np.fromiter(chain.from_iterable(by_text), np.int32, lengths[-1].sum())
        if flat.max(initial=0) < 1 << 16:
            flat = flat.astype(np.uint16)
        ids.append(flat)
        if progress:
            progress(Progress("tokenise", first + len(joined), total))
    if progress:
        progress(Progress("tokenise", total, total, ended=True))
    return TokenStore(
        ids=np.concatenate(ids),
        ends=np.cumsum(np.concatenate(lengths)),
        truncated=truncated,
    )


def _save(store: TokenStore, folder: Path) -> None:
    """Write the arrays of a store, which processes and later runs share."""
    with write_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Another run may write the same files.
        partial = Path(mkdtemp(prefix=".partial-", dir=folder.parent))
        try:
            np.save(partial / _IDS, store.ids)
            np.save(partial / _ENDS, store.ends)
            np.save(partial / _TRUNCATED, store.truncated)
            apply_umask(partial)
            with suppress(OSError):  # another run was faster
                remove(folder)  # it is damaged, if it exists
                partial.rename(folder)
        finally:
            remove(partial)


def _load(folder: Path) -> TokenStore | None:
    """The saved arrays; None if they are missing or damaged."""
    try:
        ids, ends = (  # not memmaps, which are slow to index
            np.asarray(np.load(folder / name, mmap_mode="r")) for name in (_IDS, _ENDS)
        )
        return TokenStore(ids, ends, int(np.load(folder / _TRUNCATED)))
    except (OSError, ValueError, EOFError):
        return None


def _distinct_prompts(
    prompts: str | Sequence[str], count: int
) -> tuple[list[str], ndarray]:
    """The distinct prompts, and the index of each text's prompt."""
    if isinstance(prompts, str):
        return [prompts], np.broadcast_to(np.int64(0), count)
    if len(prompts) != count:
        raise ConfigError(
            f"{len(prompts)} prompts for {count} texts; give one for all, or one for each"
        )
    index: dict[str, int] = {}
    numbers = [index.setdefault(words, len(index)) for words in prompts]
    return list(index) or [""], np.array(numbers, np.int64)


def _key(texts: Sequence[str], prompts: ndarray, *settings: object) -> str:
    """Hex SHA-256 of texts, their prompts, and settings."""
    digest = hashlib.sha256(repr((_CACHE_VERSION, *settings)).encode())
    digest.update(np.ascontiguousarray(prompts).tobytes())
    add_texts(digest, texts)
    return digest.hexdigest()


def _end_tokens(
    tokenizer: PreTrainedTokenizerFast, prompts: Sequence[str]
) -> list[int]:
    """The special tokens: one that follows a prompt doesn't belong to it."""
    for words in prompts:
        if read_prompt(words).after:
            raise ConfigError(
                f"include_prompt is false, but the prompt {one_line(words, 80)!r} has words after the text,"
                " which pooling can't ignore; use a prompt that ends with {text}"
            )
    return list(tokenizer.all_special_ids)
