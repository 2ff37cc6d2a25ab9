"""Packed attention equals attention of each sequence, on a CPU and with FlashAttention."""

from itertools import combinations, pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import grad
from torch.nn.functional import scaled_dot_product_attention as attend
from torch.testing import assert_close

from aoe_train.model.packing import attention, sequences
from aoe_train.model.packing.attention import (
    Options,
    flash,
    has_flash,
    packed_attention,
)
from aoe_train.model.packing.sequences import Sequences, best_cuts
from tests.support.shorthand import parametrize, table

CPU, META = torch.device("cpu"), torch.device("meta")
on_gpu = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="FlashAttention runs on a GPU"
)


def _attend(q, k, v, lengths, **options):
    module = SimpleNamespace(is_causal=options.pop("causal", False))
    packed = Sequences(lengths, q.device)
    out, _ = packed_attention(module, q, k, v, None, packed=packed, **options)
    # Nobody took them in padded groups.
    assert q.device == CPU or "buckets" not in packed.__dict__
    return out[0].transpose(0, 1)


def _alone(q, k, v, lengths, causal, window):
    """Each sequence by itself."""
    found = []
    for a, b, c in zip(*(part[0].split(lengths, 1) for part in (q, k, v)), strict=True):
        n, groups = a.shape[1], a.shape[0] // b.shape[0]
        place = torch.arange(n, device=q.device)
        distance = place[:, None] - place
        seen = distance.abs() < (n if window is None else window)
        if causal:
            seen &= distance >= 0
        repeated = (part.repeat_interleave(groups, 0) for part in (b, c))
        found.append(attend(a, *repeated, attn_mask=seen))
    return torch.cat(found, 1)


@settings(max_examples=50)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=8).map(sorted),
    st.sampled_from([0, 30, 200, 10**6]),
)
def test_buckets_have_the_lowest_cost(lengths, start_cost):
    def cost(ends):
        return sum(
            start_cost + (end - start) * lengths[end - 1] ** 2
            for start, end in pairwise([0, *ends])
        )

    steps = [end for end in range(1, len(lengths)) if lengths[end - 1] != lengths[end]]
    divisions = [
        [*cuts, len(lengths)]
        for count in range(len(steps) + 1)
        for cuts in combinations(steps, count)
    ]
    assert cost(best_cuts(lengths, start_cost, 10**9)) == min(map(cost, divisions))
    ends = best_cuts(lengths, start_cost, 100)
    sizes = np.diff([0, *ends])
    assert (sizes > 0).all()
    assert sizes.sum() == len(lengths)
    assert all(
        size == 1 or size * lengths[end - 1] ** 2 <= 100
        for size, end in zip(sizes, ends, strict=True)
    )


def test_a_bucket_may_reach_the_limit():
    assert best_cuts([4, 5, 5, 5], 10**6, 100) == [4]  # 4 x 25
    assert best_cuts([4, 4, 5, 5, 5], 10**6, 100) == [2, 5]


def _parts(total, heads=4, kv=4, dim=5, **kind):
    torch.manual_seed(total)
    made = [torch.randn(1, h, total, dim, dtype=torch.float64) for h in (heads, kv, kv)]
    return [part.to(**kind).requires_grad_() for part in made]


@settings(max_examples=30)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=6).map(sorted),
    st.booleans(),
    st.sampled_from([None, 1, 3]),
    st.sampled_from([1, 2, 4]),
    # A bucket for each length, several buckets, one bucket.
    st.sampled_from([0, 30, 6_000]),
)
def test_equals_each_sequence_alone(lengths, causal, window, kv, bucket_cost):
    parts = _parts(sum(lengths), kv=kv)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequences, "_BUCKET_COST", bucket_cost)
        ours = _attend(*parts, lengths, causal=causal, sliding_window=window)
    theirs = _alone(*parts, lengths, causal=causal, window=window)
    assert_close(ours, theirs, atol=1e-12, rtol=0)
    weights = torch.randn_like(ours)
    gradients = [grad((out * weights).sum(), parts) for out in (ours, theirs)]
    assert_close(*gradients, atol=1e-12, rtol=0)


def test_gradients_match_finite_differences_under_dropout():
    parts = _parts(5, heads=2, kv=2)

    def masked(*given):
        torch.manual_seed(5)  # the same mask each time
        return _attend(*given, [2, 3], dropout=0.3)

    assert torch.autograd.gradcheck(masked, parts)


@parametrize("window", [None, 2, 4])
@parametrize("causal", [True, False])
@parametrize("lengths", [[2, 3, 4], [3, 3, 3]])
def test_attention_on_accelerators(lengths, window, causal):
    parts = _parts(9, dtype=torch.float32)
    rows = [part[0].transpose(0, 1) for part in parts]
    options = Options(5**-0.5, 0.0, causal, window)
    found = attention._by_bucket(*rows, Sequences(lengths, CPU), options)
    expected = _alone(*parts, lengths, causal=causal, window=window)
    assert_close(found.transpose(0, 1), expected, atol=1e-6, rtol=0)
    mine, theirs = (grad(out.sin().sum(), parts) for out in (found, expected))
    assert_close(mine, theirs, atol=1e-6, rtol=0)


@parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@parametrize("largest", [5, 30, 60, 75, 85])
def test_scores_near_the_largest_exponential_give_the_softmax(dtype, largest):
    q, k, v = (part.detach() for part in _parts(64, dtype=torch.float32))
    q = q * largest / (q[0] @ k[0].transpose(1, 2)).amax()
    parts = [part.to(dtype) for part in (q, k, 20 * v)]
    exact = attend(*(part[0].double() for part in parts), scale=1.0)
    assert (_attend(*parts, [64], scaling=1.0) - exact).norm() < 0.02 * exact.norm()


def test_torch_attends_long_float32_texts_in_inference(monkeypatch):
    parts = [part.detach() for part in _parts(300, dtype=torch.float32)]
    lengths, used = [100, 200], []
    expected = _attend(*parts, lengths)
    by_bucket = attention._by_bucket
    monkeypatch.setattr(
        attention, "_by_bucket", lambda *given: used.append(1) or by_bucket(*given)
    )
    with torch.no_grad():  # a step's first of two passes has to round as the second
        _attend(*parts, lengths)
    assert not used
    with torch.inference_mode():
        assert torch.allclose(_attend(*parts, lengths), expected, atol=1e-6)
        assert used
        _attend(*parts, [50, 250])
        _attend(*(part.bfloat16() for part in parts), lengths)
    assert len(used) == 1


LENGTHS = [1, 4, 4, 9, 130]
masks = table("""
    causal, window
    False | None
    True | None
    True | 3
    False | 3
""")


@masks
def test_torch_accepts_the_arguments_of_flash(causal, window):
    parts = _parts(sum(LENGTHS), kv=2, dim=16, dtype=torch.bfloat16, device=META)
    rows, packed = [part[0].transpose(0, 1) for part in parts], Sequences(LENGTHS, META)
    out = flash(
        *rows, packed.bounds, packed.longest, Options(0.25, 0.1, causal, window)
    )
    assert (out.shape, out.dtype) == (rows[0].shape, torch.bfloat16)
    gradients = grad(out.sum(), parts)
    assert [one.shape for one in gradients] == [part.shape for part in parts]


@pytest.mark.gpu
@on_gpu
def test_out_of_memory_is_not_a_missing_kernel(monkeypatch):
    def full(*_given, **_named):
        raise torch.OutOfMemoryError

    has_flash.cache_clear()
    monkeypatch.setattr("aoe_train.model.packing.attention.flash", full)
    gpu = torch.device("cuda")
    with pytest.raises(torch.OutOfMemoryError):
        has_flash(gpu)
    monkeypatch.undo()
    assert has_flash(gpu)


@pytest.mark.gpu
@on_gpu
@masks
@parametrize("kv", [4, 2, 1])
def test_flash_equals_each_sequence_alone(kv, causal, window):
    given = _parts(sum(LENGTHS), kv=kv, dim=16, dtype=torch.bfloat16, device="cuda")
    exact = (part.double() for part in given)
    out = _attend(*given, LENGTHS, causal=causal, sliding_window=window).double()
    expected = _alone(*exact, LENGTHS, causal=causal, window=window)
    assert (out - expected).norm() < 5e-3 * expected.norm()
    weights = torch.randn_like(expected)
    found, wanted = (grad((each * weights).sum(), given) for each in (out, expected))
    for one, other in zip(found, wanted, strict=True):
        assert (one.double() - other.double()).norm() < 1e-2 * other.double().norm()
