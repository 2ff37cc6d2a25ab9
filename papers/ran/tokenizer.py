"""The tokenizer of a RAN: WordPiece without special tokens around texts."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from pairkit.base.errors import ConfigError, DataError
from pairkit.base.printable import one_line

_SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}


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
