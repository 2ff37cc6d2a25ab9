"""Which tokens are a text's own, and that ways which change texts leave a prompt whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from aoe_train import Encoder
from aoe_train._baselines.consert import shuffled
from aoe_train._baselines.own_tokens import OwnTokens
from aoe_train._baselines.tsdae import damaged
from aoe_train._baselines.way import Texts
from pairkit.errors import ConfigError

TEXTS = ["a man is playing the flute", "the cat", "dog"]


def read(encoder: Encoder, prompt: str, texts: list[str] = TEXTS) -> Texts:
    batch = encoder.tokens(texts, prompt).batch(np.arange(len(texts)))
    return Texts(batch["input_ids"], batch["lengths"], batch.get("prompt_lengths"))


@pytest.mark.parametrize("prompt", ["", "the old ", "the old {text} is new", "{text} is"])
def test_a_texts_own_tokens_are_those_it_has_without_a_prompt(prompt: str, bert: Path):
    encoder = Encoder.load(bert, device="cpu")
    batch = read(encoder, prompt)
    found = OwnTokens(encoder, prompt).of(batch)
    for text, tokens, own in zip(TEXTS, batch.sequences(), found.split(batch.lengths.tolist()), strict=True):
        assert tokens[own].tolist() == encoder.tokenizer(text, add_special_tokens=False).input_ids


def test_what_a_text_swallows_of_the_prompt_is_its_own(bert: Path):
    encoder = Encoder.load(bert, device="cpu")
    batch = read(encoder, "the o", ["ld dog"])  # "the old dog": old is one token
    (own,) = OwnTokens(encoder, "the o").of(batch).split(batch.lengths.tolist())
    tokens = encoder.tokenizer.convert_ids_to_tokens(batch.input_ids)
    assert (tokens, own.tolist()) == (
        ["[CLS]", "the", "old", "dog", "[SEP]"],
        [False, False, True, True, False],
    )


def test_a_prompt_stays_whole_and_where_it_is(bert: Path):
    encoder = Encoder.load(bert, device="cpu", include_prompt=False)
    batch = read(encoder, "the old ")
    own = OwnTokens(encoder, "the old ").of(batch)
    torch.manual_seed(0)
    assert batch.prompt_lengths is not None
    for changed in (damaged(batch, 0.9, own), shuffled(batch, own)):
        assert changed.prompt_lengths is batch.prompt_lengths
        for before, after in zip(batch.sequences(), changed.sequences(), strict=True):
            assert after[:3].tolist() == before[:3].tolist()
            assert after[-1] == before[-1]


def test_several_prompts_are_refused(bert: Path):
    with pytest.raises(ConfigError, match="needs one prompt for all, or none"):
        OwnTokens(Encoder.load(bert, device="cpu"), ["a ", "the "])
