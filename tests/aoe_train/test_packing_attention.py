"""Packed attention equals attention of each sequence alone, forwards and backwards."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from aoe_train.model.packing import attention
from aoe_train.model.packing.attention import packed_attention
from aoe_train.model.packing.sequences import Sequences

CPU = torch.device("cpu")


def _attend(q: Any, k: Any, v: Any, lengths: list[int], **options: Any) -> torch.Tensor:
    module: Any = SimpleNamespace(is_causal=options.pop("causal", False))
    out, _ = packed_attention(module, q, k, v, None, packed=Sequences(lengths, CPU), **options)
    return out[0].transpose(0, 1)


def _alone(q: Any, k: Any, v: Any, lengths: list[int], *, causal: bool, window: int | None) -> torch.Tensor:
    found = []
    for a, b, c in zip(*(part[0].split(lengths, 1) for part in (q, k, v)), strict=True):
        n, groups = a.shape[1], a.shape[0] // b.shape[0]
        distance = torch.arange(n)[:, None] - torch.arange(n)
        seen = torch.ones(n, n, dtype=torch.bool)
        seen = seen & (distance >= 0) if causal else seen
        seen = seen & (distance.abs() < window) if window is not None else seen
        repeated = (part.repeat_interleave(groups, 0) for part in (b, c))
        found.append(functional.scaled_dot_product_attention(a, *repeated, attn_mask=seen))
    return torch.cat(found, 1)


def _parts(total: int, heads: int = 4, kv: int = 4, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    torch.manual_seed(total)
    return [torch.randn(1, h, total, 5, dtype=dtype, requires_grad=True) for h in (heads, kv, kv)]


@settings(max_examples=30)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=6).map(sorted),
    st.booleans(),
    st.sampled_from([None, 1, 3]),
    st.sampled_from([1, 2, 4]),
)
def test_equals_each_sequence_alone(lengths: list[int], causal: bool, window: int | None, kv: int) -> None:
    parts = _parts(sum(lengths), kv=kv)
    ours = _attend(*parts, lengths, causal=causal, sliding_window=window)
    theirs = _alone(*parts, lengths, causal=causal, window=window)
    assert torch.allclose(ours, theirs, atol=1e-12)
    weights = torch.randn_like(ours)
    gradients = [torch.autograd.grad((out * weights).sum(), parts) for out in (ours, theirs)]
    for a, b in zip(*gradients, strict=True):
        assert torch.allclose(a, b, atol=1e-12)


def test_gradients_match_finite_differences_under_dropout() -> None:
    parts = _parts(9, heads=2, kv=2)

    def attend(*given: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(5)  # the same mask each time
        return _attend(*given, [2, 3, 4], dropout=0.3)

    assert torch.autograd.gradcheck(attend, parts)


def test_dropout_keeps_the_mean() -> None:
    q, k, v = (torch.zeros(1, 1, 32, 8) for _ in range(3))
    v += 1
    torch.manual_seed(0)
    dropped = torch.stack([_attend(q, k, v, [32], dropout=0.25) for _ in range(50)])
    assert dropped.std() > 0.01
    assert abs(dropped.mean() - 1) < 0.02


@pytest.mark.parametrize("window", [None, 2, 4])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("lengths", [[2, 3, 4], [3, 3, 3]])
def test_the_accelerators_route_is_the_same(lengths: list[int], window: int | None, *, causal: bool) -> None:
    parts = _parts(9, dtype=torch.float32)
    rows = [part[0].transpose(0, 1) for part in parts]
    found = attention._by_bucket(*rows, Sequences(lengths, CPU), 5**-0.5, 0.0, causal, window)
    expected = _alone(*parts, lengths, causal=causal, window=window)
    assert torch.allclose(found.transpose(0, 1), expected, atol=1e-6)
    for mine, theirs in zip(
        torch.autograd.grad(found.sin().sum(), parts),
        torch.autograd.grad(expected.sin().sum(), parts),
        strict=True,
    ):
        assert torch.allclose(mine, theirs, atol=1e-6)


def test_causal_attention_on_an_accelerator_gets_no_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    masks = []
    real = functional.scaled_dot_product_attention

    def attend(*parts: torch.Tensor, attn_mask: torch.Tensor | None, **more: Any) -> torch.Tensor:
        masks.append(attn_mask)
        return real(*parts, attn_mask=attn_mask, **more)

    monkeypatch.setattr(attention.functional, "scaled_dot_product_attention", attend)
    rows = [torch.randn(9, 2, 4) for _ in range(3)]
    for window in (None, 4, 3):
        attention._by_bucket(*rows, Sequences([2, 3, 4], CPU), 1.0, 0.0, True, window)  # noqa: FBT003
    assert [mask is None for mask in masks] == [True, True, False]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_large_scores_stay_finite(dtype: torch.dtype) -> None:
    parts = [part.detach().to(dtype) * 1e4 for part in _parts(7)]
    assert torch.isfinite(_attend(*parts, [3, 4])).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("largest", [5, 30, 60, 75, 85])
def test_scores_near_the_largest_exponential_give_the_softmax(dtype: torch.dtype, largest: int) -> None:
    q, k, v = (part.detach() for part in _parts(64, dtype=torch.float32))
    q = q * largest / (q[0] @ k[0].transpose(1, 2)).amax()
    parts = [part.to(dtype) for part in (q, k, 20 * v)]
    exact = functional.scaled_dot_product_attention(*(part[0].double() for part in parts), scale=1.0)
    assert (_attend(*parts, [64], scaling=1.0) - exact).norm() < 0.02 * exact.norm()


def test_long_float32_texts_are_attended_by_torch_where_nothing_learns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts, lengths = [part.detach() for part in _parts(300, dtype=torch.float32)], [100, 200]
    expected = _attend(*parts, lengths)
    used = []
    by_bucket = attention._by_bucket
    monkeypatch.setattr(attention, "_by_bucket", lambda *given: used.append(1) or by_bucket(*given))
    with torch.no_grad():  # a step's first of two passes has to round as the second
        _attend(*parts, lengths)
    assert not used
    with torch.inference_mode():
        assert torch.allclose(_attend(*parts, lengths), expected, atol=1e-6)
        assert used
        _attend(*parts, [50, 250])
        _attend(*(part.bfloat16() for part in parts), lengths)
    assert len(used) == 1


def test_values_of_another_type_decide() -> None:
    q, k, v = _parts(7, dtype=torch.float32)
    mixed = _attend(q, k, v.detach().bfloat16().requires_grad_(), [3, 4])
    assert mixed.dtype == torch.bfloat16
    mixed.float().sum().backward()
    assert q.grad.dtype == torch.float32
    assert torch.allclose(mixed.float(), _attend(q, k, v, [3, 4]), atol=0.03)


def test_what_it_has_not_is_refused() -> None:
    with pytest.raises(TypeError, match="softcap"):
        _attend(*_parts(7), [3, 4], softcap=50.0)


@pytest.mark.parametrize("shift", [-200.0, 0.0, 200.0])
def test_scores_of_any_size_give_the_softmax(shift: float) -> None:
    scores = torch.randn(3, 4, 5, dtype=torch.float64) + shift
    expected = scores.softmax(-1)
    weights, total, normaliser = attention._exponentials(scores.clone())
    assert torch.allclose(weights / total, expected)
    assert torch.allclose((scores - normaliser).exp(), expected)
