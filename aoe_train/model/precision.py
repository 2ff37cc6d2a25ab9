"""Which numbers to compute with, and linear layers that multiply int8, for encoding on a CPU.

Of int8 a weight has a scale for each output and an activation one for each token, taken from the token alone:
so a text's vector does not depend on which texts are encoded with it. oneDNN multiplies; sums are exact, in
int32. Codes of activations are always uint8: VNNI, the instruction of processors without AMX, multiplies
unsigned by signed numbers only. Given int8, oneDNN has nothing but its reference implementation there, which
takes a thousand times as long.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from torch import nn

from aoe_train.model.device import one_thread
from aoe_train.model.packing.layers import FastLinear
from aoe_train.settings.training import PRECISIONS
from pairkit.app.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Float, Int8, UInt8
    from torch import Tensor

    from aoe_train.settings.training import EncodingPrecision, Precision


Computed = Literal["fp32", "bf16", "fp16"]
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
_SLOWER, _FASTER = 1.3, 0.5  # of fp32's time; in between nothing is worth telling
_USELESS = 0.9  # as int8 costs some accuracy
_ROWS, _DIM, _TIMES = 256, 512, 4  # of the product that is measured


def has_bf16(device: torch.device) -> bool:
    """Whether this is a CUDA device that computes in bf16; older ones would emulate it, slowly."""
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def slow_precision(wanted: EncodingPrecision, device: torch.device) -> str | None:
    """What to tell who asked for a precision that is slower here than another; None where it isn't."""
    if device.type != "cpu" or wanted in ("auto", "fp32"):
        return None
    times = product_time(torch.int8 if wanted == "int8" else DTYPES[wanted])
    if wanted == "int8" and (better := product_time(torch.bfloat16)) < times:
        return (
            f"matrix products take {times:.2f} of fp32's time in int8 and {better:.2f} in bf16 on this"
            " processor: --precision bf16 is faster, and nearer to fp32"
        )
    if times < (_USELESS if wanted == "int8" else _SLOWER):
        return None
    return (
        f"matrix products take {times:.1f} times as long in {wanted} as in fp32 on this processor; fp32 is"
        " faster (--precision fp32, run.precision in settings)"
    )


def training_note(wanted: Precision, device: torch.device) -> str | None:
    """What to tell of the precision that is trained in."""
    return slow_precision(wanted, device) or _unused_bf16(wanted, device)


def _unused_bf16(wanted: Precision, device: torch.device) -> str | None:
    """What to tell who lets a processor choose that trains faster in bf16; None where it doesn't."""
    if device.type != "cpu" or wanted != "auto":
        return None
    times = product_time(torch.bfloat16)
    if times > _FASTER:
        return None
    return (
        f"computes in fp32, as on every processor; products take {times:.2f} of the time in bf16 on this one:"
        " --precision bf16 trains faster"
    )


@cache
def product_time(dtype: torch.dtype) -> float:
    """How long a matrix product takes on this processor, 1 being its time in float32.

    It is measured, as instruction sets don't tell: an Intel Xeon with AMX needs 0.14 of the time in bfloat16,
    the same one with its AVX512-BF16 alone 1.6 times, with plain AVX-512 4.8 times as long, and ARM and Apple
    have instructions of their own. CPU time of one thread: whatever else runs there changes little. int8's
    time has the way of the activations to int8 and back in it.
    """
    # The layers draw weights; a run's own random numbers must not depend on whether this was measured before.
    with one_thread(), torch.inference_mode(), torch.random.fork_rng(devices=[]):
        return _seconds(_product(dtype)) / _seconds(_product(torch.float32))


def _product(dtype: torch.dtype) -> Callable[[], Tensor]:
    """A product of a small model's size."""
    layer = FastLinear(_DIM, _DIM)  # as in models: what torch takes for a product may be twice as slow
    if dtype == torch.int8:
        return partial(Int8Linear(layer), torch.ones(_ROWS, _DIM))
    return partial(layer.to(dtype), torch.ones(_ROWS, _DIM, dtype=dtype))


def _seconds(work: Callable[[], Tensor]) -> float:
    """CPU seconds that it takes, the least of a few after one that warms up."""
    took = []
    for _ in range(_TIMES + 1):
        begun = time.thread_time()
        work()
        took.append(time.thread_time() - begun)
    return min(took[1:])


def choose_precision(wanted: Precision, device: torch.device) -> Computed:
    """What to compute with on `device`; weights and optimiser stay in float32 whatever it is.

    `auto` is bf16 on a CUDA device that has it, as it needs no loss scaling, else fp32. On a CPU it is always
    fp32, also where bf16 is faster: so the same command trains the same model on every processor, one goes on
    with what another began, and vectors are those of the figures. `training_note` tells who might want it.
    """
    if wanted == "auto":
        return _auto(device)
    if wanted == "fp16" and device.type == "cpu":
        raise ConfigError("precision fp16: not on a CPU; use bf16 or fp32")
    return wanted


def weights_dtype(wanted: EncodingPrecision, device: torch.device) -> torch.dtype:
    """What an encoder's weights are in on `device`, which is also what it computes with.

    Of int8 what is between its products: float32.
    """
    if wanted not in PRECISIONS:
        raise ConfigError(f"precision {wanted!r}: expected {', '.join(PRECISIONS)}")
    if wanted == "int8":
        _check_int8(device)
        return torch.float32
    return DTYPES[_auto(device) if wanted == "auto" else wanted]


def _check_int8(device: torch.device) -> None:
    if device.type != "cpu":
        raise ConfigError(f"precision int8: for a CPU, and this is {device.type}; use bf16 or fp32")
    if not has_int8_products():
        raise ConfigError("precision int8: this build of torch multiplies no int8 (no oneDNN); use fp32")


def _auto(device: torch.device) -> Computed:
    return "bf16" if has_bf16(device) else "fp32"


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
