"""The tokens of every distinct text, made once, and gathered into batches without a loop over texts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import torch

from aoe_train.model.tokens.special_tokens import (
    PromptTokens,
    SpecialTokens,
    is_panic,
    prompt_tokens,
    raw_tokenizer,
)
from aoe_train.records import TextSelection, TokenBatch
from aoe_train.settings.prompts import read_prompt
from pairkit.app.errors import ConfigError, DataError
from pairkit.app.printable import one_line
from pairkit.app.progress import Listener, Progress
from pairkit.system.files import remove, write_errors

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer
    from transformers import PreTrainedTokenizerFast


LongText = Literal["truncate", "chunks"]


def pieces(ids: list[int], limit: int, mode: LongText = "truncate", overlap: int = 0) -> list[list[int]]:
    """Cut a text's own token ids into pieces of at most `limit`; a text that fits is one piece."""
    check_overlap(limit, mode, overlap)
    if len(ids) <= limit:
        return [ids]
    if mode == "truncate":
        return [ids[:limit]]
    return [ids[start:stop] for start, stop in windows(len(ids), limit, overlap)]


def check_overlap(limit: int, mode: LongText, overlap: int) -> None:
    """Refuse an overlap that means nothing, or by which a text would be many times as much work.

    Half a chunk encodes each token twice at most; a chunk less one token would encode it `limit` times, and a
    model's folder, which may be a stranger's, says how large the overlap is.
    """
    if overlap and mode != "chunks":
        raise ConfigError(
            f"overlap {overlap} with long_text {mode!r}: only chunks overlap; use long_text chunks"
        )
    if not 0 <= overlap <= limit // 2:
        raise ConfigError(
            f"overlap {overlap}: expected 0 to {limit // 2}, at most half of a chunk's own {limit} tokens"
        )


def windows(length: int, limit: int, overlap: int) -> list[tuple[int, int]]:
    """The fewest windows (start, stop) of at most `limit` tokens over `length`, sharing `overlap` each.

    All are equally long, give or take one token: a short last window would weigh as much in a text's mean as
    a full one, and windows of one length are attended to together.
    """
    count = max(1, -(-(length - overlap) // (limit - overlap)))
    size, longer = divmod(length + (count - 1) * overlap, count)
    spans, start = [], 0
    for number in range(count):
        stop = start + size + (number < longer)
        spans.append((start, stop))
        start = stop - overlap
    return spans


_AT_ONCE = 4096  # texts a call of the tokenizer, which spreads them over its threads
_MAPPED = ("ids", "piece_ends", "text_ends", "prompt_lengths")
_TRUNCATED = "truncated.npy"
_LAYOUT = "4"  # raise it when the same texts and settings give other arrays
UNLIMITED = 1 << 30
"""Tokens of a piece, where neither the model nor a person sets a limit."""
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class TokenStore:
    """Token ids of texts, each cut into pieces that a model can take."""

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
        empty: bool = False,
        cache_dir: Path | None = None,
        progress: Listener | None = None,
    ) -> TokenStore:
        """Tokenise `texts`, or find them in the cache."""
        raw = raw_tokenizer(tokenizer)
        names, numbers = _numbered(prompts, len(texts))
        cuts = [_Cut(prompt_tokens(raw, words), max_length, long_text, overlap) for words in names]
        endings = None if include_prompt else _endings(tokenizer, names)
        left_out = [cut.prompt_length(endings) for cut in cuts]
        work = _Work(texts, numbers, raw, cuts, left_out, progress, empty=empty)
        if cache_dir is None:
            return _in_memory(work)
        how = (max_length, long_text, overlap, include_prompt, names)
        key = _key(texts, numbers, raw.to_str(), raw.encode_special_tokens, *how)
        return _on_disk(work, cache_dir / key)

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


# Characters of a text that are read for each token that is kept: at first, and at most. Most have 1 to 6.
_CHARACTERS, _MORE, _MOST_CHARACTERS = 16, 8, 1024
_FEWEST_TOKENS = 256  # more than a tokenizer makes of one word that was cut


def _encode_starts(raw: Tokenizer, texts: list[str], kept: list[int | None]) -> list[Encoding]:
    """Encode each text as far as needed for its first tokens, `kept` of them; None encodes all of it.

    A text that was cut has to have twice as many, since the tokens beside the cut may differ from those of
    the whole. Otherwise a longer beginning is encoded.
    """
    found: dict[int, Encoding] = {}
    waiting, characters = list(range(len(texts))), _CHARACTERS
    while waiting:
        least = {place: max(most, _FEWEST_TOKENS) for place in waiting if (most := kept[place]) is not None}
        starts = [
            texts[place][: characters * least[place]] if place in least else texts[place] for place in waiting
        ]
        found.update(zip(waiting, _encode(raw, starts), strict=True))
        cut = [place for place, start in zip(waiting, starts, strict=True) if len(start) < len(texts[place])]
        if characters == _CHARACTERS and (
            bad := next(filter(_SURROGATE.search, map(texts.__getitem__, cut)), None)
        ):
            raise _half_pair(bad)
        waiting = [place for place in cut if len(found[place]) < 2 * least[place]]
        if characters == _MOST_CHARACTERS:
            break
        characters *= _MORE
    return [found[place] for place in range(len(texts))]


def _half_pair(text: str) -> DataError:
    return DataError(f"text {text[:60]!r} holds half a surrogate pair; fix or drop its rows")


def _encode(raw: Tokenizer, texts: list[str]) -> list[Encoding]:
    try:
        return raw.encode_batch_fast(texts, add_special_tokens=False)
    except TypeError as error:  # what it makes of text that has no UTF-8
        bad = next((text for text in texts if _SURROGATE.search(text)), None)
        if bad is None:
            raise
        raise _half_pair(bad) from error
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

    prompt_tokens: PromptTokens
    max_length: int
    long_text: LongText
    overlap: int

    def __post_init__(self) -> None:
        special = self.prompt_tokens.special
        whole = SpecialTokens([*special.before, *self.prompt_tokens.alone], special.after)
        check_overlap(whole.text_limit(self.max_length), self.long_text, self.overlap)

    def pieces(self, ids: list[int]) -> tuple[list[list[int]], bool]:
        """Whole pieces, and whether tokens were lost."""
        special, lead = self.prompt_tokens.special, self.prompt_tokens.lead(ids)
        before, own = [*special.before, *ids[:lead]], ids[lead:]
        limit = self.max_length - len(before) - len(special.after)
        cut = pieces(own, limit, self.long_text, self.overlap)
        return [[*before, *piece, *special.after] for piece in cut], (
            self.long_text != "chunks" and len(own) > limit
        )

    @property
    def most_tokens(self) -> int | None:
        """How many of the joined tokens are kept at most; None for all."""
        if self.long_text == "chunks" or self.max_length >= UNLIMITED:
            return None
        return self.max_length + len(self.prompt_tokens.alone)

    def prompt_length(self, endings: Sequence[int] | None) -> int:
        """Tokens of the prompt by itself, as sentence-transformers counts: less a last one of `endings`."""
        if endings is None or not self.prompt_tokens.joined:
            return 0
        alone = [
            *self.prompt_tokens.special.before,
            *self.prompt_tokens.alone,
            *self.prompt_tokens.special.after,
        ]
        return len(alone) - (alone[-1] in endings)


class _Work(NamedTuple):
    """What is to be tokenised, and how."""

    texts: Sequence[str]
    prompts: np.ndarray  # (text,): which of the cuts
    raw: Tokenizer
    cuts: Sequence[_Cut]
    left_out: Sequence[int]  # tokens of each cut's prompt that pooling leaves out
    progress: Listener | None
    empty: bool = False  # whether a text may have no token

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """Of the ids."""
        return np.dtype(np.uint16 if self.raw.get_vocab_size() <= 1 << 16 else np.int32)


class _Tokens(NamedTuple):
    """Of some texts: ids of all pieces, tokens of each piece, pieces of each text, and how many were cut."""

    ids: np.ndarray
    piece_lengths: np.ndarray
    piece_counts: np.ndarray
    truncated: int


def _tokenise(work: _Work) -> Iterator[_Tokens]:
    """The tokens of some thousand texts at a time."""
    texts, progress = work.texts, work.progress
    for first in range(0, len(texts), _AT_ONCE):
        some: list[list[int]] = []
        counts: list[int] = []
        truncated = 0
        own = [work.cuts[number] for number in work.prompts[first : first + _AT_ONCE].tolist()]
        joined = [
            cut.prompt_tokens.joined + text
            for cut, text in zip(own, texts[first : first + _AT_ONCE], strict=True)
        ]
        encodings = _encode_starts(work.raw, joined, [cut.most_tokens for cut in own])
        for cut, encoding in zip(own, encodings, strict=True):
            whole, lost = cut.pieces(encoding.ids)
            truncated += lost
            counts.append(len(whole))
            some += whole
        lengths = np.fromiter(map(len, some), np.int64, len(some))
        ids = np.fromiter(chain.from_iterable(some), work.dtype, int(lengths.sum()))
        yield _Tokens(ids, lengths, np.array(counts, np.int64), truncated)
        if progress:
            progress(Progress("tokenise", first + len(own), len(texts)))
    if progress:
        progress(Progress("tokenise", len(texts), len(texts), ended=True))


def _in_memory(work: _Work) -> TokenStore:
    none = np.empty(0, np.int64)
    found = [_Tokens(none.astype(work.dtype), none, none, 0), *_tokenise(work)]
    ids, lengths, counts, truncated = zip(*found, strict=True)
    store = TokenStore(
        ids=np.concatenate(ids),
        piece_ends=np.cumsum(np.concatenate([[0], *lengths]), dtype=np.int64),
        text_ends=np.cumsum(np.concatenate([[0], *counts]), dtype=np.int64),
        prompt_lengths=np.array(work.left_out, np.int32)[work.prompts],
        truncated=sum(truncated),
    )
    _refuse_empty(work, store)
    return store


def _on_disk(work: _Work, folder: Path) -> TokenStore:
    """The same arrays in files that are mapped into memory, so that processes and later runs share them."""
    if (found := _mapped(folder)) is not None:
        return found
    store = _in_memory(work)
    with write_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(mkdtemp(prefix=".partial-", dir=folder.parent))  # other runs may be making the same
        for name in _MAPPED:
            np.save(partial / f"{name}.npy", getattr(store, name))
        np.save(partial / _TRUNCATED, store.truncated)
        try:
            remove(folder)  # a damaged one
            partial.rename(folder)
        except OSError:  # another run was faster
            remove(partial)
    return _mapped(folder) or store


def _mapped(folder: Path) -> TokenStore | None:
    """What was saved; None if there is nothing, or if it is damaged."""
    try:
        # Plain arrays, as indexing a memmap costs more than reading.
        arrays = {name: np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r")) for name in _MAPPED}
        return TokenStore(**arrays, truncated=int(np.load(folder / _TRUNCATED)))
    except (OSError, ValueError, EOFError):
        return None


def _numbered(prompts: str | Sequence[str], count: int) -> tuple[list[str], np.ndarray]:
    """The distinct prompts, and which of them each text has."""
    if isinstance(prompts, str):
        return [prompts], np.broadcast_to(np.int64(0), count)
    if len(prompts) != count:
        raise ConfigError(f"{len(prompts)} prompts for {count} texts; give one for all, or one for each")
    if isinstance(prompts, TextSelection):
        return list(prompts.values), prompts.indices
    place: dict[str, int] = {}
    numbers = np.fromiter((place.setdefault(words, len(place)) for words in prompts), np.int64, count)
    return list(place) or [""], numbers


def _key(texts: Sequence[str], prompts: np.ndarray, *settings: object) -> str:
    """Hex SHA-256 of texts, which prompt each has, and settings."""
    digest = hashlib.sha256(repr((_LAYOUT, *settings)).encode())
    for start in range(0, len(texts), _AT_ONCE):
        encoded = [text.encode(errors="surrogatepass") for text in texts[start : start + _AT_ONCE]]
        digest.update(np.fromiter(map(len, encoded), np.int64, len(encoded)).tobytes())
        digest.update(np.ascontiguousarray(prompts[start : start + _AT_ONCE]).tobytes())
        digest.update(b"".join(encoded))
    return digest.hexdigest()


def _endings(tokenizer: PreTrainedTokenizerFast, prompts: Sequence[str]) -> list[int]:
    """The special tokens, which end a prompt by itself and are none of its own."""
    if found := next((words for words in prompts if read_prompt(words).after), None):
        raise ConfigError(
            f"include_prompt is false, and the prompt {one_line(found, 80)!r} has words after the text, which"
            " can't be left out; give one that ends where the text begins"
        )
    return list(tokenizer.all_special_ids)


def _refuse_empty(work: _Work, store: TokenStore) -> None:
    empty = np.flatnonzero(store.lengths == 0)
    if len(empty) and not work.empty:
        text = work.texts[empty[0]]
        raise DataError(
            f"text {text[:60]!r} has no tokens, and this tokenizer adds none; drop its rows"
            f" ({len(empty)} such texts)"
        )
