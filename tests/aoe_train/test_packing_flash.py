"""FlashAttention over packed sequences: what it is asked for everywhere, what comes of it on a GPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.nn import functional

from aoe_train.model.packing import attention
from aoe_train.model.packing.flash import flash, has_flash, is_for_flash
from aoe_train.model.packing.sequences import Sequences

CPU, META = torch.device("cpu"), torch.device("meta")
LENGTHS = [1, 4, 4, 9, 130]
on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="FlashAttention runs on a GPU")


def parts(device: torch.device, kv: int = 4, dim: int = 16) -> list[torch.Tensor]:
    """Query, key and value in bfloat16, (token, head, dim)."""
    torch.manual_seed(0)
    made = [torch.randn(sum(LENGTHS), heads, dim) for heads in (4, kv, kv)]
    return [part.to(device, torch.bfloat16).requires_grad_() for part in made]


def test_bounds_are_where_sequences_begin_and_end() -> None:
    bounds = Sequences(LENGTHS, CPU).bounds
    assert bounds.tolist() == [0, 1, 5, 9, 18, 148]
    assert bounds.dtype == torch.int32


@pytest.mark.parametrize(("causal", "window"), [(False, None), (True, None), (True, 3), (False, 3)])
def test_this_torch_takes_what_is_asked_of_it(causal: bool, window: int | None) -> None:
    query, key, value = parts(META, kv=2)
    out = flash(query, key, value, Sequences(LENGTHS, META), 0.25, 0.1, causal, window)
    assert (out.shape, out.dtype) == (query.shape, query.dtype)
    out.sum().backward()
    assert [part.grad is not None and part.grad.shape for part in (query, key, value)] == [
        query.shape,
        key.shape,
        value.shape,
    ]


def test_a_processor_has_none() -> None:
    assert not has_flash(CPU)
    assert not Sequences(LENGTHS, CPU).flash


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
def test_equals_each_sequence_alone(kv: int, causal: bool, window: int | None) -> None:
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


@pytest.mark.gpu
@on_gpu
def test_dropout_keeps_the_mean_and_follows_the_seed() -> None:
    device = torch.device("cuda")
    query, key, value = parts(device)
    packed = Sequences(LENGTHS, device)

    def dropped(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        ones = torch.ones_like(value)
        return flash(query, key, ones, packed, 0.25, 0.25, causal=False, window=None)

    assert torch.equal(dropped(1), dropped(1))
    assert not torch.equal(dropped(1), dropped(2))
    many = torch.stack([dropped(seed).float() for seed in range(200)])
    assert many.std() > 0.01
    assert abs(many.mean() - 1) < 0.02
