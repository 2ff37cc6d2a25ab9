"""Whether a backbone knows the language of texts, by how finely its tokenizer splits them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aoe_train.model.tokens.special_tokens import raw_tokenizer
from pairkit.similarity.languages import sampled

_FEW = 20  # letters, below which nothing is said
_MOST_UNKNOWN = 0.05  # share of unknown tokens
# Letters a token. With an English vocabulary, English and code have 3.5 or more, German and French less than
# 2.8. A multilingual one has 3.8 for German, 1.3 for Chinese and 1.9 for Korean; others split these scripts
# into single characters or bytes.
_MIN_LATIN_LETTERS, _MIN_OTHER_LETTERS = 3.0, 1.2
_LAST_LATIN = "\u024f"


def language_warning(tokenizer: Any, texts: Sequence[str], name: str) -> str | None:
    """A warning if the texts' language is not the backbone's; None if it is, or too few texts tell."""
    sample = sampled(texts)
    characters = [character for text in sample for character in text if character.isalpha()]
    encodings = raw_tokenizer(tokenizer).encode_batch(sample, add_special_tokens=False)
    pieces = [piece for encoding in encodings for piece in encoding.tokens]
    unknown = pieces.count(tokenizer.unk_token)
    tokens = unknown + sum(
        any(map(str.isalpha, piece)) for piece in pieces if piece != tokenizer.unk_token
    )
    if len(characters) < _FEW or not tokens:
        return None
    latin = sum(character <= _LAST_LATIN for character in characters)
    min_letters = _MIN_LATIN_LETTERS if 2 * latin > len(characters) else _MIN_OTHER_LETTERS
    size = len(characters) / tokens
    if size >= min_letters and unknown <= _MOST_UNKNOWN * tokens:
        return None
    return (
        f"warning: {name} hardly knows the language of these texts ({size:.1f} letters a token,"
        f" {unknown / tokens:.0%} unknown tokens); use a multilingual model, such as"
        " intfloat/multilingual-e5-small (118M weights, prompt 'query: '),"
        " sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2 (118M, no prompt) or BAAI/bge-m3 (568M,"
        " no prompt)"
    )
