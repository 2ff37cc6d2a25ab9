"""Packed attention equals attention of each sequence alone, on a processor and by FlashAttention."""

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
from aoe_train.model.packing.flash import flash, has_flash, is_for_flash
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
    parts = _parts(5, heads=2, kv=2)

    def attend(*given: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(5)  # the same mask each time
        return _attend(*given, [2, 3], dropout=0.3)

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


CPU, META = torch.device("cpu"), torch.device("meta")
LENGTHS = [1, 4, 4, 9, 130]
on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="FlashAttention runs on a GPU")


def parts(device: torch.device, kv: int = 4, dim: int = 16) -> list[torch.Tensor]:
    """Query, key and value in bfloat16, (token, head, dim)."""
    torch.manual_seed(0)
    made = [torch.randn(sum(LENGTHS), heads, dim) for heads in (4, kv, kv)]
    return [part.to(device, torch.bfloat16).requires_grad_() for part in made]


@pytest.mark.parametrize(("causal", "window"), [(False, None), (True, None), (True, 3), (False, 3)])
def test_this_torch_takes_what_is_asked_of_it(causal: bool, window: int | None) -> None:
    query, key, value = parts(META, kv=2)
    packed = Sequences(LENGTHS, META)
    out = flash(query, key, value, packed.bounds, packed.longest, 0.25, 0.1, causal, window)
    assert (out.shape, out.dtype) == (query.shape, query.dtype)
    out.sum().backward()
    assert [part.grad is not None and part.grad.shape for part in (query, key, value)] == [
        query.shape,
        key.shape,
        value.shape,
    ]


@pytest.mark.gpu
@on_gpu
def test_a_gpu_has_it() -> None:
    assert has_flash(torch.device("cuda"))


@pytest.mark.gpu
@on_gpu
def test_a_full_gpu_is_not_taken_for_one_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_given: object, **_named: object) -> torch.Tensor:
        raise torch.OutOfMemoryError

    has_flash.cache_clear()
    monkeypatch.setattr("aoe_train.model.packing.flash._kernel", full)
    with pytest.raises(torch.OutOfMemoryError):
        has_flash(torch.device("cuda"))
    monkeypatch.undo()
    assert has_flash(torch.device("cuda"))


def test_numbers_that_it_is_for() -> None:
    def one(dim: int, dtype: torch.dtype) -> torch.Tensor:
        return torch.zeros(3, 2, dim, dtype=dtype)

    assert not any(is_for_flash(one(16, dtype)) for dtype in (torch.float32, torch.float64))
    assert not any(is_for_flash(one(dim, torch.bfloat16)) for dim in (12, 264))
    assert all(is_for_flash(one(dim, torch.bfloat16)) for dim in (16, 64, 256))


def alone(given: list[torch.Tensor], *, causal: bool, window: int | None) -> torch.Tensor:
    """Each sequence by itself, in float64."""
    found = []
    wide = [part.double().transpose(0, 1) for part in given]
    for q, k, v in zip(*(part.split(LENGTHS, 1) for part in wide), strict=True):
        n, groups = q.shape[1], q.shape[0] // k.shape[0]
        distance = torch.arange(n)[:, None] - torch.arange(n)
        seen = (distance >= 0) if causal else torch.ones(n, n, dtype=torch.bool)
        seen = seen & (distance.abs() < window) if window is not None else seen
        k, v = (part.repeat_interleave(groups, 0) for part in (k, v))
        found.append(functional.scaled_dot_product_attention(q, k, v, attn_mask=seen.to(q.device)))
    return torch.cat(found, 1).transpose(0, 1)


@pytest.mark.gpu
@on_gpu
@pytest.mark.parametrize(("causal", "window"), [(False, None), (True, None), (True, 3), (False, 3)])
@pytest.mark.parametrize("kv", [4, 2, 1])
def test_flash_equals_each_sequence_alone(kv: int, causal: bool, window: int | None) -> None:
    device = torch.device("cuda")
    given = parts(device, kv=kv)
    module: Any = SimpleNamespace(is_causal=causal)
    packed = Sequences(LENGTHS, device)
    shaped = [part.transpose(0, 1)[None] for part in given]
    out, _ = attention.packed_attention(module, *shaped, None, packed=packed, sliding_window=window)
    assert "buckets" not in packed.__dict__  # nobody took them in padded groups
    expected = alone(given, causal=causal, window=window)
    assert (out[0].double() - expected).norm() < 5e-3 * expected.norm()
    weights = torch.randn_like(expected)
    found = torch.autograd.grad((out[0] * weights).sum(), given)
    wanted = torch.autograd.grad((expected * weights).sum(), given)
    for one, other in zip(found, wanted, strict=True):
        assert (one.double() - other.double()).norm() < 1e-2 * other.double().norm()
