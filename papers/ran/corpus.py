"""Plain texts as token sequences for pre-training, and the tokenizer: WordPiece without special tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line
from pairkit.base.system.machine import batched
from pairkit.base.system.text_lines import read_text_lines
from pairkit.dataset.reading.tables import is_table, read_table

_BATCH = 1000  # texts per call of the tokenizer
_SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}


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
    for batch in batched(texts, _BATCH):
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


def load_tokenizer(source: Path, *, lowercase: bool = True) -> PreTrainedTokenizerFast:
    """Load a tokenizer folder, or a WordPiece vocabulary with one token per line."""
    if source.is_file():
        return _wordpiece(source, lowercase=lowercase)
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            source, use_fast=True, local_files_only=True, trust_remote_code=False
        )
    # Damaged files make transformers and tokenizers raise many types.
    except Exception as error:
        raise ConfigError(
            f"{source}: no tokenizer ({one_line(str(error), 200)}); expected a folder with tokenizer.json or"
            " a vocab.txt"
        ) from error
    if tokenizer.pad_token_id is None:
        raise ConfigError(
            f"{source}: the tokenizer has no padding token; use that of an encoder"
        )
    return cast("PreTrainedTokenizerFast", tokenizer)


def _wordpiece(file: Path, *, lowercase: bool) -> PreTrainedTokenizerFast:
    try:
        # Not `splitlines`, because some entries are Unicode line separators.
        entries = file.read_text(encoding="utf-8").rstrip("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"not readable as UTF-8 ({error})", path=file) from error
    numbers = {entry: number for number, entry in enumerate(entries)}
    missing = [token for token in _SPECIAL.values() if token not in numbers]
    if missing:
        raise DataError(
            f"lacks {', '.join(missing)}; expected a WordPiece vocab.txt, one token per line",
            path=file,
        )
    if len(numbers) != len(entries):
        raise DataError(f"{len(entries) - len(numbers)} duplicate entries", path=file)
    tokenizer = Tokenizer(models.WordPiece(numbers, unk_token=_SPECIAL["unk_token"]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        model_input_names=["input_ids", "attention_mask"],
        **_SPECIAL,
    )
