"""Linear layers whose products are of int8, for encoding on a CPU.

A weight has a scale for each output and an activation one for each token, taken from the token alone: so a
text's vector does not depend on which texts are encoded with it. oneDNN multiplies; sums are exact, in int32.
What is between the products stays in the backbone's own type.

Codes of activations are always uint8: VNNI, the instruction of processors without AMX, multiplies unsigned by
signed numbers only. Given int8, oneDNN has nothing but its reference implementation there, which takes a
thousand times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import nn

from aoe_train.model.packing.layers import FastLinear

if TYPE_CHECKING:
    from jaxtyping import Float, Int8, UInt8
    from torch import Tensor

_TOP, _TOP_UNSIGNED = 127, 255  # how many codes there are above that of 0, by sign or from the least number
_TOP_16_BIT = 64  # of a weight where products of pairs are summed in 16 bits: 2 * 255 * 64 < 2**15
_MIDDLE = 128  # the code of 0 where numbers have signs; code 0 is not used then
LEAST_OF_GELU = -0.17  # rounded down from -0.169971
_LEAST = 1e-30  # instead of a scale of zero, for a row of zeros
# Tokens whose hidden numbers stay in a core's cache from one pass over them to the next.
_TOKENS_IN_CACHE = 256


class RowCodes(NamedTuple):
    """Rows as uint8, and what one of each row stands for."""

    codes: UInt8[Tensor, "token in"]
    zero: int  # the code that stands for 0, or for the least number
    scales: Float[Tensor, "token 1"]
    shape: tuple[int, ...]  # of the batch that the rows come from


def to_codes(x: Float[Tensor, "*batch in"], least: float | None = None) -> RowCodes:
    """The nearest codes of each row, whose largest number gets the largest code."""
    rows = x.reshape(-1, x.shape[-1]).float()
    if least is not None:
        rows = rows - least
        scales = rows.amax(-1, keepdim=True).clamp_(min=_LEAST).div_(_TOP_UNSIGNED)
        return RowCodes(rows.div_(scales).round_().to(torch.uint8), 0, scales, x.shape[:-1])
    scales = _scales(rows, _TOP)
    codes = rows.div(scales).add_(_MIDDLE + 0.5).to(torch.uint8)  # which cuts off, so this rounds
    return RowCodes(codes, _MIDDLE, scales, x.shape[:-1])


def _scales(rows: Float[Tensor, "row in"], top: int) -> Float[Tensor, "row 1"]:
    """What one of a code stands for, by row, if the code of its largest number is `top`."""
    # Two passes that only read are faster than one that keeps absolute values.
    largest = torch.maximum(rows.amax(-1, keepdim=True), rows.amin(-1, keepdim=True).neg_())
    return largest.clamp_(min=_LEAST).div_(top)


def _weight_codes(weight: Float[Tensor, "out in"]) -> tuple[Int8[Tensor, "out in"], Float[Tensor, "out 1"]]:
    """The nearest codes of a weight, by output; they have signs."""
    rows = weight.float()
    scales = _scales(rows, largest_weight_code())
    return rows.div(scales).round_().to(torch.int8), scales


@cache
def largest_weight_code() -> int:
    """127, or 64 on x86 without VNNI, where a sum of two products saturates at 16 bits."""
    rows = torch.full((1, 64), _TOP_UNSIGNED, dtype=torch.uint8)
    packed = torch.ops.onednn.qlinear_prepack(torch.full((1, 64), _TOP, dtype=torch.int8), None)
    one, zero = torch.ones(1), torch.zeros(1, dtype=torch.int64)
    found = torch.ops.onednn.qlinear_pointwise(
        *(rows, 1.0, 0, packed, one, zero, None, 1.0, 0, torch.float32, "none", [], "")
    )
    return _TOP if found.item() == 64 * _TOP_UNSIGNED * _TOP else _TOP_16_BIT


def has_int8_products() -> bool:
    """Whether this build of torch has oneDNN's products of int8."""
    return "onednn" in torch.backends.quantized.supported_engines and hasattr(
        torch.ops.onednn, "qlinear_pointwise"
    )


class Int8Linear(nn.Module):
    """A linear layer over int8; it can't be trained."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        codes, scales = _weight_codes(layer.weight.detach())
        self.weight = nn.Parameter(codes, requires_grad=False)
        self.scales = nn.Parameter(scales.flatten(), requires_grad=False)
        bias = layer.weight.new_zeros(layer.out_features) if layer.bias is None else layer.bias.detach()
        self.least: float | None = getattr(layer, "least_input", None)
        if self.least is not None:
            bias = bias + self.least * (codes.float() * scales).sum(1).to(bias.dtype)
        self.bias = nn.Parameter(bias, requires_grad=False)
        self._zeros = torch.zeros(layer.out_features, dtype=torch.int64)
        self._packed = torch.ops.onednn.qlinear_prepack(codes, None)

    def forward(self, input: Float[Tensor, "*batch in"]) -> Float[Tensor, "*batch out"]:  # noqa: A002
        """Apply the layer."""
        return self.product(to_codes(input, self.least))

    def product(self, rows: RowCodes) -> Float[Tensor, "*batch out"]:
        """Apply the layer to rows whose codes are known."""
        dtype = self.bias.dtype
        found: Tensor = torch.ops.onednn.qlinear_pointwise(
            *(rows.codes, 1.0, rows.zero, self._packed, self.scales, self._zeros, None, 1.0, 0, dtype),
            *("none", [], ""),
        )
        torch.addcmul(self.bias, found, rows.scales.to(dtype), out=found)
        return found.view(*rows.shape, -1)


def use_int8(module: nn.Module) -> None:
    """Swap plain linear layers for those over int8, in place; the names stay."""
    for part in list(module.modules()):
        for name, layer in part.named_children():
            if isinstance(layer, nn.Linear) and type(layer) in (nn.Linear, FastLinear):
                setattr(part, name, Int8Linear(layer))


def of_one_input(layers: Sequence[nn.Module], x: Tensor) -> list[Tensor]:
    """What each of the layers makes of `x`, whose codes are made once where they read codes."""
    if not isinstance(layers[0], Int8Linear):
        return [layer(x) for layer in layers]
    rows = to_codes(x)
    return [layer.product(rows) for layer in layers if isinstance(layer, Int8Linear)]


def in_cache(layer: nn.Module, x: Float[Tensor, "1 token dim"]) -> tuple[Tensor, ...]:
    """`x` in parts of so many tokens as `layer`, and what comes after it token by token, best takes at once.

    Products of int8 take so little time that passes over what they make count, if that is not in the cache.
    """
    return torch.split(x, _TOKENS_IN_CACHE, dim=1) if isinstance(layer, Int8Linear) else (x,)
