"""Prompts by name, of columns and in a tokenizer's template, and how texts are cut."""

import shutil
from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    AutoTokenizer,
    LlamaTokenizer,
    PreTrainedTokenizerFast,
    Qwen2Config,
)

from aoe_train.data.column_prompts import column_prompts
from aoe_train.model import tokenised as tokens
from aoe_train.model.tokenised import TokenStore
from aoe_train.model.tokenizer import (
    holds_prompt,
    prompt_tokens,
    raw_tokenizer,
    special_tokens_of,
    with_prompt,
)
from aoe_train.objectives.training_rows import ABSENT, Examples
from aoe_train.settings.train_settings import (
    EncoderSettings,
    NamedPrompts,
    Prompt,
    read_prompt,
    written_out,
)
from pairkit import ConfigError
from tests.aoe_train.tiny import bytelevel, wordpiece
from tests.support.shorthand import config_error, parametrize, raises, table

PROMPT = "Summarize sentence {text} in one word:"
TEXTS = ["the cat", "a dog is running!", "x"]


_CHARACTERS = [*'abcdefghijklmnopqrstuvwxyzS!:"▁']
_PIECES = {
    word: number for number, word in enumerate(["<unk>", "<s>", "</s>", *_CHARACTERS])
}


def metaspace():
    """A tokenizer whose class rebuilds its Rust part when loaded."""
    tokenizer = LlamaTokenizer(
        vocab=_PIECES, merges=[], add_bos_token=True, model_max_length=64
    )
    assert tokenizer("a").input_ids[0] == tokenizer.bos_token_id
    return tokenizer


def legacy_sentencepiece():
    """LLaMA 2's old tokenizer.json, whose normaliser inserts the marks of spaces."""
    tokenizer = Tokenizer(models.BPE(_PIECES, merges=[], unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", model_max_length=64
    )


def roberta():
    raw = bytelevel().backend_tokenizer
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    raw.post_processor = processors.RobertaProcessing(
        ("</s>", 1), ("<s>", 0), trim_offsets=True
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token="<s>", eos_token="</s>", model_max_length=64
    )


MAKERS = [wordpiece, bytelevel, metaspace, legacy_sentencepiece, roberta]
SPACED = [wordpiece, metaspace, legacy_sentencepiece, roberta]


@parametrize("maker", SPACED)
@table(
    """
    prompt
    Summarize sentence {text} in one word:
    {text} in one word:
    'query: {text}'
    in {text}" word
    """
)
def test_tokens_equal_those_of_the_prompted_text(maker, prompt):
    plain = maker()
    prompted = with_prompt(plain, prompt)
    for text in TEXTS:
        assert prompted(text).input_ids == plain(prompt.format(text=text)).input_ids
        assert plain(text).input_ids != prompted(text).input_ids


@parametrize("maker", MAKERS)
def test_the_prompt_survives_saving(maker, tmp_path):
    prompted = with_prompt(maker(), PROMPT)
    prompted.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded(TEXTS).input_ids == prompted(TEXTS).input_ids
    assert loaded.model_max_length == prompted.model_max_length
    assert loaded.special_tokens_map == prompted.special_tokens_map
    assert loaded.padding_side == prompted.padding_side


@parametrize("kind", ["BertTokenizer", "Qwen2Tokenizer"])
def test_prompt_survives_tokenizer_classes_that_rebuild(kind, minilm, tmp_path):
    if kind == "BertTokenizer":
        plain = AutoTokenizer.from_pretrained(minilm)
        shutil.copy(minilm / "config.json", tmp_path)
    else:  # which makes all anew but the template, whatever the folder says
        plain = bytelevel()
        Qwen2Config().save_pretrained(tmp_path)
    prompted = with_prompt(plain, PROMPT)
    prompted.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert type(plain if kind == "BertTokenizer" else loaded).__name__ == kind
    assert loaded(TEXTS).input_ids == prompted(TEXTS).input_ids
    assert loaded.model_max_length == plain.model_max_length


@parametrize("maker", MAKERS)
def test_prompt_replaces_the_previous_one(maker):
    twice = with_prompt(with_prompt(maker(), PROMPT), "query: {text}")
    once, none = with_prompt(maker(), "query: {text}"), with_prompt(twice, "")
    assert twice(TEXTS).input_ids == once(TEXTS).input_ids
    assert none(TEXTS).input_ids == maker()(TEXTS).input_ids
    assert [*map(holds_prompt, (maker(), twice, none))] == [False, True, False]


@settings(max_examples=40)
@given(
    st.text("ab {}é", max_size=8),
    st.text("ab {}é", max_size=8),
    st.sampled_from(MAKERS),
)
def test_prompt_tokens_are_a_prefix(words, text, maker):
    raw = raw_tokenizer(maker())
    if "{text}" in words:
        return
    special = special_tokens_of(raw)
    found = prompt_tokens(raw, words, 100)
    assert found.special == special
    ids = raw.encode(words + text, add_special_tokens=False).ids
    assert found.cut(ids, 100) == ([*special.before, *ids, *special.after], False)
    # Of the text no token is left, but each of the prompt's that it also has before a text.
    counts = range(len(found.ids) + 1)
    shared = max(count for count in counts if found.ids[:count] == ids[:count])
    room = len(special.before) + shared + len(special.after)
    cut = [*special.before, *ids[:shared], *special.after]
    assert found.cut(ids, room) == (cut, len(ids) > shared)


def test_too_long_prompt_is_refused():
    words = " ".join(["the"] * 61)
    assert len(with_prompt(wordpiece(), words + " {text}")("").input_ids) == 63
    with config_error("max_length 64 leaves no room"):
        with_prompt(wordpiece(), words + " the {text}")


@parametrize(
    "text, most",
    [
        ("a cat " * 10**6, 10_000),
        # One token, so that the text is read further and further, at last whole.
        ("x" * 6 * 10**6, 6_300_000),
    ],
    ids=["words", "one word"],
)
def test_only_the_start_of_a_long_text_is_read(text, most, monkeypatch):
    read = []
    encode_starts = tokens._encode_starts

    def recorded(raw, texts, needed):
        def encode(texts, **options):
            read.extend(map(len, texts))
            return raw.encode_batch_fast(texts, **options)

        return encode_starts(SimpleNamespace(encode_batch_fast=encode), texts, needed)

    monkeypatch.setattr(tokens, "_encode_starts", recorded)
    assert (TokenStore.build([text], wordpiece(), max_length=256).lengths <= 256).all()
    assert sum(read) < most


@table(
    """
    words, before, after
    '' | '' | ''
    'query: ' | 'query: ' | ''
    '{text}' | '' | ''
    'query: {text}' | 'query: ' | ''
    'Summarize sentence {text} in one word:' | 'Summarize sentence ' | ' in one word:'
    all of {this} and {{that}} | all of {this} and {{that}} | ''
    """,
)
def test_prompt_before_or_around_the_text(words, before, after):
    assert read_prompt(words) == Prompt(before, after)
    assert written_out(words, "{text} {0}") == before + "{text} {0}" + after


@table(
    """
    own, default, query, document, around_all
    {} | None | '' | '' | None
    {'corpus': 'c: '} | None | '' | 'c: ' | None
    {'query': 'q: ', 'corpus': 'c: ', 'passage': 'p: '} | None | 'q: ' | 'p: ' | None
    {'corpus': 'c: ', 'passage': 'p: ', 'document': 'd: '} | None | '' | 'd: ' | None
    # as ST saves one that has none
    {'passage': 'p: ', 'document': ''} | None | '' | 'p: ' | None
    # as in sentence-transformers, not the default
    {'d': 'd: '} | d | '' | '' | None
    # A default prompt with words after the text goes around queries, too.
    {'default': 'say {text}:'} | default | say {text}: | say {text}: | say {text}:
    {'default': 'say {text}:'} | None | '' | '' | None
    {'default': 'say {text}:', 'query': 'q: '} | default | 'q: ' | say {text}: | None
    {'default': 'q: {text}'} | default | '' | '' | None
    """,
)
def test_prompts_of_queries_and_documents(own, default, query, document, around_all):
    prompts = NamedPrompts(own, default)
    assert (prompts.query, prompts.document) == (query, document)
    assert prompts.around_all == around_all
    assert prompts.known["query"] == query
    if len(own) == 2 and default:
        assert prompts.after_text == "default"


PLAIN = EncoderSettings()
NAMED = EncoderSettings(
    prompts={"query": "q: ", "passage": "p: ", "t": "title: "}, default_prompt_name="t"
)


def rows(kind, *numbers):
    texts = [f"text {number}" for number in range(np.max(numbers) + 1)]
    return Examples(texts, np.array(numbers), None, kind)


TRIPLETS = rows("triplet", [0, 1, 2], [1, 0, 3], [0, 2, 4])
NEGATIVES = rows("triplet", [0, 1, 2, 3], [1, 0, 3, ABSENT])
PAIRS = rows("graded", [0, 1], [1, 2])


def prompted(given, examples, encoder=PLAIN):
    """The prompted texts of each row."""
    found = column_prompts(given, encoder, [examples]).applied(examples)
    prompts = found.prompts
    if isinstance(prompts, str):
        prompts = [prompts] * len(found.texts)
    whole = [prompt + text for prompt, text in zip(prompts, found.texts, strict=True)]
    return [
        [None if place == ABSENT else whole[place] for place in row]
        for row in found.rows
    ]


def test_text_in_two_columns_has_two_prompts():
    given = {"anchor": "q: ", "positive": "p: "}
    assert prompted(given, TRIPLETS)[:2] == [
        ["q: text 0", "p: text 1", "text 2"],
        ["q: text 1", "p: text 0", "text 3"],
    ]
    found = column_prompts(given, PLAIN, [TRIPLETS]).applied(TRIPLETS)
    assert len(found.texts) == len({*zip(found.texts, found.prompts, strict=True)}) == 8
    assert_array_equal(found.content_ids[found.rows], TRIPLETS.rows)
    texts, expected = (np.array(each.texts)[each.rows] for each in (found, TRIPLETS))
    assert_array_equal(texts, expected)


@table(
    """
    given, expected
    {'query': 'q: '} | ['q: text 0', 'text 1', 'text 2', 'text 3']
    {'document': 'd: '} | ['text 0', 'd: text 1', 'd: text 2', 'd: text 3']
    {'negative': 'n: '} | ['text 0', 'text 1', 'n: text 2', 'n: text 3']
    {'document': 'd: ', 'negative_2': 'n: ', 'positive': ''} | ['text 0', 'text 1', 'd: text 2', 'n: text 3']
    """,
)
def test_most_specific_column_key_wins(given, expected):
    assert prompted(given, NEGATIVES)[0] == expected
    assert prompted(given, NEGATIVES)[1][3] is None


def test_default_prompt_and_prompts_by_name():
    given = {"anchor": "query", "positive": "passage"}
    expected = ["q: text 0", "p: text 1", "title: text 2"]
    assert prompted(given, TRIPLETS, NAMED)[0] == expected
    pair = ["title: text 0", "title: text 1"]
    assert prompted({"text2": "t"}, PAIRS, NAMED)[0] == pair


@table(
    """
    given, encoder, default
    {text} | NAMED | None
    'query: ' | PLAIN | default
    'q: ' | NAMED | query
    passage | NAMED | passage
    None | NAMED | t
    """,
    NAMED=NAMED,
    PLAIN=PLAIN,
)
def test_prompt_for_all_texts_becomes_the_default(given, encoder, default):
    prompts = encoder.prompts or {"default": "query: "}
    found = column_prompts(given, encoder, [PAIRS])
    assert found.encoder.prompts == prompts
    assert found.encoder.default_prompt_name == default
    expected = "" if default is None else prompts[default]
    assert found.applied(PAIRS).prompts == expected
    assert found.applied(PAIRS).texts == PAIRS.texts


def test_a_dataset_without_prompts_keeps_the_default_of_the_model():
    found = column_prompts("{text}", NAMED, [PAIRS], dataset="pairs")
    assert found.applied(PAIRS).prompts == ""
    assert found.encoder == NAMED


def test_each_prompt_of_a_column_is_stored():
    given = {"anchor": "a: ", "query": "q: ", "document": "d: "}
    found = column_prompts(given, PLAIN, [TRIPLETS, PAIRS])
    assert set(found.encoder.prompts.values()) == set(given.values())
    assert found.encoder.prompts["query"] == "q: "


@table(
    """
    given, told
    '' | prompts: empty
    {'anchor': '{text} {text}'} | once at most
    {'question': 'q: '} | no column 'question'; expected anchor, positive, negative, query (the first)
    {'anchor': 'query'} | the model doesn't define a prompt 'query'; give its words
    """,
)
def test_invalid_column_prompts_are_refused(given, told):
    with raises(ConfigError) as error:
        column_prompts(given, PLAIN, [TRIPLETS, PAIRS])
    assert told in str(error.value)


def test_dev_rows_without_a_prompt_are_refused():
    found, of_queries = (
        column_prompts({column: "q: "}, PLAIN, [TRIPLETS, PAIRS])
        for column in ("anchor", "query")
    )
    with config_error("found anchor, but no prompt for rows of text1, text2"):
        found.applied(PAIRS)
    assert of_queries.applied(PAIRS).content_ids is not None
