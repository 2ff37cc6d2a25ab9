"""PromptBERT: the vector of [MASK], what a template alone says, and the loss against transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from aoe_train import Encoder
from aoe_train._baselines.promptbert import PromptBert
from aoe_train._baselines.way import Rows, Texts, TrainedOn
from aoe_train._objectives.ways import WAYS
from pairkit.errors import ConfigError

GIVEN: dict[str, Any] = dict(WAYS["promptbert"].encoder)
(FIRST,) = GIVEN["prompts"].values()
SECOND = 'This sentence : "{text}" means [MASK].'
TEXTS = ["the [MASK] cat", "a man", "a dog and a bird", "dog dog"]


def of_mask(folder: Path, words: str, text: str | None, like: str = "") -> torch.Tensor:
    """By transformers alone: of [MASK] behind a text, or where the text is left out, with its positions."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()
    before, after = words.split("{text}")
    count = len(tokenizer(like, add_special_tokens=False).input_ids)
    lead = [tokenizer.cls_token_id, *tokenizer(before, add_special_tokens=False).input_ids]
    own = tokenizer(text or "", add_special_tokens=False).input_ids
    end = [*tokenizer(after, add_special_tokens=False).input_ids, tokenizer.sep_token_id]
    positions = torch.arange(len(lead) + len(own) + len(end))
    if text is None:
        positions[len(lead) :] += count
    ids = torch.tensor([[*lead, *own, *end]])
    place = max(place for place, token in enumerate(ids[0].tolist()) if token == tokenizer.mask_token_id)
    with torch.no_grad():
        return model(input_ids=ids, position_ids=positions[None]).last_hidden_state[0, place]


@pytest.mark.parametrize("packing", [True, False])
def test_a_vector_is_that_of_the_prompts_mask(packing: bool, bert: Path, tmp_path: Path):
    encoder = Encoder.load(bert, device="cpu", packing=packing, **GIVEN)
    expected = torch.stack([of_mask(bert, FIRST, text) for text in TEXTS])
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)
    encoder.save(tmp_path)
    loaded = Encoder.load(tmp_path, device="cpu", inference_only=True)
    assert loaded.settings.pooling == "mask"
    np.testing.assert_allclose(loaded.encode(TEXTS), expected, atol=1e-5)


def test_sentence_transformers_reads_it_by_our_module(bert: Path, tmp_path: Path):
    from sentence_transformers import SentenceTransformer

    encoder = Encoder.load(bert, device="cpu", **GIVEN)
    encoder.save(tmp_path)
    theirs = SentenceTransformer(str(tmp_path), trust_remote_code=True, device="cpu")
    np.testing.assert_allclose(theirs.encode(TEXTS), encoder.encode(TEXTS), atol=1e-5)


@pytest.mark.parametrize("packing", [True, False])
def test_the_loss_is_that_of_vectors_less_what_their_templates_say(packing: bool, bert: Path):
    encoder = Encoder.load(bert, device="cpu", packing=packing, **GIVEN)
    texts = TEXTS[1:]  # of 2, 5 and 2 tokens
    batch = encoder.tokens(texts, FIRST).batch(np.arange(3))
    way = PromptBert(encoder, TrainedOn(prompts=FIRST)).eval()
    one, other = (
        torch.stack([of_mask(bert, words, text) - of_mask(bert, words, None, text) for text in texts])
        for words in (FIRST, SECOND)
    )
    views = [torch.nn.functional.normalize(torch.tanh(way.layer[0](part)), dim=1) for part in (one, other)]
    expected = -torch.log_softmax(views[0] @ views[1].T / 0.05, dim=1).diagonal().mean()
    packed = Texts(batch["input_ids"], batch["lengths"])
    found = way(encoder.model, packed, torch.arange(3), Rows(torch.arange(3)[:, None], None))["loss"]
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5)
    found.backward()
    assert encoder.model.backbone.embeddings.word_embeddings.weight.grad is not None


def test_prompts_without_a_mask_behind_the_text_are_refused(bert: Path, llama: Path):
    encoder = Encoder.load(bert, device="cpu", **GIVEN)
    for words in ("", "[MASK]: ", "[MASK] means {text}.", "This {text} means"):
        with pytest.raises(ConfigError, match=r"pooling mask: expected a prompt with \[MASK\] behind"):
            encoder.encode(TEXTS, prompt=words)
    with pytest.raises(ConfigError, match=r"this tokenizer has no \[MASK\]"):
        Encoder.load(llama, device="cpu", **GIVEN)
    with pytest.raises(ConfigError, match="one prompt for all texts"):
        PromptBert(encoder, TrainedOn(prompts=[FIRST, SECOND]))
    with pytest.raises(ConfigError, match="expected the pooling mask"):
        PromptBert(Encoder.load(bert, device="cpu"), TrainedOn(prompts=FIRST))


def test_a_graph_can_not_hold_it(bert: Path, tmp_path: Path):
    from aoe_train._export.onnx import write_onnx

    encoder = Encoder.load(bert, device="cpu", **GIVEN)
    encoder.save(tmp_path / "m")
    with pytest.raises(ConfigError, match=r"can't be a graph: its vectors are those of \[MASK\]"):
        write_onnx(tmp_path / "onnx", tmp_path / "m", encoder.settings, 32)
