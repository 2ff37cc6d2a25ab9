"""The machine's best matrix product in fp32 and bf16, at the sizes of MiniLM's layers and a square."""

from __future__ import annotations

import time

import torch
from runner import answer

SHAPES = [(2048, 384, 1536), (2048, 1536, 384), (8192, 384, 1536), (2048, 2048, 2048)]


def main() -> None:
    """Print the best of several shapes and kernels, in GFLOP/s."""
    answer(
        threads=torch.get_num_threads(),
        fp32=max(gflops(*shape, torch.float32) for shape in SHAPES),
        bf16=max(gflops(*shape, torch.bfloat16) for shape in SHAPES),
    )


def gflops(
    rows: int, inner: int, columns: int, dtype: torch.dtype, times: int = 12
) -> float:
    """The fastest of several products, with torch's default kernel or oneDNN's."""
    x, w = torch.randn(rows, inner).to(dtype), torch.randn(columns, inner).to(dtype)
    kernels = [lambda: torch.nn.functional.linear(x, w)]
    # float32 uses MKL by default, even if oneDNN is faster; not every processor has bfloat16.
    if torch.backends.mkldnn.is_available() and (dtype == torch.float32 or has_bf16()):
        kernels.append(
            lambda: torch.ops.mkldnn._linear_pointwise(x, w, None, "none", [], "")
        )
    return max(
        2e-9 * rows * inner * columns / quickest(kernel, times) for kernel in kernels
    )


def has_bf16() -> bool:
    """Whether oneDNN supports bfloat16 on this processor."""
    return getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: False)()


def quickest(kernel, times: int) -> float:
    """Seconds of the fastest call, after two to warm up."""
    seconds = []
    for _ in range(times + 2):
        start = time.perf_counter()
        kernel()
        seconds.append(time.perf_counter() - start)
    return min(seconds[2:])


if __name__ == "__main__":
    with torch.inference_mode():
        main()
