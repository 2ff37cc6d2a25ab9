"""Pooling by hand, and packed texts against padded ones for several architectures."""

import threading
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn
from torch.testing import assert_close
from transformers import (
    BloomConfig,
    BloomModel,
    DistilBertConfig,
    DistilBertModel,
    MistralConfig,
    MistralModel,
    ModernBertConfig,
    ModernBertModel,
    MPNetConfig,
    MPNetModel,
    RobertaConfig,
    RobertaModel,
    XLNetConfig,
    XLNetModel,
)

from aoe_train.model.backbones.changes import (
    after_layers,
    apply_settings,
    count_layers,
    keep_layers,
)
from aoe_train.model.batch_runner import BatchRunner, batches
from aoe_train.model.packing.sequences import can_pack
from aoe_train.model.text_model import TextModel, pool
from aoe_train.model.tokenised import TokenStore
from aoe_train.settings.train_settings import EncoderSettings
from tests.aoe_train.test_no_waiting import SIZES
from tests.aoe_train.tiny import load, seeded
from tests.support.shorthand import config_error, parametrize, raises, table, values

# A text of three tokens, one of two.
TOKENS = torch.tensor(
    values("""
    1.0 | 8
    3 | 4
    5 | 0
    7 | 2
    9 | 6
    """)
)


@table(
    """
    pooling, expected
    cls | [[1, 8], [7, 2]]
    last | [[5, 0], [9, 6]]
    avg | [[3, 4], [8, 4]]
    max | [[5, 8], [9, 6]]
    cls-avg | [[2, 6], [7.5, 3]]
    first-last-avg | [[4.5, 6], [12, 6]]
    # (1 + 2 * 3 + 3 * 5) / 6 and (8 + 2 * 4) / 6; then (7 + 2 * 9) / 3 and (2 + 2 * 6) / 3.
    weighted-mean | [[3.6666667, 2.6666667], [8.3333333, 4.6666667]]
    """,
)
def test_pooling_by_hand(pooling, expected):
    states = (torch.zeros(5, 2), TOKENS * 2, TOKENS)
    found = pool(states, torch.tensor([3, 2]), pooling)
    assert torch.allclose(found, torch.tensor(expected, dtype=torch.float32))
    with raises(ValueError, match="unknown pooling"):
        pool(states, torch.tensor([3, 2]), f"{pooling}s")


def test_weighted_mean_counts_ignored_tokens():
    """Texts with 2 and 3 ignored tokens: positions 3, 4 and 5; then 4 and 5."""
    lengths = torch.tensor([3, 2])
    found = pool((TOKENS,), lengths, "weighted-mean", torch.tensor([2, 3]))
    # Such as 3 * 1 + 4 * 3 + 5 * 5, divided by 3 + 4 + 5.
    expected = [[40 / 12, 40 / 12], [73 / 9, 38 / 9]]
    assert torch.allclose(found, torch.tensor(expected))


def _small(kind, config, **more):
    torch.manual_seed(0)
    sizes = SIZES | {"vocab_size": 60, "max_position_embeddings": 80}
    return kind(config(**sizes, **more))


MODELS = {
    "roberta": lambda: _small(RobertaModel, RobertaConfig),
    "modernbert": lambda: _small(
        ModernBertModel,
        ModernBertConfig,
        local_attention=4,
        global_attn_every_n_layers=2,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        cls_token_id=1,
        sep_token_id=2,
    ),
    "mistral": lambda: _small(
        MistralModel, MistralConfig, num_key_value_heads=2, sliding_window=4
    ),
    "mpnet": lambda: _small(MPNetModel, MPNetConfig),
    "bloom": lambda: _small(BloomModel, BloomConfig),
    "xlnet": lambda: XLNetModel(
        XLNetConfig(vocab_size=60, d_model=32, n_layer=2, n_head=4, d_inner=48)
    ),
    "distilbert": lambda: _small(DistilBertModel, DistilBertConfig),
}


def _batch(lengths):
    ids = torch.randint(5, 60, (sum(lengths),), generator=seeded(1))
    return ids, np.array(lengths)


@parametrize("name", MODELS)
def test_packed_equals_padded_for_each_architecture(name):
    backbone = MODELS[name]().eval()
    # They have position biases of their own.
    assert can_pack(backbone) == (name not in ("mpnet", "bloom", "xlnet"))
    settings = apply_settings(EncoderSettings(), backbone)
    assert (settings.pooling == "last") == (name in ("mistral", "bloom"))
    longest = settings.max_length or 0
    batch = _batch([9, 3, 14, 3, 7, 2, 5, 5, 8, min(longest, 80)])
    alone = TextModel(backbone, "avg", packed=False)
    parts = batch[0].split(batch[1].tolist())
    expected = torch.cat([alone(part, np.array([len(part)])) for part in parts])
    for packed in {False, can_pack(backbone)}:
        found = TextModel(backbone, "avg", packed=packed)(*batch)
        assert_close(found, expected, atol=1e-5, rtol=0)


@parametrize("name", ["modernbert", "mistral", "distilbert", "roberta"])
def test_the_final_norm_is_found(name):
    backbone = MODELS[name]()
    norm = after_layers(backbone)
    assert (norm is None) is (name in ("distilbert", "roberta"))
    ids = torch.arange(5, 12)[None]
    hidden = backbone(input_ids=ids, output_hidden_states=True).hidden_states
    keep_layers(backbone, 1)
    cut = backbone.eval()(input_ids=ids).last_hidden_state
    if name in ("modernbert", "mistral"):  # the others have dropout
        assert torch.allclose(norm(hidden[1]), cut, atol=1e-5)


def test_backbones_that_cannot_be_cut():
    backbone = MODELS["mistral"]()
    backbone.norm = nn.Sequential(backbone.norm, nn.Tanh())
    with config_error("its last layer is followed by more than a norm"):
        after_layers(backbone)
    backbone = MODELS["roberta"]()
    backbone.config.num_hidden_layers = 7
    with config_error("has no single list of layers"):
        count_layers(backbone)


# Texts in batches


def test_batches_keep_the_budget():
    lengths = np.array([3, 50, 4, 4, 5, 5])
    found = [part.tolist() for part in batches(lengths, 10)]
    assert sorted(number for part in found for number in part) == list(range(6))
    assert all(len(part) == 1 or lengths[part].sum() <= 10 for part in found)
    assert found[0] == [1]


def ahead(monkeypatch, fails=None):
    """Tokenise while the model runs, as on a GPU; returns the events, and `fails` at the fourth slice."""
    events = []
    build, forward = TokenStore.build, TextModel.forward

    def tokenised(*args, **options):
        if fails is not None and events.count("tokens") == 3:
            raise fails
        events.append("tokens")
        return build(*args, **options)

    def computed(*args):
        events.append("vectors")
        return forward(*args)

    monkeypatch.setattr(BatchRunner, "_tokenises_ahead", property(lambda _: True))
    monkeypatch.setattr(TokenStore, "build", tokenised)
    monkeypatch.setattr(TextModel, "forward", computed)
    return events


LONG_AND_SHORT = [f"{'the dog ' * (number % 7)}{number}" for number in range(80)]


def test_texts_are_tokenised_while_the_model_runs(bert, monkeypatch):
    encoder = load(bert)
    expected = {
        prompt: encoder.encode(LONG_AND_SHORT, prompt=prompt)
        for prompt in ("", "the {text} is:")
    }
    each = ["the {text} is:"] * 80
    by_text = encoder.encode(LONG_AND_SHORT, prompt=each)
    events = ahead(monkeypatch)
    for prompt, vectors in expected.items():
        events.clear()
        found = encoder.encode(LONG_AND_SHORT, prompt=prompt, batch_tokens=60)
        assert_allclose(found, vectors, 0, 1e-5)
        assert events.count("tokens") > 6
        assert events.index("vectors") < len(events) - events[::-1].index("tokens")
        waiting = [
            events[:at].count("tokens") - events[:at].count("vectors")
            for at in range(len(events))
        ]
        assert max(waiting) <= 4  # one in use, three ahead
    assert_array_equal(encoder.encode(LONG_AND_SHORT), expected[""])  # of one batch
    assert_array_equal(encoder.encode(LONG_AND_SHORT, prompt=each), by_text)
    assert encoder.encode([]).shape == (0, 32)


@parametrize("error", [KeyboardInterrupt(), ValueError("the fourth")])
@parametrize("where", ["tokens", "vectors"])
def test_errors_of_both_threads_end_encoding(error, where, bert, monkeypatch):
    encoder, threads = load(bert), threading.active_count()
    ahead(monkeypatch, error if where == "tokens" else None)
    if where == "vectors":
        monkeypatch.setattr(TextModel, "forward", Mock(side_effect=error))
    with pytest.raises(type(error)) as caught:
        encoder.encode(LONG_AND_SHORT, batch_tokens=60)
    assert caught.value is error
    assert threading.active_count() == threads
