"""Tokenises each distinct text once, and gathers batches without a loop over texts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, compress
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy import ndarray

from aoe_train.model.folder_checks import panics_as_errors
from aoe_train.model.run_folder import add_texts
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


def list_texts(texts: Any, what: str = "text") -> Sequence[str]:
    """One text as a list, or a sequence of texts; refuses a table, a mapping, bytes and other items."""
    if isinstance(texts, str):
        return [texts]
    # Only a list or a column has one axis.
    is_other = len(getattr(texts, "shape", "1")) != 1 or isinstance(
        texts, Mapping | bytes
    )
    if is_other or not hasattr(texts, "__getitem__"):
        raise DataError(
            f"expected a {what}, or a list of {what}s; found {type(texts).__name__}"
        )
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataError(
                f"{what} {index} (from 0) is {type(text).__name__}; expected a string"
            )
    return texts  # type: ignore[no-any-return]


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
        prompt_lengths = None
        if not include_prompt:
            end_tokens = _end_tokens(tokenizer, distinct)
            lengths = [prompt.length(end_tokens) for prompt in tokenised]
            if any(lengths):
                prompt_lengths = np.array(lengths, np.int32)[numbers]

        def tokenise() -> TokenStore:
            return _tokenise(texts, numbers, raw, tokenised, max_length, progress)

        if cache_dir is None:
            store = tokenise()
        else:
            how = (raw.to_str(), raw.encode_special_tokens, max_length, distinct)
            store = _cached(cache_dir / _key(texts, numbers, *how), tokenise)

        is_empty = store.lengths == 0
        if is_empty.any() and not empty:
            first = next(compress(texts, is_empty))
            raise DataError(
                f"text {first[:60]!r} has no tokens, and this tokenizer adds none; drop its"
                f" rows ({is_empty.sum()} such texts)"
            )
        return replace(store, prompt_lengths=prompt_lengths)

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
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(counts.sum())


def _cached(folder: Path, tokenise: Callable[[], TokenStore]) -> TokenStore:
    """The store saved in a folder, which is made if it is missing or damaged."""
    store = _load(folder)
    if store is None:
        store = tokenise()
        _save(store, folder)
        # Processes share the memory of a file.
        return _load(folder) or store
    return store


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
    ids: list[ndarray] = [np.empty(0, np.uint16)]
    lengths = [0]
    truncated = 0
    for first in range(0, total, _TEXTS_PER_CALL):
        block = slice(first, first + _TEXTS_PER_CALL)
        its_prompts = [prompts[number] for number in numbers[block].tolist()]
        cut_texts = _cut_texts(raw, texts[block], its_prompts, max_length)
        by_text, is_truncated = zip(*cut_texts, strict=True)
        truncated += sum(is_truncated)
        lengths += map(len, by_text)
        flat = np.fromiter(chain.from_iterable(by_text), np.int32)
        if flat.max(initial=0) < 1 << 16:
            flat = flat.astype(np.uint16)
        ids.append(flat)
        if progress:
            progress(Progress("tokenise", len(lengths) - 1, total))
    if progress:
        progress(Progress("tokenise", total, total, ended=True))
    return TokenStore(np.concatenate(ids), np.cumsum(lengths), truncated)


def _cut_texts(
    raw: Tokenizer,
    texts: Sequence[str],
    prompts: Sequence[PromptTokens],
    max_length: int,
) -> Iterator[tuple[list[int], bool]]:
    """The tokens of each text with its prompt, and whether the text was truncated."""
    needed = 0
    if max_length < UNLIMITED:
        longest_prompt = max(len(prompt.ids) for prompt in prompts)
        needed = max(_MIN_TOKENS, max_length + longest_prompt)
    joined = []
    for prompt, text in zip(prompts, texts, strict=True):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise DataError(
                f"text {text[:60]!r} contains half a surrogate pair; fix or drop its rows"
            ) from error
        joined.append(prompt.text + text)
    encodings = _encode_starts(raw, joined, needed)
    for prompt, encoding in zip(prompts, encodings, strict=True):
        yield prompt.cut(encoding.ids, max_length)


def _encode_starts(raw: Tokenizer, texts: list[str], needed: int) -> list[Encoding]:
    """Encode the start of each text, which contains the `needed` tokens; 0 encodes all of it."""
    limits = [characters * needed for characters in _CHARACTERS if needed]
    encodings: dict[int, Encoding] = {}
    waiting = list(range(len(texts)))
    for limit in (*limits, None):
        starts = [texts[index][:limit] for index in waiting]
        with panics_as_errors(f"on a text, such as {starts[0][:60]!r}"):
            encoded = raw.encode_batch_fast(starts, add_special_tokens=False)
        encodings.update(zip(waiting, encoded, strict=True))
        cut = [index for index in waiting if limit and len(texts[index]) > limit]
        # Tokens near the cut may differ from those of the whole text, so twice as many are needed.
        waiting = [index for index in cut if len(encodings[index]) < 2 * needed]
        if not waiting:
            break
    return [encodings[index] for index in range(len(texts))]


def _distinct_prompts(
    prompts: str | Sequence[str], count: int
) -> tuple[list[str], ndarray]:
    """The distinct prompts, and the index of each text's prompt."""
    if isinstance(prompts, str):
        return [prompts], np.broadcast_to(np.int64(0), count)
    prompts = list_texts(prompts, "prompt")
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
    digest.update(prompts.tobytes())
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
