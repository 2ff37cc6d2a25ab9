from __future__ import annotations

from pathlib import Path

import pytest
from transformers import AutoTokenizer

from pairkit.app.errors import ConfigError, DataError
from papers.ran.tokenizer import load_tokenizer
from tests.aoe_train.tiny import wordpiece

ENTRIES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "\u2028", "the", "cat", "##s", "Cat"]


def test_a_vocabulary_file_makes_a_wordpiece_tokenizer(tmp_path: Path):
    (tmp_path / "vocab.txt").write_text("\n".join(ENTRIES) + "\n", encoding="utf-8")
    tokenizer = load_tokenizer(tmp_path / "vocab.txt")
    assert len(tokenizer) == len(ENTRIES)
    assert tokenizer("The Cats").data == {"input_ids": [6, 7, 8], "attention_mask": [1, 1, 1]}
    assert load_tokenizer(tmp_path / "vocab.txt", lowercase=False)("Cat").input_ids == [9]
    assert (tokenizer.pad_token_id, tokenizer.mask_token_id) == (0, 4)
    tokenizer.save_pretrained(tmp_path / "saved")
    for again in (load_tokenizer(tmp_path / "saved"), AutoTokenizer.from_pretrained(tmp_path / "saved")):
        assert again("the cats").data == {"input_ids": [6, 7, 8], "attention_mask": [1, 1, 1]}


def test_bad_vocabularies_are_refused(tmp_path: Path):
    file = tmp_path / "vocab.txt"
    file.write_text("[PAD]\nthe\n")
    with pytest.raises(DataError, match=r"lacks \[UNK\], \[CLS\]"):
        load_tokenizer(file)
    file.write_text("\n".join([*ENTRIES, "cat"]))
    with pytest.raises(DataError, match="1 entries are there twice"):
        load_tokenizer(file)
    file.write_bytes(b"\xff")
    with pytest.raises(DataError, match="not readable as a vocabulary"):
        load_tokenizer(file)


def test_a_folder_must_hold_a_tokenizer_with_padding(tmp_path: Path, llama: Path):
    with pytest.raises(ConfigError, match="no tokenizer") as caught:
        load_tokenizer(tmp_path)
    assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match="no padding token"):
        load_tokenizer(llama)
    wordpiece().save_pretrained(tmp_path)
    assert load_tokenizer(tmp_path)("the cat").input_ids == wordpiece()("the cat").input_ids
