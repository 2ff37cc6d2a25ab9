"""Pooling by hand, and packed texts against padded ones for several architectures."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    AutoModel,
    DistilBertConfig,
    DistilBertModel,
    Gemma2Config,
    Gemma2Model,
    MistralConfig,
    MistralModel,
    ModernBertConfig,
    ModernBertModel,
    MPNetConfig,
    MPNetModel,
    RobertaConfig,
    RobertaModel,
)

from aoe_train.model.packing.attention import register
from aoe_train.model.packing.packed_run import can_pack, use_fast_layers
from aoe_train.model.text_model import TextModel, pool

POOLINGS = ["cls", "last", "avg", "max", "cls-avg", "first-last-avg", "weighted-mean"]
TOKENS = torch.tensor([[1.0, 8], [3, 4], [5, 0], [7, 2], [9, 6]])  # a text of two pieces (1 + 2), one of 2


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ("cls", [[2, 6], [7, 2]]),
        ("last", [[3, 4], [9, 6]]),
        ("avg", [[3, 4], [8, 4]]),
        ("max", [[5, 8], [9, 6]]),
        ("cls-avg", [[2.5, 5], [7.5, 3]]),
        ("first-last-avg", [[4.5, 6], [12, 6]]),
        # Indices 1, then 1 and 2; then 1 and 2.
        ("weighted-mean", [[(1 + 3 + 2 * 5) / 4, (8 + 4) / 4], [(7 + 2 * 9) / 3, (2 + 2 * 6) / 3]]),
    ],
)
def test_pooling_by_hand(pooling, expected):
    states = (torch.zeros(5, 2), TOKENS * 2, TOKENS)
    found = pool(states, torch.tensor([1, 2, 2]), torch.tensor([2, 1]), pooling)
    assert torch.allclose(found, torch.tensor(expected, dtype=torch.float32))


def test_weighted_mean_counts_ignored_tokens():
    """Pieces with 2, 0 and 3 ignored tokens: positions 3, then 1 and 2; then 4 and 5."""
    parts = torch.tensor([1, 2, 2]), torch.tensor([2, 1])
    found = pool((TOKENS,), *parts, "weighted-mean", torch.tensor([2, 0, 3]))
    expected = [[(3 + 3 + 2 * 5) / 6, (3 * 8 + 4) / 6], [(4 * 7 + 5 * 9) / 9, (4 * 2 + 5 * 6) / 9]]
    assert torch.allclose(found, torch.tensor(expected))


def _small(kind: Any, config: Any, **more: Any) -> Any:
    torch.manual_seed(0)
    sizes = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    return kind(config(**{**sizes, "intermediate_size": 48, "max_position_embeddings": 80, **more}))


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
    "mistral": lambda: _small(MistralModel, MistralConfig, num_key_value_heads=2, sliding_window=4),
    "mpnet": lambda: _small(MPNetModel, MPNetConfig),
    "distilbert": lambda: DistilBertModel(
        DistilBertConfig(vocab_size=60, dim=32, hidden_dim=48, n_layers=2, n_heads=4)
    ),
}


def _batch(lengths: list[int]) -> tuple[torch.Tensor, np.ndarray, np.ndarray]:
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, 60, (sum(lengths),), generator=generator)
    return ids, np.array(lengths), np.ones(len(lengths), dtype=np.int64)


@pytest.mark.parametrize("name", MODELS)
def test_packed_equals_padded_for_each_architecture(name):
    backbone = MODELS[name]().eval()
    assert can_pack(backbone) == (name != "mpnet")  # which has a position bias of its own
    batch = _batch([9, 3, 14, 3, 7, 2, 5, 5, 8, 4, 6])
    alone, one = TextModel(backbone, "avg", packed=False), np.ones(1, dtype=np.int64)
    parts = batch[0].split(batch[1].tolist())
    expected = torch.cat([alone(part, np.array([len(part)]), one) for part in parts])
    for packed in {False, can_pack(backbone)}:
        torch.testing.assert_close(
            TextModel(backbone, "avg", packed=packed)(*batch), expected, atol=1e-5, rtol=0
        )


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("which", ["bert", "llama"])
def test_packed_equals_padded_for_every_pooling(pooling, which, request):
    backbone = AutoModel.from_pretrained(request.getfixturevalue(which)).eval()
    use_fast_layers(backbone)
    batch = _batch([4, 12, 4, 6])
    packed, padded = (TextModel(backbone, pooling, packed=flag)(*batch) for flag in (True, False))
    assert torch.allclose(packed, padded, atol=1e-5)


@pytest.mark.parametrize("which", ["bert", "llama"])
def test_a_step_under_autocast(which, request):
    backbone = AutoModel.from_pretrained(request.getfixturevalue(which)).train()
    use_fast_layers(backbone)
    register()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        vectors = TextModel(backbone, "avg", packed=True)(*_batch([4, 12, 4, 6]))
    vectors.sin().sum().backward()
    gradient = backbone.get_input_embeddings().weight.grad
    assert gradient.dtype == torch.float32
    assert torch.isfinite(gradient).all()
    assert gradient.abs().sum() > 0


def test_tolerance_in_half_precision(monkeypatch):
    softcapped = _small(Gemma2Model, Gemma2Config, num_key_value_heads=4, head_dim=8).eval()
    assert not can_pack(softcapped)  # a capped attention is run padded
    monkeypatch.setattr("aoe_train.model.packing.packed_run._HALF_TOLERANCE", 0.0)
    assert can_pack(_small(MistralModel, MistralConfig, num_key_value_heads=2).bfloat16().eval())
    assert not can_pack(softcapped.bfloat16())
