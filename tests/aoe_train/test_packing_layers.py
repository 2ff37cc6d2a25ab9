"""Fast layers, buckets of packed sequences, and training only the used rows of an embedding."""

import numpy as np
import torch
from torch import nn
from torch.testing import assert_close
from transformers import AutoModel

from aoe_train.model.packing import layers
from aoe_train.model.packing.layers import (
    FastDropout,
    FastLinear,
    UsedRows,
    train_all_rows,
    train_used_rows,
)
from aoe_train.model.packing.sequences import use_fast_layers
from tests.support.shorthand import approx, parametrize, table


def _both(bias):
    torch.manual_seed(0)
    plain, fast = nn.Linear(24, 40, bias=bias), nn.Linear(24, 40, bias=bias)
    fast.load_state_dict(plain.state_dict())
    use_fast_layers(nn.Sequential(fast))
    return plain, fast


CHOICES = {
    "as here": None,
    "torch": {},
    "onednn": {torch.float32: True},
    "both": {torch.float32: False},
}


@parametrize("types", CHOICES.values(), ids=CHOICES)
@parametrize("bias", [True, False])
@parametrize("shape", [(24,), (7, 24), (2, 7, 24)])
def test_linear_and_its_gradients(bias, shape, types, monkeypatch):
    if types is not None:
        monkeypatch.setattr(layers, "_onednn_types", lambda: types)
    plain, fast = _both(bias)
    assert type(fast) is FastLinear
    x = torch.randn(shape, requires_grad=True)
    a, b = plain(x), fast(x)
    assert_close(a, b, atol=1e-5, rtol=0)
    gradients = [
        torch.autograd.grad(out.square().sum(), [x, *layer.parameters()])
        for out, layer in ((a, plain), (b, fast))
    ]
    assert_close(*gradients, atol=1e-4, rtol=1e-5)


@table(
    """
    capability, intel, bf16, types
    AVX512 | True | True | {'float32': False, 'bfloat16': False}
    AVX512 | True | False | {'float32': False}
    AVX512 | False | True | {'float32': True, 'bfloat16': False}
    AVX2 | False | True | {}
    SVE256 | False | True | {}
    DEFAULT | False | True | {}
    AVX2 | True | False | {}
    """,
)
def test_which_products_are_onednns(capability, intel, bf16, types, monkeypatch):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(layers, "_is_intel", lambda: intel)
    monkeypatch.setattr(layers, "onednn_has_bf16", lambda: bf16)
    expected = {getattr(torch, name): gradients for name, gradients in types.items()}
    assert layers._onednn_types.__wrapped__() == expected


def test_linear_under_autocast_equals_torch():
    plain, fast = _both(bias=True)
    x = torch.randn(5, 24)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        a, b = plain(x), fast(x)
    assert a.dtype == b.dtype == torch.bfloat16
    assert torch.allclose(a.float(), b.float(), atol=0.02)
    b.float().sum().backward()
    assert fast.weight.grad.dtype == torch.float32


def test_a_frozen_weight_gets_no_gradient():
    _, fast = _both(bias=True)
    fast.weight.requires_grad_(requires_grad=False)
    x = torch.randn(3, 24, requires_grad=True)
    fast(x).sum().backward()
    assert fast.weight.grad is None
    assert x.grad is not None
    assert fast.bias.grad is not None


def test_dropout_scales_values_and_gradients():
    layer = nn.Dropout(0.1)
    use_fast_layers(nn.Sequential(layer))
    assert type(layer) is FastDropout
    x = torch.ones(200, 500, requires_grad=True)
    torch.manual_seed(3)
    y = layer(x)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert y.detach().unique().tolist() == approx([0, 256 / 230])
    assert abs(y.detach().mean() - 1) < 0.01
    assert torch.equal(layer.eval()(x), x)


USED = np.array([2, 3, 5, 9, 12])


def _model(folder, **more):
    return AutoModel.from_pretrained(folder, add_pooling_layer=False, **more).eval()


def _trained(folder, rows):
    no_dropout = {"hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0}
    model = _model(folder, **no_dropout).train()
    assert not rows or train_used_rows(model, USED)
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.0)
    generator = torch.Generator().manual_seed(0)
    for _ in range(4):
        ids = torch.from_numpy(USED)[
            torch.randint(len(USED), (2, 6), generator=generator)
        ]
        model(input_ids=ids).last_hidden_state.sin().sum().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
    return model


def test_training_used_rows_gives_the_same_weights(bert):
    all_rows, used_rows = _trained(bert, rows=False), _trained(bert, rows=True)
    assert isinstance(used_rows.get_input_embeddings(), UsedRows)
    ours = used_rows.state_dict()
    for name, weight in all_rows.state_dict().items():
        assert torch.allclose(weight, ours[name], atol=1e-6), name
    train_all_rows(used_rows)
    assert type(used_rows.get_input_embeddings()) is nn.Embedding
    assert torch.equal(
        used_rows.get_input_embeddings().weight,
        ours["embeddings.word_embeddings.weight"],
    )


def test_state_dict_of_the_whole_embedding(bert):
    plain, model = _model(bert), _model(bert)
    train_used_rows(model, USED)
    ids = torch.arange(20)[None]  # other tokens can be read
    assert torch.equal(
        model(input_ids=ids).last_hidden_state, plain(input_ids=ids).last_hidden_state
    )
    with torch.no_grad():
        plain.get_input_embeddings().weight.mul_(2)
    model.load_state_dict(plain.state_dict())
    assert torch.equal(
        model.get_input_embeddings().whole(), plain.get_input_embeddings().weight
    )
    frozen = plain.requires_grad_(requires_grad=False)
    assert not train_used_rows(frozen, USED)
    assert type(frozen.get_input_embeddings()) is nn.Embedding
