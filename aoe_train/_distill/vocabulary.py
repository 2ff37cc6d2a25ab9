"""A model's tokens: those of texts, as a sparse matrix, and each on its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from pairkit.errors import ConfigError

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

_AT_ONCE = 1 << 12  # texts


def plain_tokenizer(tokenizer: PreTrainedTokenizerFast) -> Tokenizer:
    """A tokenizer's own kind of file, which cuts and pads no text.

    Raises:
        ConfigError: It has none: its code is in Python alone.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ConfigError(
            f"{type(tokenizer).__name__}: has no tokenizer.json, which a static model's folder consists of"
        )
    plain: Tokenizer = type(backend).from_str(backend.to_str())
    plain.no_truncation()
    plain.no_padding()
    return plain


def token_count(tokenizer: Tokenizer) -> int:
    """One more than the highest id, be there gaps between them."""
    return 1 + max(tokenizer.get_vocab(with_added_tokens=True).values())


def token_shares(tokenizer: Tokenizer, texts: Sequence[str], longest: int | None = None) -> sparse.csr_matrix:
    """What share of a text's tokens each token is, float32 (text, token); rows of texts without any are 0.

    Args:
        tokenizer: Special tokens are left out.
        texts: Any number.
        longest: Only so many of each text's tokens count, the first ones.
    """
    ids: list[np.ndarray] = []
    for start in range(0, len(texts), _AT_ONCE):
        part = list(texts[start : start + _AT_ONCE])
        found = tokenizer.encode_batch_fast(part, add_special_tokens=False)
        ids.extend(np.asarray(encoding.ids[:longest], np.int32) for encoding in found)
    lengths = np.fromiter(map(len, ids), np.int64, len(ids))
    shares = np.repeat(1 / np.maximum(lengths, 1), lengths).astype(np.float32)
    columns = np.concatenate([*ids, np.empty(0, np.int32)])
    starts = np.concatenate([[0], lengths.cumsum()])
    matrix = sparse.csr_matrix((shares, columns, starts), (len(ids), token_count(tokenizer)))
    matrix.sum_duplicates()
    return matrix


def written_tokens(tokenizer: PreTrainedTokenizerFast, plain: Tokenizer) -> list[str]:
    """Each token as text, by its id; empty for special ones and for those that are no text of their own.

    The latter are blanks and parts of a character's bytes.
    """
    special = set(tokenizer.all_special_ids)
    mark = getattr(plain.model, "continuing_subword_prefix", None) or ""
    texts = plain.decode_batch([[token] for token in range(token_count(plain))])
    return [
        "" if token in special or "\ufffd" in text else text.strip().removeprefix(mark)
        for token, text in enumerate(texts)
    ]
