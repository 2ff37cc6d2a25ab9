"""Attention over packed sequences, as one function behind transformers' attention interface."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn
from torch.nn import functional

from aoe_train.model.device import uncompiled
from aoe_train.model.packing.flash import flash, is_for_flash
from aoe_train.model.packing.layers import draw_seed, keep_mask

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from aoe_train.model.packing.sequences import Bucket, Sequences


NAME = "aoe_packed"
# How far, as a logarithm, a row's sum of exponentials stays from the largest number: it multiplies values.
_ROOM = 8.0
# Tokens from which on torch's CPU kernel is the faster one where nothing learns; in bfloat16 it never is.
_LONG_IN_FLOAT32 = 96
# What some models' attention does besides: capped scores, sinks, biases by position.
_UNKNOWN = ("softcap", "s_aux", "position_bias")

Attend = Callable[["Tensor", "Tensor", "Tensor", "Sequences", float, float, bool, "int | None"], "Tensor"]


def packed_attention(
    module: nn.Module,
    query: Float[Tensor, "1 head token dim"],
    key: Float[Tensor, "1 kv token dim"],
    value: Float[Tensor, "1 kv token dim"],
    attention_mask: Tensor | None,  # noqa: ARG001 - which token sees which follows from `packed`
    *,
    packed: Sequences,
    scaling: float | None = None,
    dropout: float = 0.0,
    is_causal: bool | None = None,
    sliding_window: int | None = None,
    **more: Any,
) -> tuple[Float[Tensor, "1 token head dim"], None]:
    """Let each sequence attend to itself alone; exact, whatever the bucket it is taken with."""
    strange = [name for name in _UNKNOWN if more.get(name) is not None]
    if strange:
        raise TypeError(f"packed attention has no {strange[0]}")
    causal = bool(getattr(module, "is_causal", False) if is_causal is None else is_causal)
    scaling = 1 / math.sqrt(query.shape[-1]) if scaling is None else scaling
    # Under autocast rotary positions leave queries and keys in float32, while values have autocast's type.
    kind = query.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else value.dtype
    q, k, v = (part[0].transpose(0, 1).to(dtype) for part in (query, key, value))
    numbers = (scaling, dropout, causal, sliding_window)
    if packed.flash and is_for_flash(q):
        return flash(q, k, v, packed.bounds, packed.longest, *numbers)[None], None
    return _by_lengths(q, k, v, packed, *numbers)[None], None


@uncompiled  # it would be compiled anew for each batch's lengths
def _by_lengths(
    query: Float[Tensor, "token head dim"],
    key: Float[Tensor, "token kv dim"],
    value: Float[Tensor, "token kv dim"],
    packed: Sequences,
    scaling: float,
    dropout: float,
    causal: bool,
    window: int | None,
) -> Float[Tensor, "token head dim"]:
    """Sequences of like lengths together, padded to the longest."""
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    attend = cast("Attend", _by_bucket if _is_for_torch(query, packed) else _Attention.apply)
    return attend(query, key, value, packed, scaling, dropout, causal, window)


def _is_for_torch(query: Tensor, packed: Sequences) -> bool:
    """Whether torch's attention is the better one."""
    if query.device.type != "cpu" or query.dtype == torch.float16:  # a sum of exponentials is beyond float16
        return True
    long = packed.lengths[0] >= _LONG_IN_FLOAT32 and query.dtype == torch.float32
    return long and torch.is_inference_mode_enabled()


def _by_bucket(
    query: Float[Tensor, "token head dim"],
    key: Float[Tensor, "token head dim"],
    value: Float[Tensor, "token head dim"],
    packed: Sequences,
    scaling: float,
    dropout: float,
    causal: bool,
    window: int | None,
) -> Float[Tensor, "token head dim"]:
    """With torch's own attention, for accelerators and numbers that `flash` is not for."""
    found = []
    for bucket in packed.buckets:
        q, k, v = (bucket.grid(part).transpose(1, 2) for part in (query, key, value))
        # Padding comes last, where a causal query never looks; without a mask the fastest kernels can do it.
        plain = causal and (window is None or bucket.length <= window)
        bias = None if plain else bucket.bias(causal=causal, window=window, dtype=query.dtype)
        out = functional.scaled_dot_product_attention(
            q, k, v, attn_mask=bias, dropout_p=dropout, is_causal=plain, scale=scaling
        ).transpose(1, 2)
        out = out.reshape(-1, *out.shape[2:])
        found.append(out if bucket.even else out.index_select(0, bucket.slots))
    return torch.cat(found)


class _Attention(torch.autograd.Function):
    """Attention as batched products on a CPU, whose backward pass computes the weights anew.

    Torch's own CPU kernel has no dropout, and is slow on short sequences. Keeping the weights would take
    (length x length) memory per head and layer; only their log-normaliser is kept (Dao et al. 2022,
    FlashAttention, Alg. 4).
    """

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        packed: Sequences,
        scaling: float,
        dropout: float,
        causal: bool,
        window: int | None,
    ) -> Tensor:
        out = query.new_empty(query.shape)
        seed = draw_seed() if dropout else 0
        normalisers = []
        for number, bucket in enumerate(packed.buckets):
            q, k, v = (bucket.heads(part) for part in (query, key, value))
            scores = _scores(bucket, q.mul(scaling), k, causal=causal, window=window)
            weights, total, normaliser = _exponentials(scores)
            normalisers.append(normaliser)
            if dropout:
                keep, share = keep_mask(weights.shape, dropout, seed + number)
                weights.mul_(keep.to(weights.dtype))
                total.mul_(share)
            # Divided afterwards, as there are fewer results than weights.
            bucket.put_heads(torch.bmm(weights, v).div_(total), out)
        ctx.save_for_backward(query, key, value, out, *normalisers)
        ctx.meta = packed, scaling, dropout, causal, window, seed
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        query, key, value, out, *normalisers = ctx.saved_tensors
        packed, scaling, dropout, causal, window, seed = ctx.meta
        gradient = gradients[0].to(query.dtype)
        deltas = (gradient * out).sum(-1, keepdim=True, dtype=_wide(out))
        to_query, to_key, to_value = (
            torch.empty_like(part, memory_format=torch.contiguous_format) for part in (query, key, value)
        )
        for number, (bucket, normaliser) in enumerate(zip(packed.buckets, normalisers, strict=True)):
            q, k, v = (bucket.heads(part) for part in (query, key, value))
            # What padding says of the others' gradients has to be nothing.
            g, delta = (bucket.heads(part, zeros=True) for part in (gradient, deltas))
            q = q.mul(scaling)
            weights = _scores(bucket, q, k, causal=causal, window=window).sub_(normaliser).exp_()
            from_value = torch.bmm(g, v.transpose(1, 2))
            kept = weights
            if dropout:
                drawn, share = keep_mask(weights.shape, dropout, seed + number)
                keep = drawn.to(weights.dtype)
                kept = (weights * keep).mul_(1 / share)
                from_value.mul_(keep).mul_(1 / share)
            bucket.put_heads(torch.bmm(kept.transpose(1, 2), g), to_value)
            from_scores = from_value.sub_(delta).mul_(weights)
            bucket.put_heads(torch.bmm(from_scores, k).mul_(scaling), to_query)
            bucket.put_heads(torch.bmm(from_scores.transpose(1, 2), q), to_key)
        return to_query, to_key, to_value, None, None, None, None, None


def _exponentials(scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Weights that are not divided by their row's sum yet, the sums, and what turns scores into weights.

    Usually scores are so small that they need not be brought down to their row's maximum first, which saves
    two passes that are slow on short rows.
    """
    harmless = math.log(torch.finfo(scores.dtype).max) - math.log(scores.shape[-1]) - _ROOM
    if scores.max() <= harmless:
        weights = scores.exp()
        total = weights.sum(-1, keepdim=True)
        if total.min() >= math.exp(-harmless):
            return weights, total, total.to(_wide(total)).log()
    top = scores.amax(-1, keepdim=True)
    weights = scores.sub_(top).exp_()
    total = weights.sum(-1, keepdim=True)
    return weights, total, total.to(_wide(total)).log().add_(top)


def _wide(values: Tensor) -> torch.dtype:
    """float32, or float64 where that is what there is: sums over a row need it."""
    return torch.promote_types(values.dtype, torch.float32)


def _scores(bucket: Bucket, query: Tensor, key: Tensor, *, causal: bool, window: int | None) -> Tensor:
    scores = torch.bmm(query, key.transpose(1, 2))
    bias = bucket.bias(causal=causal, window=window, dtype=scores.dtype)
    if bias is not None:
        scores.view(bucket.size, -1, *scores.shape[1:]).add_(bias)
    return scores


def register() -> None:
    """Make the function known to transformers under `NAME`.

    It has no function for masks: transformers makes none then, and looks at no positions to make one.
    """
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, packed_attention)


__all__ = ["NAME", "packed_attention", "register"]
