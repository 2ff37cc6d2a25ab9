"""The choice of precision, and int8 linear layers for encoding on a CPU.

In int8, weights have one scale per output and activations one per token, so a text's vector does not depend
on the other texts in its batch. oneDNN multiplies; sums are exact, in int32. Activations are uint8 codes,
because VNNI, the instruction of processors without AMX, multiplies only unsigned by signed numbers. For int8
activations, oneDNN uses a reference implementation there that is a thousand times as slow.
"""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from torch import Tensor, nn

from aoe_train.model.device import one_thread
from aoe_train.model.packing.layers import FastLinear, onednn_has_bf16
from aoe_train.settings.train_settings import EncodingPrecision, named_precision
from pairkit.base.errors import ConfigError

if TYPE_CHECKING:
    from jaxtyping import Float, Int, UInt8

    from aoe_train.settings.run_settings import Precision


Computed = Literal["fp32", "bf16", "fp16"]
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
# Instructions as `torch.cpu.get_capabilities` names them, on x86 and ARM; plain AVX-512 has none for bf16.
_BF16_INSTRUCTIONS = ("avx512_bf16", "amx_bf16", "avx_ne_convert", "bf16")
# Times relative to fp32's, from which there is a note. int8 costs some accuracy, so it must be faster.
_SLOWER = 1.3
_FASTER = 0.5
_USELESS = 0.9
# The sizes of the measured product, and the number of its runs.
_ROWS = 256
_DIM = 512
_RUNS = 4
_MAX_SIGNED = 127
_MAX_UNSIGNED = 255
# The largest code of weights if sums of two products have 16 bits: 2 * 255 * 64 < 2**15.
_MAX_16_BIT = 64
# The code of 0 if activations have signs; code 0 is unused then.
_ZERO_POINT = 128
# The minimum of GELU, rounded down from -0.169971.
LEAST_OF_GELU = -0.17
# The scale of rows of zeros.
_MIN_SCALE = 1e-30
# Tokens whose activations stay in a core's cache between two passes over them.
TOKENS_IN_CACHE = 256


def has_bf16(device: torch.device) -> bool:
    """Whether a CPU or a CUDA device computes in bf16; others emulate it slowly."""
    if device.type == "cpu":
        return _cpu_has_bf16()
    return device.type == "cuda" and torch.cuda.is_bf16_supported(
        including_emulation=False
    )


@cache
def _cpu_has_bf16() -> bool:
    """Whether the processor has an instruction for it that oneDNN uses."""
    if not onednn_has_bf16():
        return False
    if not hasattr(torch.cpu, "get_capabilities"):  # torch 2.10
        return True
    known = torch.cpu.get_capabilities()
    return any(known.get(name) for name in _BF16_INSTRUCTIONS)


def slow_precision(precision: EncodingPrecision, device: torch.device) -> str | None:
    """A note if another precision is faster on this device than the requested one."""
    if device.type != "cpu" or precision in ("auto", "fp32"):
        return None
    if precision == "bf16" and not has_bf16(device):
        return "this processor has no instructions for bf16: computing in fp32, which is faster"
    if precision == "int8":
        relative = product_time(torch.int8)
        in_bf16 = product_time(torch.bfloat16)
        if in_bf16 < relative:
            return (
                f"matrix products take {relative:.2f} of fp32's time in int8 and {in_bf16:.2f} in bf16 on"
                " this processor: --precision bf16 is faster, and closer to fp32"
            )
        limit = _USELESS
    else:
        relative = product_time(DTYPES[precision])
        limit = _SLOWER
    if relative < limit:
        return None
    return (
        f"matrix products take {relative:.1f} times as long in {precision} as in fp32 on this processor; fp32"
        " is faster (--precision fp32)"
    )


def training_note(precision: Precision, device: torch.device) -> str | None:
    """A note if training would be faster in another precision."""
    if device.type != "cpu" or precision != "auto":
        return slow_precision(precision, device)
    relative = product_time(torch.bfloat16)
    if relative > _FASTER:
        return None
    return (
        f"training in fp32, the default on a CPU; on this one products take {relative:.2f} of the time in"
        " bf16: --precision bf16 trains faster"
    )


@cache
def product_time(dtype: torch.dtype) -> float:
    """Time of a matrix product on this processor, relative to float32.

    It is measured because the instruction set doesn't determine it: in bfloat16, an Intel Xeon needs 0.14 of
    the time with AMX, but 1.6 with only AVX512-BF16 and 4.8 with plain AVX-512. CPU time of one thread varies
    little with the machine's load. int8's time includes the conversion of activations.
    """
    # The layers draw random weights, which must not change a run's random numbers.
    with one_thread(), torch.inference_mode(), torch.random.fork_rng(devices=[]):
        return _product_seconds(dtype) / _product_seconds(torch.float32)


def _product_seconds(dtype: torch.dtype) -> float:
    """The lowest CPU time of a few products of a small model's size, after a warm-up."""
    # Models use this layer; torch's own may be half as fast.
    linear = FastLinear(_DIM, _DIM)
    x = torch.ones(_ROWS, _DIM)
    layer: nn.Module
    if dtype == torch.int8:
        layer = Int8Linear(linear)
    else:
        layer = linear.to(dtype)
        x = x.to(dtype)
    times = list[float]()
    for _ in range(_RUNS + 1):
        start = time.thread_time()
        layer(x)
        times.append(time.thread_time() - start)
    return min(times[1:])


def choose_precision(precision: Precision, device: torch.device) -> Computed:
    """The precision of computation on `device`; weights and optimiser are always float32."""
    if precision == "fp16" and device.type == "cpu":
        raise ConfigError("precision fp16: not available on a CPU; use bf16 or fp32")
    return _computed(precision, device)


def weights_dtype(precision: EncodingPrecision, device: torch.device) -> torch.dtype:
    """The type of an encoder's weights and computation; for int8, of everything but its products."""
    precision = named_precision(precision)
    if precision == "int8":
        if device.type != "cpu":
            raise ConfigError(
                f"precision int8: only available on a CPU, not {device.type}; use bf16 or fp32"
            )
        supported = "onednn" in torch.backends.quantized.supported_engines
        if not (supported and hasattr(torch.ops.onednn, "qlinear_pointwise")):
            raise ConfigError(
                "precision int8: this build of torch lacks oneDNN's int8 products; use fp32"
            )
        return torch.float32
    return DTYPES[_computed(precision, device)]


def _computed(precision: Precision, device: torch.device) -> Computed:
    """fp32 instead of a bf16 that a CPU would emulate; `auto` is bf16 on CUDA devices with it, else fp32.

    bf16 needs no loss scaling. On a CPU, `auto` is fp32 even if bf16 is faster, so that the same command
    trains the same model on every processor and another processor can resume a run.
    """
    if precision == "auto":
        return "bf16" if device.type == "cuda" and has_bf16(device) else "fp32"
    if precision == "bf16" and device.type == "cpu" and not has_bf16(device):
        return "fp32"
    return precision


class RowCodes(NamedTuple):
    """Rows as uint8 codes with their scales."""

    codes: UInt8[Tensor, "token in"]
    zero: int  # the code of 0, or of the lowest value
    scales: Float[Tensor, "token 1"]
    shape: tuple[int, ...]  # of the batch without its last axis


def to_codes(x: Float[Tensor, "*batch in"], lower: float | None = None) -> RowCodes:
    """Round each row to codes, scaled by its largest value; `lower` is a known lower bound of all values."""
    rows = x.reshape(-1, x.shape[-1]).float()
    shape = x.shape[:-1]
    if lower is not None:
        rows = rows - lower
        scales = rows.amax(-1, keepdim=True).clamp_(min=_MIN_SCALE).div_(_MAX_UNSIGNED)
        codes = rows.div_(scales).round_().to(torch.uint8)
        return RowCodes(codes, 0, scales, shape)
    scales = _scales(rows, _MAX_SIGNED)
    shifted = rows.div(scales).add_(_ZERO_POINT + 0.5)
    codes = shifted.to(torch.uint8)  # the cast truncates, so this rounds
    return RowCodes(codes, _ZERO_POINT, scales, shape)


def _scales(rows: Float[Tensor, "row in"], max_code: int) -> Float[Tensor, "row 1"]:
    """The value of one code step in each row, if its largest absolute value gets `max_code`."""
    # Two read-only passes are faster than one that stores absolute values.
    highest = rows.amax(-1, keepdim=True)
    lowest = rows.amin(-1, keepdim=True)
    largest = torch.maximum(highest, lowest.neg_())
    return largest.clamp_(min=_MIN_SCALE).div_(max_code)


@cache
def largest_weight_code() -> int:
    """127, or 64 on x86 without VNNI, where sums of two products saturate at 16 bits."""
    size = 64
    rows = torch.full((1, size), _MAX_UNSIGNED, dtype=torch.uint8)
    weights = torch.full((1, size), _MAX_SIGNED, dtype=torch.int8)
    packed = torch.ops.onednn.qlinear_prepack(weights, None)
    scale = torch.ones(1)
    zeros = torch.zeros(1, dtype=torch.int64)
    product = _int8_product(rows, 0, packed, scale, zeros, torch.float32)
    if product.item() == size * _MAX_UNSIGNED * _MAX_SIGNED:
        return _MAX_SIGNED
    return _MAX_16_BIT


def _int8_product(
    codes: UInt8[Tensor, "token in"],
    zero: int,
    packed: Tensor,
    scales: Float[Tensor, " out"],
    zeros: Int[Tensor, " out"],
    dtype: torch.dtype,
) -> Float[Tensor, "token out"]:
    """The product of codes, `zero` of which represents 0, and packed weights with their scales."""
    output: Tensor = torch.ops.onednn.qlinear_pointwise(
        *(codes, 1.0, zero, packed, scales, zeros),
        *(None, 1.0, 0, dtype),  # no bias; scale, zero and type of the output
        *("none", [], ""),  # no function after the product
    )
    return output


class Int8Linear(nn.Module):
    """A linear layer with int8 products; it can't be trained."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.in_features = layer.in_features
        self.out_features = layer.out_features
        rows = layer.weight.detach().float()
        scales = _scales(rows, largest_weight_code())
        codes = rows.div(scales).round_().to(torch.int8)
        self.weight = nn.Parameter(codes, requires_grad=False)
        self.scales = nn.Parameter(scales.flatten(), requires_grad=False)
        bias = layer.weight.new_zeros(layer.out_features)
        if layer.bias is not None:
            bias = layer.bias.detach()
        self.lower_bound: float | None = getattr(layer, "input_lower_bound", None)
        if self.lower_bound is not None:
            row_sums = (codes.float() * scales).sum(1)
            bias = bias + self.lower_bound * row_sums.to(bias.dtype)
        self.bias = nn.Parameter(bias, requires_grad=False)
        self._zeros = torch.zeros(layer.out_features, dtype=torch.int64)
        self._packed = torch.ops.onednn.qlinear_prepack(codes, None)

    def forward(
        self,
        input: Float[Tensor, "*batch in"] | RowCodes,  # noqa: A002
    ) -> Float[Tensor, "*batch out"]:
        """Apply the layer; layers of one input share its codes."""
        rows = input
        if isinstance(rows, Tensor):
            rows = to_codes(rows, self.lower_bound)
        dtype = self.bias.dtype
        output = _int8_product(
            rows.codes, rows.zero, self._packed, self.scales, self._zeros, dtype
        )
        torch.addcmul(self.bias, output, rows.scales.to(dtype), out=output)
        return output.view(*rows.shape, -1)


def use_int8(module: nn.Module) -> None:
    """Replace plain linear layers by int8 ones, in place; names stay."""
    for part in list(module.modules()):
        for name, layer in part.named_children():
            if isinstance(layer, nn.Linear) and type(layer) in (nn.Linear, FastLinear):
                setattr(part, name, Int8Linear(layer))
