"""Whether a backbone knows the language of texts, by how finely its tokenizer splits them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aoe_train.model.tokens.special_tokens import raw_tokenizer
from pairkit.similarity.measures import sampled

# Fewer letters show nothing.
_MIN_LETTERS = 20
_MAX_UNKNOWN_SHARE = 0.05
# Letters a token, below which a backbone hardly knows a language. With an English vocabulary, English and code
# have 3.5 or more, German and French less than 2.8. A multilingual one has 3.8 for German, 1.3 for Chinese and
# 1.9 for Korean; others split these scripts into single characters or bytes.
_MIN_LATIN_LETTERS = 3.0
_MIN_OTHER_LETTERS = 1.2
_LAST_LATIN = "\u024f"


def language_warning(tokenizer: Any, texts: Sequence[str], name: str) -> str | None:
    """A warning if the texts' language is not the backbone's; None if it is, or too few texts tell."""
    sample = sampled(texts)
    letters = [letter for letter in "".join(sample) if letter.isalpha()]
    unknown = 0
    tokens = 0
    raw = raw_tokenizer(tokenizer)
    for encoding in raw.encode_batch(sample, add_special_tokens=False):
        for token in encoding.tokens:
            if token == tokenizer.unk_token:
                unknown += 1
            elif any(map(str.isalpha, token)):
                tokens += 1
    tokens += unknown
    if len(letters) < _MIN_LETTERS or not tokens:
        return None
    min_letters = _MIN_OTHER_LETTERS
    latin = sum(letter <= _LAST_LATIN for letter in letters)
    if 2 * latin > len(letters):
        min_letters = _MIN_LATIN_LETTERS
    size = len(letters) / tokens
    if size >= min_letters and unknown <= _MAX_UNKNOWN_SHARE * tokens:
        return None
    return (
        f"warning: {name} hardly knows the language of these texts ({size:.1f} letters a token,"
        f" {unknown / tokens:.0%} unknown tokens); use a multilingual model, such as"
        " intfloat/multilingual-e5-small (118M weights, prompt 'query: '),"
        " sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2 (118M, no prompt) or BAAI/bge-m3 (568M,"
        " no prompt)"
    )
