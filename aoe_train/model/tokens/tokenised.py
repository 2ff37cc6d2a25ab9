"""Tokenises each distinct text once, and gathers batches without a loop over texts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
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
from aoe_train.model.tokens.special_tokens import (
    PromptTokens,
    SpecialTokens,
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
_ARRAYS = ("ids", "ends", "prompt_lengths")
_TRUNCATED = "truncated.npy"
# Increment it when the same texts and settings result in other arrays.
_CACHE_VERSION = "6"
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
    prompt_lengths: ndarray  # (text,)
    truncated: int

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
        tokenised = [prompt_tokens(raw, words) for words in distinct]
        cuts = [_Cut(prompt, max_length) for prompt in tokenised]
        left_out = [0] * len(cuts)
        if not include_prompt:
            end_tokens = _end_tokens(tokenizer, distinct)
            left_out = [cut.prompt_length(end_tokens) for cut in cuts]

        folder = None
        store = None
        if cache_dir is not None:
            how = (
                raw.to_str(),
                raw.encode_special_tokens,
                max_length,
                left_out,
                distinct,
            )
            folder = cache_dir / _key(texts, numbers, *how)
            store = _load(folder)
        if store is None:
            store = _tokenise(texts, numbers, raw, cuts, progress)
            lengths = np.array(left_out, np.int32)[numbers]
            store = replace(store, prompt_lengths=lengths)
            if folder is not None:
                _save(store, folder)
                store = _load(folder) or store
        if not empty:
            store.refuse_empty(texts)
        return store

    def __len__(self) -> int:
        return len(self.ends) - 1

    @cached_property
    def lengths(self) -> ndarray:
        """int64 (text,): tokens of each text."""
        return np.diff(self.ends)

    def refuse_empty(self, texts: Sequence[str]) -> None:
        """Raise DataError if one of the `texts` of this store has no tokens."""
        without_tokens = np.flatnonzero(self.lengths == 0)
        if len(without_tokens):
            raise DataError(
                f"text {texts[without_tokens[0]][:60]!r} has no tokens, and this tokenizer"
                f" adds none; drop its rows ({len(without_tokens)} such texts)"
            )

    def batch(self, texts: Sequence[int] | ndarray) -> TokenBatch:
        """The tokens of texts, by index and in this order; an index may be repeated."""
        texts = np.asarray(texts, dtype=np.int64)
        lengths = self.lengths[texts]
        ids = self.ids[ranges(self.ends[texts], lengths)].astype(np.int64)
        batch = TokenBatch(input_ids=torch.from_numpy(ids), lengths=lengths)
        if self._has_prompt_lengths:
            batch["prompt_lengths"] = self.prompt_lengths[texts]
        return batch

    @cached_property
    def _has_prompt_lengths(self) -> bool:
        return bool(self.prompt_lengths.any())


def ranges(starts: ndarray, counts: ndarray) -> ndarray:
    """The numbers from `starts[i]` to `starts[i] + counts[i] - 1`, for each i in turn."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - ends + counts, counts) + np.arange(total)


def _encode_starts(
    raw: Tokenizer, texts: list[str], needed: list[int | None]
) -> list[Encoding]:
    """Encode the start of each text, which contains the `needed` tokens; None encodes all of it."""
    encodings: dict[int, Encoding] = {}
    waiting = list(range(len(texts)))
    for characters in (*_CHARACTERS, None):
        if not waiting:
            break
        starts = []
        cut = []
        for index in waiting:
            start = text = texts[index]
            tokens = needed[index]
            if characters is not None and tokens is not None:
                start = text[: characters * tokens]
            starts.append(start)
            if len(start) < len(text):
                cut.append(index)
        encodings.update(zip(waiting, _encode(raw, starts), strict=True))
        if characters == _CHARACTERS[0]:
            _refuse_surrogates([texts[index] for index in cut])
        # Tokens near the cut may differ from those of the whole text, so twice as many are needed.
        waiting = [
            index for index in cut if len(encodings[index]) < 2 * (needed[index] or 0)
        ]
    return [encodings[index] for index in range(len(texts))]


def _refuse_surrogates(texts: list[str]) -> None:
    """Report a text that can't be encoded as UTF-8."""
    for text in texts:
        if _SURROGATE.search(text):
            raise DataError(
                f"text {text[:60]!r} contains half a surrogate pair; fix or drop its rows"
            )


def _encode(raw: Tokenizer, texts: list[str]) -> list[Encoding]:
    try:
        with panics_as_errors(f"on a text, such as {texts[0][:60]!r}"):
            return raw.encode_batch_fast(texts, add_special_tokens=False)
    except TypeError:
        _refuse_surrogates(texts)
        raise


@dataclass(frozen=True)
class _Cut:
    """Cuts the tokens of a prompt and a text, but never the prompt."""

    prompt: PromptTokens
    max_length: int

    def __post_init__(self) -> None:
        """Refuse a prompt that leaves no room for a text."""
        special = self.prompt.special
        around = SpecialTokens([*special.before, *self.prompt.ids], special.after)
        around.text_limit(self.max_length)

    def tokens(self, ids: list[int]) -> tuple[list[int], bool]:
        """The tokens, and whether the text was truncated."""
        special = self.prompt.special
        shared = self.prompt.shared(ids)
        before = [*special.before, *ids[:shared]]
        text = ids[shared:]
        limit = self.max_length - len(before) - len(special.after)
        return [*before, *text[:limit], *special.after], len(text) > limit

    @cached_property
    def needed_tokens(self) -> int | None:
        """The tokens of prompt and text that are computed; None for all."""
        if self.max_length >= UNLIMITED:
            return None
        return max(_MIN_TOKENS, self.max_length + len(self.prompt.ids))

    def prompt_length(self, end_tokens: Sequence[int]) -> int:
        """The prompt's tokens as sentence-transformers counts them: without a final one of `end_tokens`."""
        if not self.prompt.text:
            return 0
        special = self.prompt.special
        ids = [*special.before, *self.prompt.ids, *special.after]
        return len(ids) - (ids[-1] in end_tokens)


def _tokenise(
    texts: Sequence[str],
    prompts: ndarray,
    raw: Tokenizer,
    cuts: Sequence[_Cut],
    progress: Listener | None,
) -> TokenStore:
    """The tokens of texts, each with the prompt of one of the `cuts`; pooling includes all tokens."""
    total = len(texts)
    ids: list[ndarray] = [np.empty(0, np.uint16)]
    lengths = [np.zeros(1, np.int64)]
    truncated = 0
    for first in range(0, total, _TEXTS_PER_CALL):
        block = slice(first, first + _TEXTS_PER_CALL)
        block_cuts = [cuts[number] for number in prompts[block].tolist()]
        pairs = zip(block_cuts, texts[block], strict=True)
        joined = [cut.prompt.text + text for cut, text in pairs]
        needed = [cut.needed_tokens for cut in block_cuts]
        by_text: list[list[int]] = []
        encodings = _encode_starts(raw, joined, needed)
        for cut, encoding in zip(block_cuts, encodings, strict=True):
            tokens, is_truncated = cut.tokens(encoding.ids)
            by_text.append(tokens)
            truncated += is_truncated
        lengths.append(np.fromiter(map(len, by_text), np.int64, len(by_text)))
        ids.append(_narrow(chain.from_iterable(by_text), int(lengths[-1].sum())))
        if progress:
            progress(Progress("tokenise", first + len(joined), total))
    if progress:
        progress(Progress("tokenise", total, total, ended=True))
    return TokenStore(
        ids=np.concatenate(ids),
        ends=np.cumsum(np.concatenate(lengths)),
        prompt_lengths=np.zeros(total, np.int32),
        truncated=truncated,
    )


def _narrow(ids: Iterable[int], count: int) -> ndarray:
    """The ids as uint16 if all of them fit, else as int32."""
    wide = np.fromiter(ids, np.int32, count)
    return wide.astype(np.uint16) if wide.max(initial=0) < 1 << 16 else wide


def _save(store: TokenStore, folder: Path) -> None:
    """Write the arrays of a store, which processes and later runs share."""
    with write_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Another run may write the same files.
        partial = Path(mkdtemp(prefix=".partial-", dir=folder.parent))
        try:
            for name in _ARRAYS:
                np.save(partial / f"{name}.npy", getattr(store, name))
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
        arrays = {  # not memmaps, which are slow to index
            name: np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r"))
            for name in _ARRAYS
        }
        return TokenStore(**arrays, truncated=int(np.load(folder / _TRUNCATED)))
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
    for start in range(0, len(texts), _TEXTS_PER_CALL):
        block = slice(start, start + _TEXTS_PER_CALL)
        encoded = [text.encode(errors="surrogatepass") for text in texts[block]]
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        digest.update(lengths.tobytes())
        digest.update(np.ascontiguousarray(prompts[block]).tobytes())
        digest.update(b"".join(encoded))
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
