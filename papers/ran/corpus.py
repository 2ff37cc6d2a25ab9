"""Plain texts as sequences of tokens to pre-train on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pairkit.app.errors import DataError
from pairkit.app.printable import one_line
from pairkit.dataset.tables import is_table, read_table
from pairkit.system.lines import read_text_lines

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_AT_ONCE = 1000


@dataclass(frozen=True)
class Corpus:
    """Token sequences one after the other."""

    tokens: np.ndarray
    starts: np.ndarray
    texts: int
    empty: int
    cut: int

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        return self.tokens[self.starts[row] : self.starts[row + 1]]


def read_texts(paths: Iterable[Path], column: str) -> Iterator[str]:
    """One text a line of a text file (also `.gz`), one a row of a table's `column`; none are blank."""
    for path in paths:
        yield from (text for text in _texts(path, column) if text and not text.isspace())


def tokenize_corpus(
    texts: Iterable[str], tokenizer: PreTrainedTokenizerFast, *, length: int, text_length: int
) -> Corpus:
    """Tokenize each text once and cut it into sequences of up to `length` tokens."""
    pieces: list[np.ndarray] = []
    found = empty = cut = 0
    remaining = iter(texts)
    while some := list(islice(remaining, _AT_ONCE)):
        for ids in tokenizer(some, verbose=False)["input_ids"]:
            found, empty, cut = found + bool(ids), empty + (not ids), cut + (len(ids) > text_length)
            read = np.asarray(ids[:text_length], np.int32)
            pieces.extend(read[start : start + length] for start in range(0, len(read), length))
    if not pieces:
        raise DataError(
            f"no text to train on: {empty} texts without a token; give files with one text per line"
        )
    ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
    return Corpus(np.concatenate(pieces), np.concatenate([[0], ends]), found, empty, cut)


def _texts(path: Path, column: str) -> Iterator[str]:
    if is_table(path):
        table = read_table(path)
        if column not in table.columns:
            raise DataError(
                f"no column {column!r}; there are {one_line(', '.join(table.columns))}:"
                " name one with `column`",
                path=path,
            )
        yield from (str(text) for text in table[column] if text is not None)
        return
    yield from (line.rstrip("\r\n") for _, line in read_text_lines(path))
