"""When two texts are the same: words, numbers and signs agree, whatever the case, blanks and punctuation.

Width and normal form don't count either. Signs do: C, C++ and C# differ, as do 5 and -5, 1.5 and 15, 10² and
102. A text of punctuation only is the same as itself.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from pairkit.similarity.groups import Indices
from pairkit.similarity.terms import UNSPACED

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
_TEXT = "text"
_BLOCK = 1 << 16  # texts whose keys are in memory
_SEED = secrets.randbits(63)  # random, so that no one can construct collisions


def first_of_same(texts: Sequence[str] | pl.Series) -> Indices:
    """For each text the place of the first one that is the same."""
    blocks = (texts[start : start + _BLOCK] for start in range(0, len(texts), _BLOCK))
    hashes = np.concatenate([_hashes([]), *map(_hashes, blocks)])
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    return first[group]


def _hashes(texts: Sequence[str] | pl.Series) -> npt.NDArray[np.uint64]:
    table = pl.DataFrame({_TEXT: texts}, schema={_TEXT: pl.String})
    return table.select(same_text(_TEXT).hash(_SEED)).to_series().to_numpy()


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
