"""Linear layers and dropout, faster on a CPU than torch's own, and embeddings that learn used rows only.

Parameters and meaning are the same. A row of an embedding without a gradient never moves under Adam without
weight decay (its moments stay 0), so leaving it out of the optimiser changes nothing; a fine-tuning set uses
perhaps a third of a vocabulary, and the embedding is often half of all parameters.
"""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import nn

from aoe_train.model.device import uncompiled

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor


@uncompiled
def draw_seed() -> int:
    """A seed from torch's generator, so that whoever seeds or restores that covers dropout too."""
    return int(torch.randint(2**62, ()).item())


@uncompiled
def keep_mask(shape: torch.Size | tuple[int, ...], p: float, seed: int) -> tuple[torch.Tensor, float]:
    """Which elements stay (int8: 1, or 0), and the share that stays in the mean: `1 - p` to within 1/512.

    Dropout compares a random byte with a threshold, so `p` is rounded to 256ths; dividing by the share that
    really stays keeps the mean exact. Torch turns int8 into other numbers five times as fast as bool.
    """
    threshold = round(p * 256)
    count = int(np.prod(shape))
    drawn = np.frombuffer(np.random.Generator(np.random.SFC64(seed)).bytes(count), dtype=np.uint8)
    keep = torch.from_numpy((drawn >= threshold).view(np.int8)).view(shape)
    return keep, 1 - threshold / 256


def _onednn_dtypes() -> list[torch.dtype]:
    """What oneDNN multiplies here; nothing in builds of torch without it, such as Apple's.

    Such builds lack its functions too. Some processors it can't multiply bfloat16 on, and torch has to.
    """
    has_onednn = bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]
    if not has_onednn or not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return []
    has_bf16 = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: False)
    return [torch.float32, torch.bfloat16] if has_bf16() else [torch.float32]


def _is_intel() -> bool:
    """Whether Intel made the processor: MKL uses its widest instructions there, and nowhere else."""
    names = Path("/proc/cpuinfo")
    told = names.read_text("utf-8", "replace") if names.exists() else platform.processor()
    return "GenuineIntel" in told


@cache
def _by_torch() -> list[torch.dtype]:
    """What torch multiplies better than a layer of oneDNN does where a matrix is transposed.

    The processor's name decides on float32: by measured speed a run that is continued would now and then come
    to other weights. The first backward pass asks for it, so that whoever only encodes need not wait.
    """
    return [torch.bfloat16, torch.float32] if _is_intel() else [torch.bfloat16]


_DTYPES = _onednn_dtypes()


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The layer's output for rows `x`.

    Straight from oneDNN: torch hands float32 products to MKL, which takes twice as long on some processors.
    """
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")  # type: ignore[no-any-return]


def _backward_product(one: Tensor, other: Tensor) -> Tensor:
    """The product of two matrices, of which one may be transposed: oneDNN's layers would copy it first."""
    return torch.mm(one, other) if one.dtype in _by_torch() else _product(one, other.t())


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
        rows = x.reshape(-1, x.shape[-1]).to(dtype)
        cast = weight.to(dtype)
        ctx.save_for_backward(rows, cast)
        ctx.meta = x.shape, x.dtype, weight.dtype
        result = _product(rows, cast, None if bias is None else bias.to(dtype))
        return result.view(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        shape, dtype, own = ctx.meta
        need_x, need_weight, need_bias = ctx.needs_input_grad[:3]
        gradient = gradients[0].reshape(-1, weight.shape[0]).to(rows.dtype)
        to_x = _backward_product(gradient, weight).view(shape).to(dtype) if need_x else None
        to_weight = _backward_product(gradient.t(), rows).to(own) if need_weight else None
        to_bias = gradient.sum(0, dtype=torch.float32).to(own) if need_bias else None
        return to_x, to_weight, to_bias, None


def _is_ours(values: Tensor) -> bool:
    """On a CPU, unless torch.compile reads along, which fuses torch's own and can't read ours."""
    return values.device.type == "cpu" and not torch.compiler.is_compiling()


class FastLinear(nn.Linear):
    """`nn.Linear` whose products oneDNN computes; under autocast in autocast's type, as torch does."""

    def forward(self, input: Float[Tensor, "*batch in"]) -> Float[Tensor, "*batch out"]:  # noqa: A002
        """Apply the layer; on another device than a CPU, or for other types, as torch does."""
        if not _is_ours(input) or not torch.backends.mkldnn.enabled:
            return super().forward(input)
        casts = torch.is_autocast_enabled("cpu")
        dtype = torch.get_autocast_dtype("cpu") if casts else self.weight.dtype
        if dtype not in _DTYPES:
            return super().forward(input)
        return cast("Tensor", _Linear.apply(input, self.weight, self.bias, dtype))  # type: ignore[no-untyped-call]


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, p: float) -> Tensor:
        keep, share = keep_mask(x.shape, p, draw_seed())
        ctx.save_for_backward(keep)
        ctx.share = share
        return (x * keep.to(x.dtype)).mul_(1 / share)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        (keep,) = ctx.saved_tensors
        return (gradients[0] * keep.to(gradients[0].dtype)).mul_(1 / ctx.share), None


class FastDropout(nn.Dropout):
    """`nn.Dropout` whose mask comes from random bytes; the probability is rounded to 256ths."""

    def forward(self, input: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:  # noqa: A002
        """Apply dropout; on another device than a CPU as torch does."""
        if not self.training or self.p == 0:
            return input
        if not _is_ours(input) or self.p >= 1 or self.inplace:
            return super().forward(input)
        return cast("Tensor", _Dropout.apply(input, self.p))  # type: ignore[no-untyped-call]


class UsedRows(nn.Embedding):
    """An embedding with the rows of some tokens as its parameter, and the others as a buffer.

    Its state dict is that of the whole embedding.
    """

    rest: Float[Tensor, "token dim"]
    place: Int[Tensor, " token"]

    def hold(self, used: Int[Tensor, " used"]) -> None:
        """Keep `used` (ascending token ids) trainable and freeze the rest."""
        whole = self.weight.data
        place = torch.full((len(whole),), -1, dtype=torch.int64, device=whole.device)
        place[used] = torch.arange(len(used), device=whole.device)
        self.register_buffer("rest", whole, persistent=False)
        self.register_buffer("place", place, persistent=False)
        self.weight = nn.Parameter(whole[used].clone())

    def forward(self, input: Int[Tensor, "*any"]) -> Float[Tensor, "*any dim"]:  # noqa: A002
        """Look up tokens; those that are not trained may occur in evaluation only."""
        place = self.place[input]
        if self.training:
            return nn.functional.embedding(place, self.weight)
        own = nn.functional.embedding(place.clamp(min=0), self.weight)
        return torch.where((place >= 0)[..., None], own, nn.functional.embedding(input, self.rest))

    def whole(self) -> Float[Tensor, "token dim"]:
        """The whole embedding as it stands now."""
        whole = self.rest.clone()
        whole[self.place >= 0] = self.weight.detach()
        return whole

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        del keep_vars
        destination[prefix + "weight"] = self.whole()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any, **named: Any) -> None:
        found = state_dict.get(prefix + "weight")
        if found is not None and found.shape == self.rest.shape:
            self.rest.copy_(found)
            state_dict = {**state_dict, prefix + "weight": found[self.place >= 0]}
        super()._load_from_state_dict(state_dict, prefix, *rest, **named)


def train_used_rows(backbone: Any, used: np.ndarray) -> bool:
    """Let training touch only the embedding rows of the token ids `used`; False where that can't be done.

    It can't where the embedding is frozen, sparse, tied to another layer or not a plain one.
    """
    embedding = backbone.get_input_embeddings()
    output = backbone.get_output_embeddings() if hasattr(backbone, "get_output_embeddings") else None
    others = [module for module in backbone.modules() if module is not embedding]
    tied = any(getattr(module, "weight", None) is embedding.weight for module in [*others, output])
    if (
        type(embedding) is not nn.Embedding
        or tied
        or not embedding.weight.requires_grad
        or embedding.max_norm
        or embedding.sparse
        or embedding.scale_grad_by_freq
    ):
        return False
    rows = cast("UsedRows", embedding)
    rows.__class__ = UsedRows  # its parameter changes shape, but the module stays who it is
    rows.hold(torch.as_tensor(used, dtype=torch.int64, device=embedding.weight.device))
    return True


def train_all_rows(backbone: Any) -> None:
    """Undo `train_used_rows`, keeping what was learned."""
    embedding = backbone.get_input_embeddings()
    if isinstance(embedding, UsedRows):
        whole = embedding.whole()
        del embedding.rest, embedding.place
        embedding.__class__ = nn.Embedding  # type: ignore[assignment]
        embedding.weight = nn.Parameter(whole)
