"""RAN's pre-training: corpus, tokenizer, masks and loss."""

from __future__ import annotations

import gzip
import json

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from pydantic import ValidationError
from torch.nn import functional
from torch.testing import assert_close
from transformers import AutoTokenizer

from aoe_train import ran
from papers.ran.corpus import load_tokenizer, read_texts, tokenize_corpus
from papers.ran.masked_lm import IGNORED, RanForMaskedLM, Vocabulary, mask_words
from papers.ran.settings import MaskSettings, PretrainSettings
from tests.aoe_train.tiny import bytelevel, wordpiece
from tests.support.shorthand import (
    approx,
    config_error,
    data_error,
    parametrize,
    raises,
    values,
)

TOKENIZER = wordpiece()
VOCABULARY = Vocabulary.of(TOKENIZER)
SPECIAL = sorted(TOKENIZER.all_special_ids)
IDS = st.integers(0, len(TOKENIZER) - 1)
TOKENS = st.lists(IDS, min_size=1, max_size=60).map(np.array)


def words(ids):
    """Indices of each word, by the plain definition."""
    found = []
    open_word = False
    for place, token in enumerate(TOKENIZER.convert_ids_to_tokens(ids.tolist())):
        if ids[place] in SPECIAL:
            open_word = False
        elif token.startswith("##") and open_word:
            found[-1].append(place)
        else:
            found.append([place])
            open_word = True
    return found


@settings(max_examples=40)
@given(TOKENS, st.integers(0, 2**31), st.floats(0.05, 0.9))
def test_whole_words_are_hidden_up_to_the_share(ids, seed, share):
    shown, labels = mask_words(ids, VOCABULARY, MaskSettings(share=share), (seed, 0, 0))
    hidden = labels != IGNORED
    assert_array_equal(labels[hidden], ids[hidden])
    assert_array_equal(shown[~hidden], ids[~hidden])
    for word in words(ids):
        assert hidden[word].all() or not hidden[word].any()
    ordinary = sum(len(word) for word in words(ids))
    assert hidden.sum() <= max(1, round(share * ordinary))
    if any(len(word) == 1 for word in words(ids)):
        assert hidden.any()
    assert not set(shown[hidden]) & set(SPECIAL) - {VOCABULARY.mask_id}


def test_shares_of_masked_random_and_unchanged_tokens():
    words = "the old crash not the new error of a large compiler"
    ids = np.array(TOKENIZER(words, add_special_tokens=False).input_ids)
    masked = same = hidden = 0
    for row in range(3000):
        settings = MaskSettings(share=0.3)
        shown, labels = mask_words(ids, VOCABULARY, settings, (1, 0, row))
        hidden += (labels != IGNORED).sum()
        masked += (shown == VOCABULARY.mask_id).sum()
        same += (shown == labels).sum()
    assert [masked / hidden, same / hidden] == approx([0.8, 0.1], abs=0.015)


def test_masks_depend_on_seed_epoch_and_row():
    ids = np.arange(5, 45)
    first = [mask_words(ids, VOCABULARY, MaskSettings(), (1, 2, 3)) for _ in range(2)]
    assert_array_equal(first[0], first[1])
    for key in ((2, 2, 3), (1, 3, 3), (1, 2, 4)):
        other = mask_words(ids, VOCABULARY, MaskSettings(), key)
        assert not np.array_equal(first[0], other)
    # special tokens stay
    shown, labels = mask_words(np.array(SPECIAL), VOCABULARY, MaskSettings(), (0, 0, 0))
    assert shown.tolist() == SPECIAL
    assert (labels == IGNORED).all()
    with config_error("no mask token"):
        Vocabulary.of(bytelevel())


def test_lines_and_columns_are_texts(tmp_path):
    (tmp_path / "a.txt").write_text("the dog\n\n  \nthe cat")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"a boat\n"))
    rows = '{"text": "a car"}\n{"text": null}\n{"text": " "}\n'
    (tmp_path / "c.jsonl").write_text(rows)
    (tmp_path / "d.csv").write_text("body,text\na road,no\n")
    (tmp_path / "latin.txt").write_bytes(b"caf\x81\n")
    (tmp_path / "plain.gz").write_bytes(b"no gzip")
    paths = [tmp_path / name for name in ("a.txt", "b.txt.gz", "c.jsonl")]
    assert list(read_texts(paths, "text")) == ["the dog", "the cat", "a boat", "a car"]
    assert list(read_texts([tmp_path / "d.csv"], "body")) == ["a road"]
    for name, column, words in values("""
            c.jsonl | body | no column 'body'; found text
            latin.txt | text | latin.txt:1: is not UTF-8
            plain.gz | text | plain.gz:1: not readable
            missing.txt | text | missing.txt: no such
            """):
        with data_error(words):
            list(read_texts([tmp_path / name], column))


@settings(max_examples=40)
@given(
    st.lists(st.text("the cat zx", max_size=40), max_size=8),
    st.integers(8, 20),
    st.integers(8, 30),
)
def test_sequences_are_the_texts_in_pieces(texts, length, text_length):
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


ENTRIES = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "\u2028",
    "the",
    "cat",
    "##s",
    "Cat",
]


def test_a_vocabulary_file_makes_a_wordpiece_tokenizer(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(ENTRIES) + "\n")
    tokenizer = load_tokenizer(tmp_path / "vocab.txt")
    assert len(tokenizer) == len(ENTRIES)
    cased = load_tokenizer(tmp_path / "vocab.txt", lowercase=False)
    assert cased("Cat").input_ids == [9]
    assert (tokenizer.pad_token_id, tokenizer.mask_token_id) == (0, 4)
    saved = tmp_path / "saved"
    tokenizer.save_pretrained(saved)
    of_transformers = AutoTokenizer.from_pretrained(saved)
    for again in (tokenizer, load_tokenizer(saved), of_transformers):
        found = again("The cats").data
        assert found == {"input_ids": [6, 7, 8], "attention_mask": [1, 1, 1]}


@parametrize(
    "vocabulary, words",
    [
        (b"[PAD]\nthe\n", r"lacks \[UNK\], \[CLS\]"),
        ("\n".join([*ENTRIES, "cat"]).encode(), "1 duplicate entries"),
        (b"\xff", "not readable as UTF-8"),
    ],
)
def test_bad_vocabularies_are_refused(vocabulary, words, tmp_path):
    (tmp_path / "vocab.txt").write_bytes(vocabulary)
    with data_error(words):
        load_tokenizer(tmp_path / "vocab.txt")


def test_inputs_without_tokens_or_padding_are_refused(tmp_path, llama):
    bare = wordpiece()
    bare.backend_tokenizer.post_processor = None
    texts = ["the dog", "\u200b", "cat"]
    corpus = tokenize_corpus(texts, bare, length=8, text_length=8)
    assert (len(corpus), corpus.texts, corpus.empty) == (2, 2, 1)
    with data_error("no text to train on: 1 texts without a token"):
        tokenize_corpus(["\u200b"], bare, length=8, text_length=8)
    for folder, words in ((tmp_path, "no tokenizer"), (llama, "no padding token")):
        with config_error(words):
            load_tokenizer(folder)
    with raises(ValidationError, match="expected `tokenizer`"):
        PretrainSettings(texts=(tmp_path,), out=tmp_path)
    with raises(ValidationError, match="expected at most 1"):
        MaskSettings(masked=0.8, random=0.3)


def model():
    torch.manual_seed(0)
    sizes = json.loads("""{
        "vocab_size": 30, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "head_dim": 4,
        "window_size": 8, "min_window_size": 3, "initializer_range": 0.5
    }""")
    return RanForMaskedLM(ran.RanConfig(**sizes)).eval()


def test_the_loss_is_the_mean_over_the_labelled_tokens():
    lm = model()
    ids = torch.randint(1, 30, (3, 12))
    mask = torch.ones_like(ids)
    mask[1, 9:], mask[2, 4:] = 0, 0
    nowhere = torch.full_like(ids, IGNORED)
    labels = nowhere.clone()
    labels[0, 1], labels[0, 7], labels[1, 8], labels[2, 0] = 3, 4, 5, 9
    with torch.no_grad():
        full, sparse = lm(ids, mask).logits, lm(ids, mask, labels=labels)
        halved = lm(ids, mask, labels=labels, num_items_in_batch=8).loss
    expected = functional.cross_entropy(full.flatten(0, 1), labels.flatten())
    assert_close(sparse.loss, expected)
    assert_close(sparse.logits, full[labels != IGNORED])
    assert_close(halved, expected / 2)
    nothing = lm(ids, mask, labels=nowhere).loss
    nothing.backward()
    assert nothing.item() == 0
