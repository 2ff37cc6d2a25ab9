"""The tokens of every distinct text, made once, and gathered into batches without a loop over texts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from aoe_train._frame import Frame, is_panic, raw_tokenizer
from aoe_train._longtext import LongText, check_overlap, pieces
from aoe_train._prompts import read_prompt
from aoe_train._records import TokenBatch
from aoe_train._template import Reading, reading
from aoe_train._token_cache import cache_key, load_arrays, save_arrays
from pairkit.errors import ConfigError, DataError
from pairkit.printable import one_line
from pairkit.progress import Listener, Progress

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer
    from transformers import PreTrainedTokenizerFast

_AT_ONCE = 4096  # texts a call of the tokenizer, which spreads them over its threads
_SURROGATE = re.compile("[\ud800-\udfff]")
_ARRAYS = ("ids", "piece_ends", "text_ends", "prompt_lengths", "truncated")


@dataclass(frozen=True)
class TokenStore:
    """Token ids of texts, each cut into pieces that a model can take.

    Attributes:
        ids: uint16 if the vocabulary allows, else int32; all pieces one after another, special tokens and
            prompt included.
        piece_ends: int64; where each piece ends in `ids`, after a leading 0.
        text_ends: int64; where each text ends among the pieces, after a leading 0.
        prompt_lengths: int32 (text,); the first tokens of each of a text's pieces, which pooling leaves out.
        truncated: How many texts lost tokens.
    """

    ids: np.ndarray
    piece_ends: np.ndarray
    text_ends: np.ndarray
    prompt_lengths: np.ndarray
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
        long_text: LongText = "truncate",
        overlap: int = 0,
        cache_dir: Path | None = None,
        progress: Listener | None = None,
    ) -> TokenStore:
        """Tokenise `texts`, or find them in the cache.

        Args:
            texts: In the order in which they will be asked for; distinct ones, or with distinct prompts.
            tokenizer: The special tokens of its template go around every piece.
            max_length: Tokens of a piece, everything included.
            prompts: One prompt for all texts, or one for each; every piece of a text has it.
            include_prompt: Whether pooling takes in the tokens of prompts.
            long_text: What becomes of longer texts, see `aoe_train._longtext`.
            overlap: Tokens that neighbouring chunks share.
            cache_dir: Where to keep the tokens for the next run; None keeps them in memory only.
            progress: Told from time to time how many texts are done.

        Raises:
            ConfigError: `max_length` leaves no room, a bad overlap or prompt, or the cache can't be written.
            DataError: A text that gives no tokens at all, or is no valid Unicode.
        """
        raw = raw_tokenizer(tokenizer)
        each = [prompts] * len(texts) if isinstance(prompts, str) else list(prompts)
        if len(each) != len(texts):
            raise ConfigError(
                f"{len(each)} prompts for {len(texts)} texts; give one for all, or one for each"
            )
        names = list(dict.fromkeys(each)) or [""]
        cut = {words: _Cut(reading(raw, words), max_length, long_text, overlap) for words in names}
        endings = None if include_prompt else _endings(tokenizer, names)

        def tokenise() -> TokenStore:
            return _tokenise(texts, each, raw, cut, endings, progress)

        if cache_dir is None:
            return tokenise()
        place = {words: number for number, words in enumerate(names)}
        numbers = [place[words] for words in each] if len(names) > 1 else ()
        how = (max_length, long_text, overlap, include_prompt, names, numbers)
        folder = cache_dir / cache_key(texts, raw.to_str(), raw.encode_special_tokens, *how)
        if (found := _load(folder)) is not None:
            return found
        made = tokenise()
        save_arrays(folder, {name: np.asarray(getattr(made, name)) for name in _ARRAYS})
        return _load(folder) or made  # as loaded, so that processes share the memory

    def __len__(self) -> int:
        return len(self.text_ends) - 1

    @cached_property
    def lengths(self) -> np.ndarray:
        """int64 (text,): tokens of each text, all its pieces together."""
        return np.diff(self.piece_ends[self.text_ends])

    def batch(self, texts: Sequence[int] | np.ndarray) -> TokenBatch:
        """The tokens of these texts, in this order; a text may come more than once."""
        texts = np.asarray(texts, dtype=np.int64)
        first = self.text_ends[texts]
        counts = self.text_ends[texts + 1] - first
        own = ranges(first, counts)
        starts = self.piece_ends[own]
        lengths = self.piece_ends[own + 1] - starts
        batch = TokenBatch(
            input_ids=torch.from_numpy(self.ids[ranges(starts, lengths)].astype(np.int64)),
            lengths=lengths,
            pieces=counts,
        )
        if self._leaves_out:
            batch["prompt_lengths"] = np.repeat(self.prompt_lengths[texts], counts)
        return batch

    @cached_property
    def _leaves_out(self) -> bool:
        return bool(self.prompt_lengths.any())


def ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """All of `starts[i] … starts[i] + counts[i] - 1` for each i in turn."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - ends + counts, counts) + np.arange(total)


def _load(folder: Path) -> TokenStore | None:
    arrays = load_arrays(folder, _ARRAYS)
    if arrays is None:
        return None
    truncated = int(arrays.pop("truncated"))
    return TokenStore(**arrays, truncated=truncated)


def _encode(raw: Tokenizer, texts: list[str]) -> list[Encoding]:
    try:
        return raw.encode_batch_fast(texts, add_special_tokens=False)
    except TypeError as error:  # what it makes of text that has no UTF-8
        bad = next((text for text in texts if _SURROGATE.search(text)), None)
        if bad is None:
            raise
        raise DataError(f"text {bad[:60]!r} holds half a surrogate pair; fix or drop its rows") from error
    except BaseException as error:
        if not is_panic(error):
            raise
        raise DataError(
            f"the tokenizer gave up on a text, such as {texts[0][:60]!r} ({one_line(str(error), 80)});"
            " use another"
        ) from error


@dataclass(frozen=True)
class _Cut:
    """How the joined tokens of a prompt and a text become pieces with the prompt in each."""

    reading: Reading
    max_length: int
    long_text: LongText
    overlap: int

    def __post_init__(self) -> None:
        frame = self.reading.frame
        whole = Frame([*frame.before, *self.reading.alone], frame.after)
        check_overlap(whole.room(self.max_length), self.long_text, self.overlap)

    def pieces(self, ids: list[int]) -> tuple[list[list[int]], bool]:
        """Whole pieces, and whether tokens were lost."""
        frame, lead = self.reading.frame, self.reading.lead(ids)
        before, own = [*frame.before, *ids[:lead]], ids[lead:]
        room = self.max_length - len(before) - len(frame.after)
        cut = pieces(own, room, self.long_text, self.overlap)
        return [[*before, *piece, *frame.after] for piece in cut], (
            self.long_text != "chunks" and len(own) > room
        )

    def prompt_length(self, endings: Sequence[int] | None) -> int:
        """Tokens of the prompt by itself, as sentence-transformers counts: less a last one of `endings`."""
        if endings is None or not self.reading.joined:
            return 0
        alone = [*self.reading.frame.before, *self.reading.alone, *self.reading.frame.after]
        return len(alone) - (alone[-1] in endings)


def _tokenise(
    texts: Sequence[str],
    prompts: Sequence[str],
    raw: Tokenizer,
    cuts: Mapping[str, _Cut],
    endings: Sequence[int] | None,
    progress: Listener | None,
) -> TokenStore:
    dtype = np.uint16 if raw.get_vocab_size() <= 1 << 16 else np.int32
    ids: list[np.ndarray] = []
    piece_lengths: list[int] = []
    piece_counts: list[int] = []
    truncated = 0
    for start in range(0, len(texts), _AT_ONCE):
        some: list[list[int]] = []
        own = [cuts[words] for words in prompts[start : start + _AT_ONCE]]
        joined = [
            cut.reading.joined + text for cut, text in zip(own, texts[start : start + _AT_ONCE], strict=True)
        ]
        for cut, encoding in zip(own, _encode(raw, joined), strict=True):
            whole, lost = cut.pieces(encoding.ids)
            truncated += lost
            piece_counts.append(len(whole))
            some += whole
        piece_lengths += map(len, some)
        ids.append(np.fromiter(chain.from_iterable(some), dtype))
        if progress:
            progress(Progress("tokenise", len(piece_counts), len(texts)))
    if progress:
        progress(Progress("tokenise", len(texts), len(texts), ended=True))
    left_out = {words: cut.prompt_length(endings) for words, cut in cuts.items()}
    store = TokenStore(
        ids=np.concatenate(ids) if ids else np.empty(0, dtype),
        piece_ends=np.cumsum([0, *piece_lengths], dtype=np.int64),
        text_ends=np.cumsum([0, *piece_counts], dtype=np.int64),
        prompt_lengths=np.array([left_out[words] for words in prompts], np.int32),
        truncated=truncated,
    )
    _refuse_empty(texts, store)
    return store


def _endings(tokenizer: PreTrainedTokenizerFast, prompts: Sequence[str]) -> list[int]:
    """The special tokens, which end a prompt by itself and are none of its own.

    Raises:
        ConfigError: A prompt has words after the text.
    """
    if found := next((words for words in prompts if read_prompt(words).after), None):
        raise ConfigError(
            f"include_prompt is false, and the prompt {one_line(found, 80)!r} has words after the text, which"
            " can't be left out; give one that ends where the text begins"
        )
    return list(tokenizer.all_special_ids)


def _refuse_empty(texts: Sequence[str], store: TokenStore) -> None:
    empty = np.flatnonzero(store.lengths == 0)
    if len(empty):
        text = texts[empty[0]]
        raise DataError(
            f"text {text[:60]!r} has no tokens, and this tokenizer adds none; drop its rows"
            f" ({len(empty)} such texts)"
        )
