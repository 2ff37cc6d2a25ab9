"""The languages of texts, and whether a backbone knows them, by how finely its tokenizer splits them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from aoe_train.model.tokens.special_tokens import raw_tokenizer

_TEXTS, _CHARS = 200, 1000  # sampled texts, and characters of each
_FEW = 20  # letters, below which nothing is said
_LEAST_SHARE = 0.1  # of the texts, in a language that is named; short texts are often mistaken
_MOST_UNKNOWN = 0.05  # share of unknown tokens
# Letters a token. With an English vocabulary, English and code have 3.5 or more, German and French less than
# 2.8. A multilingual one has 3.8 for German, 1.3 for Chinese and 1.9 for Korean; others split these scripts
# into single characters or bytes.
_MIN_LATIN_LETTERS, _MIN_OTHER_LETTERS = 3.0, 1.2
_LAST_LATIN = "\u024f"


def language_warning(tokenizer: Any, texts: Sequence[str], name: str) -> str | None:
    """A warning if the texts' language is not the backbone's; None if it is, or too few texts tell."""
    sample = _sample(texts)
    characters = [character for text in sample for character in text if character.isalpha()]
    encodings = raw_tokenizer(tokenizer).encode_batch(sample, add_special_tokens=False)
    pieces = [piece for encoding in encodings for piece in encoding.tokens]
    unknown = pieces.count(tokenizer.unk_token)
    tokens = unknown + sum(any(map(str.isalpha, piece)) for piece in pieces if piece != tokenizer.unk_token)
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


def languages(texts: Sequence[str]) -> list[str]:
    """ISO codes of the texts' languages, the most frequent first; empty if they can't be detected."""
    sample = _sample(texts)
    try:
        import py3langid

        counts = Counter(py3langid.classify(text)[0] for text in sample)
    except (ImportError, OSError):  # not installed, or no room for the temporary file that it makes
        return []
    return [code for code, count in counts.most_common() if count >= _LEAST_SHARE * len(sample)]


def _sample(texts: Sequence[str]) -> list[str]:
    return [text[:_CHARS] for text in texts[:: max(1, len(texts) // _TEXTS)]]
