"""Prompts in a tokenizer's template, and how texts are cut."""

import shutil
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import AutoTokenizer, LlamaTokenizer, PreTrainedTokenizerFast, Qwen2Config

from aoe_train.model.tokens import tokenised as tokens
from aoe_train.model.tokens.special_tokens import (
    holds_prompt,
    prompt_tokens,
    raw_tokenizer,
    special_tokens_of,
    with_prompt,
)
from aoe_train.model.tokens.tokenised import TokenStore, windows
from pairkit import ConfigError
from tests.aoe_train.tiny import bytelevel, wordpiece

PROMPT = "Summarize sentence {text} in one word:"
TEXTS = ["the cat", "a dog is running!", "x"]


def _pieces() -> dict[str, int]:
    characters = [*'abcdefghijklmnopqrstuvwxyzS!:"▁']
    return {word: number for number, word in enumerate(["<unk>", "<s>", "</s>", *characters])}


def metaspace() -> PreTrainedTokenizerFast:
    """A tokenizer whose class rebuilds its Rust part when loaded."""
    tokenizer = LlamaTokenizer(vocab=_pieces(), merges=[], add_bos_token=True, model_max_length=64)
    assert tokenizer("a").input_ids[0] == tokenizer.bos_token_id
    return tokenizer


def legacy_sentencepiece() -> PreTrainedTokenizerFast:
    """LLaMA 2's old tokenizer.json, whose normaliser inserts the marks of spaces."""
    tokenizer = Tokenizer(models.BPE(_pieces(), merges=[], unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", model_max_length=64)


def roberta() -> PreTrainedTokenizerFast:
    raw = bytelevel().backend_tokenizer
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    raw.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0), trim_offsets=True)
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token="<s>", eos_token="</s>", model_max_length=64
    )


MAKERS = [wordpiece, bytelevel, metaspace, legacy_sentencepiece, roberta]
SPACED = [wordpiece, metaspace, legacy_sentencepiece, roberta]


@pytest.mark.parametrize("maker", SPACED)
@pytest.mark.parametrize("prompt", [PROMPT, "{text} in one word:", "query: {text}", 'in {text}" word'])
def test_tokens_equal_those_of_the_prompted_text(maker, prompt):
    plain = maker()
    prompted = with_prompt(plain, prompt)
    for text in TEXTS:
        assert prompted(text).input_ids == plain(prompt.format(text=text)).input_ids
        assert plain(text).input_ids != prompted(text).input_ids


@pytest.mark.parametrize("maker", MAKERS)
def test_truncation_keeps_the_prompt(maker):
    prompted = with_prompt(maker(), PROMPT)
    before, after = special_tokens_of(raw_tokenizer(prompted))
    room = len(before) + len(after) + 2
    ids = prompted("the cat is on the road " * 9, truncation=True, max_length=room).input_ids
    assert len(ids) == room
    assert (ids[: len(before)], ids[len(ids) - len(after) :]) == (before, after)


@pytest.mark.parametrize("maker", MAKERS)
def test_the_prompt_survives_saving(maker, tmp_path):
    prompted = with_prompt(maker(), PROMPT)
    prompted.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded(TEXTS).input_ids == prompted(TEXTS).input_ids
    assert loaded.model_max_length == prompted.model_max_length
    assert loaded.special_tokens_map == prompted.special_tokens_map
    assert loaded.padding_side == prompted.padding_side


@pytest.mark.parametrize("kind", ["BertTokenizer", "Qwen2Tokenizer"])
def test_prompt_survives_tokenizer_classes_that_rebuild(kind, minilm, tmp_path):
    if kind == "BertTokenizer":
        plain = AutoTokenizer.from_pretrained(minilm)
        shutil.copy(minilm / "config.json", tmp_path)
        expected = plain([PROMPT.format(text=text) for text in TEXTS]).input_ids
    else:  # which makes all anew but the template, whatever the folder says
        plain = bytelevel()
        Qwen2Config().save_pretrained(tmp_path)
        expected = with_prompt(plain, PROMPT)(TEXTS).input_ids
    with_prompt(plain, PROMPT).save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert type(plain if kind == "BertTokenizer" else loaded).__name__ == kind
    assert loaded(TEXTS).input_ids == expected
    assert loaded.model_max_length == plain.model_max_length


@pytest.mark.parametrize("maker", MAKERS)
def test_prompt_replaces_the_previous_one(maker):
    twice = with_prompt(with_prompt(maker(), PROMPT), "query: {text}")
    assert twice(TEXTS).input_ids == with_prompt(maker(), "query: {text}")(TEXTS).input_ids
    assert with_prompt(twice, "")(TEXTS).input_ids == maker()(TEXTS).input_ids
    assert [holds_prompt(one) for one in (maker(), twice, with_prompt(twice, ""))] == [False, True, False]


@settings(max_examples=40)
@given(st.text("ab {}é", max_size=8), st.text("ab {}é", max_size=8), st.sampled_from(MAKERS))
def test_prompt_tokens_are_a_prefix(words, text, maker):
    raw = raw_tokenizer(maker())
    if "{text}" in words:
        return
    found = prompt_tokens(raw, words)
    joined = raw.encode(words + text, add_special_tokens=False).ids
    lead = found.shared(joined)
    assert joined[:lead] == found.ids[:lead]
    assert lead in (len(found.ids), len(joined)) or joined[lead] != found.ids[lead]
    assert found.special == special_tokens_of(raw)


def test_too_long_prompt_is_refused():
    words = " ".join(["the"] * 61)
    assert len(with_prompt(wordpiece(), words + " {text}")("").input_ids) == 63
    with pytest.raises(ConfigError, match="max_length 64 leaves no room"):
        with_prompt(wordpiece(), words + " the {text}")


@pytest.mark.parametrize(("text", "most"), [("a cat " * 10**6, 10_000), ("x" * 6 * 10**6, 700_000)])
def test_only_the_start_of_a_long_text_is_read(text, most, monkeypatch):
    read, encode = [], tokens._encode
    monkeypatch.setattr(
        tokens, "_encode", lambda raw, texts: read.extend(map(len, texts)) or encode(raw, texts)
    )
    store = TokenStore.build([text], wordpiece(), max_length=256)
    assert (store.lengths <= 256).all()
    assert sum(read) < most


@given(st.integers(1, 300), st.integers(1, 40), st.data())
def test_windows_are_even_and_as_few_as_possible(length, room, data):
    overlap = data.draw(st.integers(0, room - 1))
    spans = windows(length, room, overlap)
    sizes = [stop - start for start, stop in spans]
    assert spans[0][0] == 0
    assert spans[-1][1] == length
    assert max(sizes) <= room
    assert max(sizes) - min(sizes) <= 1
    assert all(before[1] - after[0] == overlap for before, after in pairwise(spans))
    fewer = len(spans) - 1
    assert fewer == 0 or fewer * room - (fewer - 1) * overlap < length
