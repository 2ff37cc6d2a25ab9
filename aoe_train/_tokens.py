"""The tokens of every distinct text, made once, and gathered into batches without a loop over texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from aoe_train._frame import Frame, frame_of, is_panic, raw_tokenizer
from aoe_train._longtext import LongText, check_overlap, pieces
from aoe_train._records import TokenBatch
from aoe_train._token_cache import cache_key, load_arrays, save_arrays
from pairkit.errors import DataError
from pairkit.printable import one_line
from pairkit.progress import Listener, Progress

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer
    from transformers import PreTrainedTokenizerFast

_AT_ONCE = 4096  # texts a call of the tokenizer, which spreads them over its threads
_SURROGATE = re.compile("[\ud800-\udfff]")
_ARRAYS = ("ids", "piece_ends", "text_ends", "truncated")


@dataclass(frozen=True)
class TokenStore:
    """Token ids of texts, each cut into pieces that a model can take.

    Attributes:
        ids: uint16 if the vocabulary allows, else int32; all pieces one after another, special tokens and
            prompt included.
        piece_ends: int64; where each piece ends in `ids`, after a leading 0.
        text_ends: int64; where each text ends among the pieces, after a leading 0.
        truncated: How many texts lost tokens.
    """

    ids: np.ndarray
    piece_ends: np.ndarray
    text_ends: np.ndarray
    truncated: int

    @classmethod
    def build(
        cls,
        texts: Sequence[str],
        tokenizer: PreTrainedTokenizerFast,
        *,
        max_length: int,
        long_text: LongText = "truncate",
        overlap: int = 0,
        cache_dir: Path | None = None,
        progress: Listener | None = None,
    ) -> TokenStore:
        """Tokenise `texts`, or find them in the cache.

        Args:
            texts: Distinct ones, in the order in which they will be asked for.
            tokenizer: Its template's special tokens and prompt go around every piece.
            max_length: Tokens of a piece, everything included.
            long_text: What becomes of longer texts, see `aoe_train._longtext`.
            overlap: Tokens that neighbouring chunks share.
            cache_dir: Where to keep the tokens for the next run; None keeps them in memory only.
            progress: Told from time to time how many texts are done.

        Raises:
            ConfigError: `max_length` leaves no room, a bad overlap, or the cache can't be written.
            DataError: A text that gives no tokens at all, or is no valid Unicode.
        """
        raw = raw_tokenizer(tokenizer)
        frame = frame_of(raw)
        check_overlap(frame.room(max_length), long_text, overlap)

        def tokenise() -> TokenStore:
            return _tokenise(texts, raw, frame, max_length, long_text, overlap, progress)

        if cache_dir is None:
            return tokenise()
        settings = (raw.to_str(), raw.encode_special_tokens, max_length, long_text, overlap)
        folder = cache_dir / cache_key(texts, *settings)
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
        return TokenBatch(
            input_ids=torch.from_numpy(self.ids[ranges(starts, lengths)].astype(np.int64)),
            lengths=lengths,
            pieces=counts,
        )


def ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """All of `starts[i] … starts[i] + counts[i] - 1` for each i in turn."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - ends + counts, counts) + np.arange(total)


def _load(folder: Path) -> TokenStore | None:
    arrays = load_arrays(folder, _ARRAYS)
    if arrays is None:
        return None
    return TokenStore(
        arrays["ids"], arrays["piece_ends"], arrays["text_ends"], truncated=int(arrays["truncated"])
    )


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


def _tokenise(
    texts: Sequence[str],
    raw: Tokenizer,
    frame: Frame,
    max_length: int,
    long_text: LongText,
    overlap: int,
    progress: Listener | None,
) -> TokenStore:
    room = frame.room(max_length)
    dtype = np.uint16 if raw.get_vocab_size() <= 1 << 16 else np.int32
    ids: list[np.ndarray] = []
    piece_lengths: list[int] = []
    piece_counts: list[int] = []
    truncated = 0
    for start in range(0, len(texts), _AT_ONCE):
        some: list[list[int]] = []
        for encoding in _encode(raw, list(texts[start : start + _AT_ONCE])):
            own = encoding.ids
            cut = pieces(own, room, long_text, overlap)
            truncated += long_text != "chunks" and len(own) > room
            piece_counts.append(len(cut))
            some.extend([*frame.before, *piece, *frame.after] for piece in cut)
        piece_lengths += map(len, some)
        ids.append(np.fromiter(chain.from_iterable(some), dtype))
        if progress:
            progress(Progress("tokenise", len(piece_counts), len(texts)))
    if progress:
        progress(Progress("tokenise", len(texts), len(texts), ended=True))
    store = TokenStore(
        ids=np.concatenate(ids) if ids else np.empty(0, dtype),
        piece_ends=np.cumsum([0, *piece_lengths], dtype=np.int64),
        text_ends=np.cumsum([0, *piece_counts], dtype=np.int64),
        truncated=truncated,
    )
    _refuse_empty(texts, store)
    return store


def _refuse_empty(texts: Sequence[str], store: TokenStore) -> None:
    empty = np.flatnonzero(store.lengths == 0)
    if len(empty):
        text = texts[empty[0]]
        raise DataError(
            f"text {text[:60]!r} has no tokens, and this tokenizer adds none; drop its rows"
            f" ({len(empty)} such texts)"
        )
