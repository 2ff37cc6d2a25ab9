"""Attention over packed sequences, registered with transformers."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from aoe_train.model.device import uncompiled
from aoe_train.model.packing.layers import draw_seed, keep_mask

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from aoe_train.model.packing.sequences import Bucket, Sequences

    Heads = Float[Tensor, "token head dim"]
    KeyHeads = Float[Tensor, "token kv dim"]

NAME = "aoe_packed"
# Distance, as a logarithm, of a row's sum of exponentials from overflow: values are multiplied by it.
_OVERFLOW_MARGIN = 8.0
# From this length, torch's CPU kernel is faster for inference in float32; in bfloat16 it never is.
_TORCH_FASTER_FROM = 96
# Features of some models' attention: capped scores, sinks, position biases.
_UNSUPPORTED = ("softcap", "s_aux", "position_bias")
# What torch's FlashAttention supports.
_FLASH_DTYPES = (torch.float16, torch.bfloat16)
_MAX_HEAD_DIM = 256
_MULTIPLE = 8  # of head sizes
_MIN_CAPABILITY = (8, 0)  # Ampere


class Options(NamedTuple):
    """Options of attention; `window` is the size of a sliding window."""

    scaling: float
    dropout: float
    causal: bool
    window: int | None


def packed_attention(
    module: nn.Module,
    query: Float[Tensor, "1 head token dim"],
    key: Float[Tensor, "1 kv token dim"],
    value: Float[Tensor, "1 kv token dim"],
    attention_mask: Tensor | None,  # noqa: ARG001 - `packed` determines the mask
    *,
    packed: Sequences,
    scaling: float | None = None,
    dropout: float = 0.0,
    is_causal: bool | None = None,
    sliding_window: int | None = None,
    **features: object,
) -> tuple[Float[Tensor, "1 token head dim"], None]:
    """Exact attention within each sequence."""
    for name in _UNSUPPORTED:
        if features.get(name) is not None:
            raise TypeError(f"packed attention doesn't support {name}")
    if is_causal is None:
        is_causal = bool(getattr(module, "is_causal", False))
    if scaling is None:
        scaling = 1 / math.sqrt(query.shape[-1])
    options = Options(scaling, dropout, is_causal, sliding_window)
    # Under autocast, rotary positions leave queries and keys in float32, while values have autocast's type.
    kind = query.device.type
    dtype = value.dtype
    if torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
    q, k, v = (part[0].transpose(0, 1).to(dtype) for part in (query, key, value))
    if packed.flash and is_for_flash(q):
        return flash(q, k, v, packed.bounds, packed.longest, options)[None], None
    return _by_lengths(q, k, v, packed, options)[None], None


@uncompiled  # each batch's lengths would cause a compilation
def _by_lengths(
    query: Heads,
    key: KeyHeads,
    value: KeyHeads,
    packed: Sequences,
    options: Options,
) -> Heads:
    """Attention over buckets of similar lengths, padded to the longest."""
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key = key.repeat_interleave(groups, 1)
        value = value.repeat_interleave(groups, 1)
    use_torch = (
        query.device.type != "cpu"
        or query.dtype == torch.float16  # it can't hold sums of exponentials
        or (
            query.dtype == torch.float32
            and packed.lengths[0] >= _TORCH_FASTER_FROM
            and torch.is_inference_mode_enabled()
        )
    )
    attend = _by_bucket if use_torch else _Attention.apply
    return cast("Tensor", attend(query, key, value, packed, options))


def _by_bucket(
    query: Heads,
    key: Heads,
    value: Heads,
    packed: Sequences,
    options: Options,
) -> Heads:
    """Attention with torch's own function."""
    outputs = []
    for bucket in packed.buckets:
        q, k, v = (bucket.grid(part).transpose(1, 2) for part in (query, key, value))
        # Causal queries never see padding, which comes last; without a mask torch can use faster kernels.
        window = options.window
        plain = options.causal and (window is None or bucket.length <= window)
        bias = None
        if not plain:
            bias = bucket.bias(causal=options.causal, window=window, dtype=query.dtype)
        grid = functional.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=bias,
            dropout_p=options.dropout,
            is_causal=plain,
            scale=options.scaling,
        )
        out = grid.transpose(1, 2).flatten(0, 1)
        if not bucket.even:
            out = out.index_select(0, bucket.slots)
        outputs.append(out)
    return torch.cat(outputs)


class _Attention(torch.autograd.Function):
    """Attention on a CPU that recomputes the weights to go back (FlashAttention, Dao et al. 2022, Alg. 4)."""

    # torch's own kernel has no dropout, and is slow on short sequences.

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        packed: Sequences,
        options: Options,
    ) -> Tensor:
        dropout = options.dropout
        seed = draw_seed() if dropout else 0
        out = query.new_empty(query.shape)
        normalisers = []
        for number, bucket in enumerate(packed.buckets):
            q, k, v = (bucket.heads(part) for part in (query, key, value))
            scores = _scores(bucket, q.mul(options.scaling), k, options)
            weights, total, normaliser = _exponentials(scores)
            normalisers.append(normaliser)
            if dropout:
                keep, share = keep_mask(weights.shape, dropout, seed + number)
                weights.mul_(keep.to(weights.dtype))
                total.mul_(share)
            # The outputs are divided, not the weights, as there are fewer outputs.
            bucket.put_heads(torch.bmm(weights, v).div_(total), out)
        ctx.save_for_backward(query, key, value, out, *normalisers)
        ctx.meta = packed, options, seed
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        query, key, value, out, *normalisers = ctx.saved_tensors
        packed, options, seed = ctx.meta
        gradient = gradients[0].to(query.dtype)
        dtype = torch.promote_types(out.dtype, torch.float32)  # sums need it
        deltas = (gradient * out).sum(-1, keepdim=True, dtype=dtype)
        to_query, to_key, to_value = (
            part.new_empty(part.shape) for part in (query, key, value)
        )
        buckets = zip(packed.buckets, normalisers, strict=True)
        for number, (bucket, normaliser) in enumerate(buckets):
            q, k, v = (bucket.heads(part) for part in (query, key, value))
            # Padding with zeros doesn't contribute to gradients.
            g, delta = (bucket.heads(part, zeros=True) for part in (gradient, deltas))
            q = q.mul(options.scaling)
            weights = _scores(bucket, q, k, options).sub_(normaliser).exp_()
            to_weights = torch.bmm(g, v.transpose(1, 2))
            kept = weights
            if options.dropout:
                mask, share = keep_mask(weights.shape, options.dropout, seed + number)
                keep = mask.to(weights.dtype)
                kept = (weights * keep).mul_(1 / share)
                to_weights.mul_(keep).mul_(1 / share)
            bucket.put_heads(torch.bmm(kept.transpose(1, 2), g), to_value)
            to_scores = to_weights.sub_(delta).mul_(weights)
            bucket.put_heads(torch.bmm(to_scores, k).mul_(options.scaling), to_query)
            bucket.put_heads(torch.bmm(to_scores.transpose(1, 2), q), to_key)
        return to_query, to_key, to_value, None, None


def _exponentials(scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Unnormalised weights, their sum per row, and the logarithm of the normaliser (at least float32)."""
    dtype = torch.promote_types(scores.dtype, torch.float32)
    # Scores are usually too small to overflow; subtracting each row's maximum takes two slow passes.
    overflow = math.log(torch.finfo(scores.dtype).max)
    safe = overflow - math.log(scores.shape[-1]) - _OVERFLOW_MARGIN
    if scores.max() <= safe:
        weights = scores.exp()
        total = weights.sum(-1, keepdim=True)
        if total.min() >= math.exp(-safe):
            return weights, total, total.to(dtype).log()
    top = scores.amax(-1, keepdim=True)
    weights = scores.sub_(top).exp_()
    total = weights.sum(-1, keepdim=True)
    return weights, total, total.to(dtype).log().add_(top)


def _scores(
    bucket: Bucket,
    query: Tensor,
    key: Tensor,
    options: Options,
) -> Tensor:
    """Products of scaled queries and keys; -inf for hidden keys."""
    scores = torch.bmm(query, key.transpose(1, 2))
    bias = bucket.bias(causal=options.causal, window=options.window, dtype=scores.dtype)
    if bias is not None:
        scores.view(bucket.size, -1, *scores.shape[1:]).add_(bias)
    return scores


def is_for_flash(query: Heads) -> bool:
    """Whether the kernels support this type and head size."""
    dim = query.shape[-1]
    return (
        query.dtype in _FLASH_DTYPES and dim <= _MAX_HEAD_DIM and dim % _MULTIPLE == 0
    )


@cache
def has_flash(device: torch.device) -> bool:
    """Whether the kernels work on a device: tries a tiny product, as torch's operator is not public."""
    if (
        device.type != "cuda"
        or torch.cuda.get_device_capability(device) < _MIN_CAPABILITY
    ):
        return False
    query = torch.zeros(1, 1, _MULTIPLE, dtype=torch.float16, device=device)
    bounds = torch.tensor([0, 1], dtype=torch.int32, device=device)
    try:
        flash(query, query, query, bounds, 1, Options(1.0, 0.0, False, None))  # noqa: FBT003 - not causal
    except torch.OutOfMemoryError:
        raise
    except (AttributeError, RuntimeError, TypeError):
        return False
    return True


def flash(
    query: Heads,
    key: KeyHeads,
    value: KeyHeads,
    bounds: Int[Tensor, " bound"],
    longest: int,
    options: Options,
) -> Heads:
    """Attention within each sequence, from one bound to the next; `kv` divides `head`."""
    sides = {}
    if options.window is not None:
        sides["window_size_left"] = options.window - 1
        if not options.causal:
            sides["window_size_right"] = options.window - 1
    outputs = torch.ops.aten._flash_attention_forward(
        query,
        key,
        value,
        bounds,
        bounds,
        longest,
        longest,
        options.dropout,
        options.causal,
        False,  # noqa: FBT003 - positional in C++: return no debug mask
        scale=options.scaling,
        **sides,
    )
    return outputs[0]  # type: ignore[no-any-return]


def register() -> None:
    """Register the attention with transformers as `NAME`; without a mask function, it builds no masks."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, packed_attention)
