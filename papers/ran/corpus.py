"""Plain texts as token sequences for pre-training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pairkit.base.errors import DataError
from pairkit.base.printable import one_line
from pairkit.base.system.text_lines import read_text_lines
from pairkit.dataset.reading.tables import is_table, read_table

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_BATCH = 1000  # texts per call of the tokenizer


@dataclass(frozen=True)
class Corpus:
    """Concatenated token sequences, with counts of texts."""

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
    """The non-blank texts: lines of text files (also `.gz`), and rows of a table's `column`."""
    for path in paths:
        yield from (
            text for text in _texts(path, column) if text and not text.isspace()
        )


def tokenize_corpus(
    texts: Iterable[str],
    tokenizer: PreTrainedTokenizerFast,
    *,
    length: int,
    text_length: int,
) -> Corpus:
    """Tokenise each text and split it into sequences of up to `length` tokens."""
    pieces: list[np.ndarray] = []
    used = 0
    empty = 0
    cut = 0
    remaining = iter(texts)
    while batch := list(islice(remaining, _BATCH)):
        for ids in tokenizer(batch, verbose=False)["input_ids"]:
            if ids:
                used += 1
            else:
                empty += 1
            if len(ids) > text_length:
                cut += 1
            tokens = np.asarray(ids[:text_length], np.int32)
            pieces += [
                tokens[start : start + length]
                for start in range(0, len(tokens), length)
            ]
    if not pieces:
        raise DataError(
            f"no text to train on: {empty} texts without a token; expected one text per line"
        )
    lengths = [len(piece) for piece in pieces]
    starts = np.cumsum([0, *lengths], dtype=np.int64)
    return Corpus(np.concatenate(pieces), starts, used, empty, cut)


def _texts(path: Path, column: str) -> Iterator[str]:
    if is_table(path):
        table = read_table(path)
        if column not in table.columns:
            raise DataError(
                f"no column {column!r}; found {one_line(', '.join(table.columns))}: set `column`",
                path=path,
            )
        yield from (str(text) for text in table[column] if text is not None)
        return
    yield from (line.rstrip("\r\n") for _, line in read_text_lines(path))
