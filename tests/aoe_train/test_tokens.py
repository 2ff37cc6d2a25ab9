"""The tokens of texts: truncated, with prompts, and cached."""

from itertools import pairwise
from operator import attrgetter
from unittest.mock import Mock

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from aoe_train import Encoder
from aoe_train.model.tokenised import TokenStore
from tests import forked
from tests.aoe_train.tiny import around, load, save_bert, save_llama
from tests.support.shorthand import (
    config_error,
    data_error,
    module_fixture,
    parametrize,
    table,
    values,
)

TEXTS = [
    "the cat is running",
    "a dog",
    "",
    "the man on the road is not in the city",
    "?",
]
KINDS = ["bert", "llama", "template"]
LISTS = st.lists(
    st.text(max_size=20)
    | st.lists(st.sampled_from(["cat", "dog", "x!"])).map(" ".join),
    min_size=1,
)


@module_fixture
def encoders(tmp_path_factory):
    """Models with WordPiece and byte-level tokens, and one with a prompt in its tokenizer."""
    folder = tmp_path_factory.mktemp("tokens")
    save_llama(folder / "llama", layers=1)
    bert = save_bert(folder / "bert", layers=1, length=512)
    load(bert, **around("a {text} or")).save(folder / "template")
    (folder / "template/aoe.json").unlink()
    (folder / "template/config_sentence_transformers.json").unlink()
    return {kind: load(folder / kind) for kind in KINDS}


@module_fixture
def encoder(encoders):
    return encoders["bert"]


def tokens(encoder, texts, prompts="", cache=None, **how):
    """The tokens of texts with these settings."""
    return Encoder(
        encoder.model, encoder.tokenizer, encoder.settings.model_copy(update=how)
    ).tokens(texts, prompts, cache_dir=cache)


def split(flat, lengths):
    return [flat[start:stop] for start, stop in pairwise(np.cumsum([0, *lengths]))]


def ids_of(store, numbers):
    """The ids of each text."""
    batch = store.batch(numbers)
    ids = split(batch["input_ids"].tolist(), batch["lengths"].tolist())
    assert sum(map(len, ids)) == len(batch["input_ids"])
    return ids


@settings(max_examples=6)
@given(LISTS, st.integers(6, 20), st.sampled_from(KINDS), st.data())
def test_truncated_texts_equal_the_tokenizers(encoders, texts, max_length, kind, data):
    tokenizer = encoders[kind].tokenizer
    store = tokens(encoders[kind], texts, max_length=max_length)
    numbers = data.draw(st.lists(st.integers(0, len(texts) - 1)))
    expected = [
        tokenizer(texts[n], truncation=True, max_length=max_length).input_ids
        for n in numbers
    ]
    assert ids_of(store, numbers) == expected
    assert store.lengths[numbers].tolist() == [len(ids) for ids in expected]
    assert store.truncated == sum(
        len(tokenizer(text).input_ids) > max_length for text in texts
    )


def test_a_large_vocabulary_needs_wider_numbers(bert):
    encoder = load(bert)
    encoder.tokenizer.add_tokens([f"q{number}" for number in range(1 << 16)])
    store = tokens(encoder, ["q65535"], max_length=8)
    assert store.ids.dtype == np.int32
    expected = encoder.tokenizer("q65535").input_ids
    assert store.batch([0])["input_ids"].tolist() == expected


def test_texts_without_tokens(encoder, bert, tmp_path):
    assert tokens(encoder, [" ", "\x00"], max_length=8).lengths.tolist() == [2, 2]
    store = tokens(encoder, [], max_length=8)
    assert len(store) == sum(len(part) for part in store.batch([]).values()) == 0
    bare = load(bert)
    bare.tokenizer.backend_tokenizer.post_processor = None
    with data_error(r"text ' ' has no tokens.*\(2 such texts\)"):
        tokens(bare, ["cat", " ", "\t"], max_length=8)
    with data_error("text ' ' has no tokens"):
        tokens(bare, pd.Series(["cat", " "], index=[7, 8]), max_length=8)
    how = {"max_length": 8, "cache_dir": tmp_path}
    allowed = TokenStore.build([" "], bare.tokenizer, empty=True, **how)
    assert allowed.lengths.tolist() == [0]
    with data_error(r"text ' ' has no tokens"):  # although the cache has its store
        TokenStore.build([" "], bare.tokenizer, **how)


@table(
    """
    how, message
    {'max_length': 2} | max_length 2 leaves no room
    {'max_length': 9, 'prompts': ['', '']} | 2 prompts for 5 texts
    """,
)
def test_bad_settings(how, message, encoder):
    prompts = how.pop("prompts", "")
    with config_error(message):
        tokens(encoder, TEXTS, prompts, **how)


def same(one, other):
    parts = attrgetter("ids", "ends", "truncated")
    return all(map(np.array_equal, parts(one), parts(other)))


def test_a_prompt_for_each_text(encoder, tmp_path):
    prompts = ["the man ", "", "a {text} or", "the man ", ""]
    store = tokens(encoder, TEXTS, prompts, max_length=9, cache=tmp_path)
    for number, (words, text) in enumerate(zip(prompts, TEXTS, strict=True)):
        single = tokens(encoder, [text], words, max_length=9)
        assert ids_of(store, [number]) == ids_of(single, [0])
    assert "prompt_lengths" not in store.batch([0])
    prompts[2] = "a"
    how = {"max_length": 9, "include_prompt": False}
    for _ in range(2):  # made, and read again
        store = tokens(encoder, TEXTS, prompts, cache=tmp_path, **how)
        # [CLS] and words: pooling ignores these
        assert store.batch([3, 1, 2])["prompt_lengths"].tolist() == [3, 0, 2]


def test_the_cache_is_reused(encoder, tmp_path):
    first = tokens(encoder, TEXTS, cache=tmp_path)
    seen = []
    again = encoder.tokens(TEXTS, cache_dir=tmp_path, progress=seen.append)
    assert seen == []  # not tokenised again
    assert same(first, again)
    assert same(first, tokens(encoder, TEXTS))
    assert not again.ids.flags.writeable  # a view of the file
    assert len(list(tmp_path.iterdir())) == 1


def test_whatever_changes_the_tokens_changes_the_key(encoders, encoder, tmp_path):
    how = {"max_length": 7, "cache": tmp_path}
    more = [f"a {TEXTS[0]}", *TEXTS[1:]]
    for texts in (TEXTS, TEXTS[::-1], ["ab", "c"], ["a", "bc"], more):
        tokens(encoder, texts, **how)
    tokens(encoders["template"], TEXTS, **how)
    for (more,) in values("""
            {'max_length': 8}
            {'prompts': 'a '}
            {'prompts': ['a ', '', '', '', '']}
            {'prompts': ['', 'a ', '', '', '']}
            """):
        tokens(encoder, TEXTS, **how | more)
    # Transformers keeps this setting.
    encoder.tokenizer(TEXTS, truncation=True, max_length=3, padding=True)
    tokens(encoder, TEXTS, **how)
    assert len(list(tmp_path.iterdir())) == 10


@parametrize("caches", [False, True])
def test_special_tokens_that_only_transformers_stores(bert, tmp_path, caches):
    lengths = []
    for separator in ("[SEP]", "cat"):  # with the same tokenizer.json
        encoder = load(bert)
        encoder.tokenizer.sep_token = separator
        how = {"include_prompt": False, "cache": tmp_path if caches else None}
        lengths += tokens(encoder, TEXTS[:1], "a dog ", **how).prompt_lengths.tolist()
    assert lengths == [3, 4]


def build(model, cache):
    return tokens(load(model), TEXTS, cache=cache)


def test_concurrent_processes_build_the_same_cache(bert, tmp_path):
    with forked.context().Pool(2) as pool:
        stores = pool.starmap(build, [(bert, tmp_path)] * 2)
        pool.close()
        pool.join()  # else a signal ends its processes, and under coverage they may hang
    assert all(same(store, build(bert, None)) for store in stores)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_cache_that_cant_be_written_leaves_nothing(encoder, tmp_path, monkeypatch):
    full = Mock(side_effect=OSError(28, "No space left on device"))
    monkeypatch.setattr(np, "save", full)
    (tmp_path / "file").touch()
    for cache in (tmp_path / "file", tmp_path / "new"):
        with config_error("can't be written"):
            tokens(encoder, TEXTS, cache=cache)
    assert list((tmp_path / "new").iterdir()) == []


@parametrize("text", ["\ud800", "a cat " * 2000 + "\ud800"], ids=["short", "long"])
@parametrize("cached", [True, False])
def test_half_a_surrogate_pair(encoder, tmp_path, cached, text):
    with data_error("contains half a surrogate pair"):
        tokens(encoder, ["a", text], max_length=8, cache=tmp_path if cached else None)


@parametrize("kind", ["bert", "llama"])
@parametrize("max_length", [8, 300])
@parametrize(
    "text",
    [
        "the cat is running " * 5000,
        "x" * 30_000
        + " the cat" * 2000,  # one token of WordPiece, beyond which the text goes on
        "x" * 4000
        + " "
        + "y" * 150
        + " a dog",  # cut within a word that is unknown as a whole
        " " * 20_000 + "a dog" + " " * 20_000,
        " " * 700_000 + "a dog",
        "\N{CJK UNIFIED IDEOGRAPH-5B57}" * 20_000,
    ],
    ids=["words", "long word", "cut word", "blanks", "many blanks", "no blanks"],
)
def test_a_long_text_has_the_first_tokens_of_the_whole(
    text, max_length, kind, encoders
):
    how = {"max_length": max_length}
    store = tokens(encoders[kind], [text, "a dog"], "find: ", **how)
    whole = encoders[kind].tokenizer("find: " + text, truncation=True, **how)
    assert ids_of(store, [0]) == [whole.input_ids]
