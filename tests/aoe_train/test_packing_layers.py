"""The fast layers compute what torch's do."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from aoe_train.model.packing import layers
from aoe_train.model.packing.layers import FastDropout, FastLinear, keep_mask
from aoe_train.model.packing.run import use_fast_layers


def _both(bias: bool) -> tuple[nn.Linear, nn.Linear]:
    torch.manual_seed(0)
    plain, fast = nn.Linear(24, 40, bias=bias), nn.Linear(24, 40, bias=bias)
    fast.load_state_dict(plain.state_dict())
    use_fast_layers(nn.Sequential(fast))
    return plain, fast


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(24,), (7, 24), (2, 7, 24)])
def test_linear_and_its_gradients(bias: bool, shape: tuple[int, ...]) -> None:
    plain, fast = _both(bias)
    assert type(fast) is FastLinear
    x, y = torch.randn(shape, requires_grad=True), None
    y = x.detach().clone().requires_grad_()
    a, b = plain(x), fast(y)
    assert torch.allclose(a, b, atol=1e-5)
    a.square().sum().backward()
    b.square().sum().backward()
    for one, other in [(x, y), *zip(plain.parameters(), fast.parameters(), strict=True)]:
        assert torch.allclose(one.grad, other.grad, atol=1e-4)


@pytest.mark.parametrize("by_torch", [[], [torch.float32]])
def test_gradients_are_the_same_by_onednn_and_by_torch(
    by_torch: list[torch.dtype], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layers, "_by_torch", lambda: by_torch)
    plain, fast = _both(bias=True)
    x = torch.randn(7, 24, requires_grad=True)
    y = x.detach().clone().requires_grad_()
    plain(x).square().sum().backward()
    fast(y).square().sum().backward()
    assert torch.allclose(x.grad, y.grad, atol=1e-4)
    assert torch.allclose(plain.weight.grad, fast.weight.grad, atol=1e-4)


def test_linear_under_autocast_is_as_torchs() -> None:
    plain, fast = _both(bias=True)
    x = torch.randn(5, 24)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        a, b = plain(x), fast(x)
    assert a.dtype == b.dtype == torch.bfloat16
    assert torch.allclose(a.float(), b.float(), atol=0.02)
    b.float().sum().backward()
    assert fast.weight.grad.dtype == torch.float32


def test_a_frozen_weight_gets_no_gradient() -> None:
    _, fast = _both(bias=True)
    fast.weight.requires_grad_(requires_grad=False)
    x = torch.randn(3, 24, requires_grad=True)
    fast(x).sum().backward()
    assert fast.weight.grad is None
    assert x.grad is not None
    assert fast.bias.grad is not None


def test_double_precision_goes_torchs_way() -> None:
    plain, fast = _both(bias=True)
    x = torch.randn(3, 24, dtype=torch.float64)
    assert torch.equal(plain.double()(x), fast.double()(x))


def test_dropout_scales_what_stays_and_its_gradient_alike() -> None:
    layer = nn.Dropout(0.1)
    use_fast_layers(nn.Sequential(layer))
    assert type(layer) is FastDropout
    x = torch.ones(200, 500, requires_grad=True)
    torch.manual_seed(3)
    y = layer(x)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    values = y.detach().unique().tolist()
    assert values == pytest.approx([0, 256 / 230])
    assert abs(y.detach().mean() - 1) < 0.01
    assert torch.equal(layer.eval()(x), x)


def test_dropout_follows_torchs_seed() -> None:
    layer, x = FastDropout(0.5), torch.ones(100)
    torch.manual_seed(1)
    first, second = layer(x), layer(x)
    torch.manual_seed(1)
    assert torch.equal(layer(x), first)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9])
def test_the_share_that_stays_is_stated_truly(p: float) -> None:
    keep, share = keep_mask((1000, 1000), p, 7)
    assert abs(share - (1 - p)) <= 1 / 512
    assert abs(keep.float().mean() - share) < 2e-3
