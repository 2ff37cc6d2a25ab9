from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairkit.app.errors import DataError
from papers.ran.corpus import read_texts, tokenize_corpus
from tests.aoe_train.tiny import wordpiece

TOKENIZER = wordpiece()


def test_lines_and_columns_are_texts(tmp_path: Path):
    (tmp_path / "a.txt").write_text("the dog\n\n  \nthe cat", encoding="utf-8")
    with gzip.open(tmp_path / "b.txt.gz", "wt") as file:
        file.write("a boat\n")
    (tmp_path / "c.jsonl").write_text('{"text": "a car"}\n{"text": null}\n{"text": " "}\n')
    pl.DataFrame({"body": ["a road"], "text": ["no"]}).write_parquet(tmp_path / "d.parquet")
    paths = [tmp_path / name for name in ("a.txt", "b.txt.gz", "c.jsonl")]
    assert list(read_texts(paths, "text")) == ["the dog", "the cat", "a boat", "a car"]
    assert list(read_texts([tmp_path / "d.parquet"], "body")) == ["a road"]
    with pytest.raises(DataError, match="no column 'body'; there are text"):
        list(read_texts([tmp_path / "c.jsonl"], "body"))


def test_unreadable_files_are_named(tmp_path: Path):
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\n")
    (tmp_path / "plain.gz").write_bytes(b"no gzip")
    for name, says in (
        ("latin.txt", ":1: not UTF-8"),
        ("plain.gz", ":1: not readable"),
        ("missing.txt", ": no such"),
    ):
        with pytest.raises(DataError, match=name + says):
            list(read_texts([tmp_path / name], "text"))


@given(
    st.lists(st.text("the cat zx", max_size=40), min_size=1, max_size=8),
    st.integers(8, 20),
    st.integers(8, 30),
)
def test_sequences_are_the_texts_in_pieces(texts: list[str], length: int, text_length: int):
    texts = [*texts, "dog"]
    corpus = tokenize_corpus(texts, TOKENIZER, length=length, text_length=text_length)
    expected = [TOKENIZER(text).input_ids for text in texts]
    pieces = [
        ids[:text_length][start : start + length]
        for ids in expected
        for start in range(0, min(len(ids), text_length), length)
    ]
    assert [corpus[row].tolist() for row in range(len(corpus))] == pieces
    assert (corpus.texts, corpus.empty) == (len(texts), 0)
    assert corpus.cut == sum(len(ids) > text_length for ids in expected)


def test_texts_without_tokens_are_counted():
    bare = wordpiece()
    bare.backend_tokenizer.post_processor = None
    corpus = tokenize_corpus(["the dog", "\u200b", "cat"], bare, length=8, text_length=8)
    assert (len(corpus), corpus.texts, corpus.empty, corpus.cut) == (2, 2, 1, 0)
    assert corpus.tokens.dtype == np.int32
    with pytest.raises(DataError, match="no text to train on: 1 texts without a token"):
        tokenize_corpus(["\u200b"], bare, length=8, text_length=8)
