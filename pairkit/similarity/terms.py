"""The terms of a text: words, or character bigrams in scripts without blanks between words.

Two texts are the same if words, numbers and signs agree, whatever the case, blanks and punctuation. Width and
normal form don't count either. Signs do: C, C++ and C# differ, as do 5 and -5, 1.5 and 15, 10² and 102. A text of
punctuation only is the same as itself.
"""

from __future__ import annotations

import re
import secrets
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from pairkit.base.printable import INVISIBLE, comparable
from pairkit.similarity.groups import Indices

UNSPACED = (
    "\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa"
    "\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff"
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\u1780-\u17d3\uaa60-\uaa7f"
)
"""Characters of scripts without blanks (Han, Kana, Thai, Lao, Myanmar, Khmer), for a class of a pattern."""

_CANDIDATES = map(chr, range(0x300, 0x3100))
MARKS = "".join(
    sign for sign in _CANDIDATES if unicodedata.category(sign).startswith("M")
)
"""Marks, such as the vowel signs of Hindi, which belong to their word but are not in `\\w`."""

COMMON_SHARE = 0.05  # words in a larger share of the texts are common
_COMMON_TEXTS = 10  # common words are in more than this number of texts

_RUN = re.compile(f"[{UNSPACED}]+")
_ASCII_WORD = re.compile(r"\w+")
_WORD = re.compile(rf"[\w{UNSPACED}{MARKS}]+")
_LETTER = rf"(?![{UNSPACED}])[\w{MARKS}]"
_PLACE = re.compile(
    rf"(?P<run>[{UNSPACED}](?:[{UNSPACED}]|{INVISIBLE})*)|{_LETTER}(?:{_LETTER}|{INVISIBLE})*"
)

_RAISED = "\ue000"  # before a digit that NFKC would join to the number before it
_BEFORE_NFKC = {
    r"[\p{Cf}\x{FE00}-\x{FE0F}]": "",  # invisible
    r"[`´¨™©®]": " ",  # would become accents or letters
    "～": "-",
    r"(\p{No})": _RAISED + "${1}",
}
_AFTER_NFKC = {
    r"i\x{307}": "i",  # from a Turkish İ
    "[‘’ʼ]": "'",
    r"[\p{Pd}\x{2212}]": "-",
    r"\b(\p{L})\.\b": "${1}",  # U.S. is US
    r" ?n't\b": "nt",  # do n't is dont
    r" ?'s\b": "s",
    r"([\p{L}\p{M}])[-.]+(\d)": "${1} ${2}",  # not a sign: gpt-4, fig.5
}
_SIGN = rf"[\p{{Sm}}\p{{Sc}}\p{{So}}^#%&@*/\\_§‰′″٪{_RAISED}]"
_NUMBER = r"(?:-\p{Sc}?|\.)?\d+(?:[.,:'-]\d+)*"
_ONLY_PUNCTUATION = r"^[\p{P}\p{Sk}\s\p{C}]+$"
_TOKEN = rf"{_ONLY_PUNCTUATION}|{_NUMBER}|[\p{{L}}\p{{M}}\p{{Nl}}\p{{No}}]+|!=|{_SIGN}+"
_BLOCK = 1 << 16  # texts whose keys are in memory
_SEED = secrets.randbits(63)  # random, so that no one can construct collisions


def terms(text: str) -> list[str]:
    """The terms in order, in lower case, with repetitions."""
    text = comparable(text).lower()
    return (
        _ASCII_WORD.findall(text) if text.isascii() else _WORD.findall(segmented(text))
    )


def segmented(text: str) -> str:
    """The text with its character bigrams separated by blanks, if it has scripts without blanks."""
    return text if text.isascii() else _RUN.sub(_bigrams, text)


def _bigrams(run: re.Match[str]) -> str:
    return f" {' '.join(map(''.join, pairwise(run[0]))) or run[0]} "


def is_unspaced(term: str) -> bool:
    """Whether a term is of a script without blanks between words."""
    return _RUN.match(term) is not None


def places(text: str) -> Iterator[tuple[str, int, int]]:
    """Each of the `terms` with its start and end in the text; bigrams overlap."""
    for match in _PLACE.finditer(text):
        start, end = match.span()
        letters = []
        if match["run"] is not None:
            letters = [place for place in range(start, end) if is_unspaced(text[place])]
        if len(letters) < 2:
            yield comparable(match[0]).lower(), start, end
        for first, last in pairwise(letters):
            yield comparable(text[first] + text[last]), first, last + 1


def distinct_words(text: str) -> set[str]:
    """The distinct words of three or more letters, in lower case, and character bigrams."""
    return {term for term in terms(text) if len(term) > 2 or is_unspaced(term)}


def common_words(texts: Iterable[str]) -> frozenset[str]:
    """Words in more than a twentieth of the texts, and in more than ten."""
    counts: Counter[str] = Counter()
    total = 0
    for text in texts:
        total += 1
        counts.update(distinct_words(text))
    limit = max(_COMMON_TEXTS, COMMON_SHARE * total)
    return frozenset(word for word, count in counts.items() if count > limit)


def split_at_words(text: str, marked: Set[str]) -> list[tuple[str, bool]]:
    """Pieces of the text, each with a flag for marked words."""
    pieces: list[tuple[str, bool]] = []
    last = 0
    for term, start, end in places(text):
        if term not in marked:
            continue
        if start < last:  # bigrams overlap
            piece, _ = pieces.pop()
            start = last - len(piece)
        pieces.append((text[last:start], False))
        pieces.append((text[start:end], True))
        last = end
    pieces.append((text[last:], False))
    return [(piece, is_marked) for piece, is_marked in pieces if piece]


def first_of_same(texts: Sequence[str] | pl.Series) -> Indices:
    """For each text the place of the first one that is the same."""
    blocks = (texts[start : start + _BLOCK] for start in range(0, len(texts), _BLOCK))
    hashes = np.concatenate([_hashes([]), *map(_hashes, blocks)])
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    return first[group]


def _hashes(texts: Sequence[str] | pl.Series) -> npt.NDArray[np.uint64]:
    table = pl.Series("text", texts, pl.String).to_frame()
    return table.select(same_text("text").hash(_SEED)).to_series().to_numpy()


def same_text(text: str) -> pl.Expr:
    """A key of each text in a column, which is equal for texts that are the same."""
    tokens = _folded(pl.col(text)).str.extract_all(_TOKEN).list.join(" ")
    return tokens.str.replace_all(f" ?([{UNSPACED}]+) ?", "${1}")


def _folded(text: pl.Expr) -> pl.Expr:
    """Lower case in the normal form NFKC, with one kind of dash and without invisible characters."""
    for pattern, replacement in _BEFORE_NFKC.items():
        text = text.str.replace_all(pattern, replacement)
    text = text.str.normalize("NFKC").str.to_lowercase()
    for pattern, replacement in _AFTER_NFKC.items():
        text = text.str.replace_all(pattern, replacement)
    return text.str.strip_chars()
