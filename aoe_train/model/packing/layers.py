"""Linear layers and dropout that are faster on a CPU than torch's, and embeddings that train only used rows.

Parameters and results are the same. Adam without weight decay never changes an embedding row without a
gradient (its moments stay 0), so excluding unused rows from the optimiser has no effect on weights, but saves
time and memory: fine-tuning data uses perhaps a third of a vocabulary, and the embedding is often half of all
parameters.
"""

from __future__ import annotations

import math
import platform
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from aoe_train.model.device import uncompiled

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@uncompiled
def draw_seed() -> int:
    """A seed from torch's generator, so that seeding or restoring it also determines dropout."""
    return int(torch.randint(2**62, ()).item())


@uncompiled
def keep_mask(shape: torch.Size, p: float, seed: int) -> tuple[Tensor, float]:
    """Which elements are kept (int8: 1 or 0), and the expected share of these: `1 - p` to within 1/512.

    A random byte is compared with a threshold, so `p` is rounded to 256ths; dividing by the exact share keeps
    the mean exact. torch converts int8 to floats five times as fast as bool.
    """
    threshold = round(p * 256)
    count = math.prod(shape)
    words = np.random.SFC64(seed).random_raw(math.ceil(count / 8))
    random = words.view(np.uint8)[:count]
    is_kept = random >= threshold
    keep = torch.from_numpy(is_kept.view(np.int8))
    return keep.view(shape), 1 - threshold / 256


def onednn_has_bf16() -> bool:
    """Whether oneDNN supports bf16 here; with plain AVX-512, it emulates it."""
    is_supported = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    return is_supported is not None and bool(is_supported())


@cache
def _onednn_types() -> dict[torch.dtype, bool]:
    """The types whose products oneDNN computes faster than torch here, and whether also those of gradients.

    `benchmarks/products.py` measures them; `benchmarks/results/products.csv` has its results.
    """
    # Speed isn't measured at run time: the answer could differ when training is resumed, and change the weights.
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return {}
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return {}
    if torch.backends.cpu.get_cpu_capability() != "AVX512":
        return {}
    # Torch multiplies with MKL, which uses AVX-512 on Intel's processors only.
    types = {torch.float32: not _is_intel()}
    if onednn_has_bf16():
        types[torch.bfloat16] = False
    return types


def _is_intel() -> bool:
    """Whether the processor is Intel's."""
    vendor = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        vendor = info.read_text("utf-8", "replace")
    return "GenuineIntel" in vendor


def _backward_product(left: Tensor, right: Tensor) -> Tensor:
    """The product of two matrices; oneDNN copies `left` first if it is transposed."""
    if not _onednn_types()[left.dtype]:
        return torch.mm(left, right)
    product: Tensor = torch.ops.mkldnn._linear_pointwise(
        left, right.t(), None, "none", [], ""
    )
    return product


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        dtype: torch.dtype,
    ) -> Tensor:
        rows = x.reshape(-1, x.shape[-1]).to(dtype)
        cast_weight = weight.to(dtype)
        ctx.save_for_backward(rows, cast_weight)
        if bias is not None:
            bias = bias.to(dtype)
        result: Tensor = torch.ops.mkldnn._linear_pointwise(
            rows, cast_weight, bias, "none", [], ""
        )
        return result.view(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        need_x, need_weight, need_bias, _ = ctx.needs_input_grad
        (gradient,) = gradients
        shape = gradient.shape[:-1]
        gradient = gradient.reshape(-1, len(weight)).to(rows.dtype)
        to_x = None
        to_weight = None
        to_bias = None
        # Autograd casts these to the types of the inputs.
        if need_x:
            to_x = _backward_product(gradient, weight).view(*shape, -1)
        if need_weight:
            to_weight = _backward_product(gradient.t(), rows)
        if need_bias:
            to_bias = gradient.sum(0, dtype=torch.float32)
        return to_x, to_weight, to_bias, None


class FastLinear(nn.Linear):
    """`nn.Linear`, by oneDNN where that is faster; under autocast in autocast's type, as in torch."""

    def forward(self, input: Float[Tensor, "*batch in"]) -> Float[Tensor, "*batch out"]:  # noqa: A002
        """Apply the layer; torch computes it elsewhere and for other types."""
        # torch.compile can't fuse oneDNN's products.
        is_fast = input.device.type == "cpu" and not torch.compiler.is_compiling()
        if not is_fast or not torch.backends.mkldnn.enabled:
            return super().forward(input)
        dtype = self.weight.dtype
        if torch.is_autocast_enabled("cpu"):
            dtype = torch.get_autocast_dtype("cpu")
        if dtype not in _onednn_types():
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
        (gradient,) = gradients
        return (gradient * keep.to(gradient.dtype)).mul_(1 / ctx.share), None


class FastDropout(nn.Dropout):
    """`nn.Dropout` with a mask of random bytes; the probability is rounded to 256ths."""

    def forward(self, input: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:  # noqa: A002
        """Apply dropout; torch computes it on other devices than a CPU."""
        if not self.training or self.p == 0:
            return input
        is_fast = input.device.type == "cpu" and not torch.compiler.is_compiling()
        if not is_fast or self.p >= 1 or self.inplace:
            return super().forward(input)
        return cast("Tensor", _Dropout.apply(input, self.p))  # type: ignore[no-untyped-call]


class UsedRows(nn.Embedding):
    """An embedding with some rows as its parameter and others in a buffer; its state dict has all rows."""

    rest: Float[Tensor, "token dim"]  # all rows, of which the trained ones are outdated
    row: Int[Tensor, " token"]  # in the parameter, or -1

    def freeze_except(self, used: Int[Tensor, " used"]) -> None:
        """Keep `used` (ascending token ids) trainable and freeze the rest."""
        whole = self.weight.data
        row = torch.full_like(whole[:, 0], -1, dtype=torch.int64)
        row[used] = torch.arange(len(used), device=whole.device)
        self.register_buffer("rest", whole, persistent=False)
        self.register_buffer("row", row, persistent=False)
        self.weight = nn.Parameter(whole[used].clone())

    def forward(self, input: Int[Tensor, "*any"]) -> Float[Tensor, "*any dim"]:  # noqa: A002
        """Look up tokens; frozen ones may occur only in evaluation."""
        row = self.row[input]
        if self.training:
            return nn.functional.embedding(row, self.weight)
        is_trained = row >= 0
        trained = nn.functional.embedding(row.clamp(min=0), self.weight)
        frozen = nn.functional.embedding(input, self.rest)
        return torch.where(is_trained[..., None], trained, frozen)

    def whole(self) -> Float[Tensor, "token dim"]:
        """The whole embedding with its current weights."""
        whole = self.rest.clone()
        whole[self.row >= 0] = self.weight.detach()
        return whole

    def _save_to_state_dict(
        self, destination: Any, prefix: str, keep_vars: bool
    ) -> None:
        del keep_vars
        destination[prefix + "weight"] = self.whole()

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, *rest: object, **named: object
    ) -> None:
        whole = state_dict.get(prefix + "weight")
        if whole is not None and whole.shape == self.rest.shape:
            self.rest.copy_(whole)
            state_dict = {**state_dict, prefix + "weight": whole[self.row >= 0]}
        super()._load_from_state_dict(state_dict, prefix, *rest, **named)


def train_used_rows(backbone: Any, used: np.ndarray) -> bool:
    """Train only the embedding rows `used`; False for one that is frozen, tied or a subclass."""
    embedding: Any = backbone.get_input_embeddings()
    if type(embedding) is not nn.Embedding or not embedding.weight.requires_grad:
        return False
    if _is_tied(embedding, backbone):
        return False
    rows = torch.as_tensor(used, dtype=torch.int64, device=embedding.weight.device)
    # The class is changed in place, because other objects refer to the module.
    embedding.__class__ = UsedRows
    cast("UsedRows", embedding).freeze_except(rows)
    return True


def _is_tied(embedding: nn.Embedding, backbone: Any) -> bool:
    """Whether another module, such as the output layer, has the same weight."""
    others = [module for module in backbone.modules() if module is not embedding]
    if hasattr(backbone, "get_output_embeddings"):
        others.append(backbone.get_output_embeddings())
    weights = [getattr(module, "weight", None) for module in others]
    return any(weight is embedding.weight for weight in weights)


def train_all_rows(backbone: Any) -> None:
    """Undo `train_used_rows`; trained rows stay."""
    embedding = backbone.get_input_embeddings()
    if isinstance(embedding, UsedRows):
        whole = embedding.whole()
        del embedding.rest, embedding.row
        embedding.__class__ = nn.Embedding  # type: ignore[assignment]
        embedding.weight = nn.Parameter(whole)
