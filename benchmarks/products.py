"""GFLOP/s of matrix products by torch and by oneDNN on one thread: which does a processor need?

    python benchmarks/products.py

Prints rows of results/products.csv, one per type and size: the product of a linear layer, and those of the
gradients of its input and weight. `aoe_train/model/packing/layers.py` chooses by them, so rows of other
processors are welcome. With ATEN_CPU_CAPABILITY=avx2 and DNNL_MAX_CPU_ISA=AVX2, AVX-512 isn't used.
"""

from __future__ import annotations

import csv
import sys
import time

import torch
from machine import instruction_sets, processor

from aoe_train.model.packing.layers import onednn_has_bf16

# Tokens of a batch, MiniLM's layers.
SIZES = ((900, 384, 384), (900, 384, 1536), (900, 1536, 384))
TIMES = 30


def main() -> None:
    """Print the rows of this machine."""
    torch.set_num_threads(1)
    machine = f"{processor()} ({instruction_sets()})"
    for dtype in (
        (torch.float32, torch.bfloat16) if onednn_has_bf16() else (torch.float32,)
    ):
        for rows, inputs, outputs in SIZES:
            x = torch.randn(rows, inputs).to(dtype)
            weight = torch.randn(outputs, inputs).to(dtype)
            gradient = torch.randn(rows, outputs).to(dtype)
            cells = [
                machine,
                torch.backends.cpu.get_cpu_capability(),
                dtype,
                f"{rows} x {inputs} x {outputs}",
            ]
            for left, right in ((x, weight.t()), (gradient, weight), (gradient.t(), x)):
                cells += [
                    f"{gflops(product, left, right):.0f}"
                    for product in (by_torch, by_onednn)
                ]
            csv.writer(sys.stdout).writerow(cells)


def by_torch(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """The product by torch's own library, such as MKL."""
    return torch.mm(left, right)


def by_onednn(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """The product by oneDNN."""
    return torch.ops.mkldnn._linear_pointwise(left, right.t(), None, "none", [], "")


def gflops(product, left: torch.Tensor, right: torch.Tensor) -> float:
    """The fastest of several products."""
    seconds = []
    for _ in range(TIMES):
        start = time.thread_time()
        product(left, right)
        seconds.append(time.thread_time() - start)
    return 2e-9 * left.shape[0] * left.shape[1] * right.shape[1] / min(seconds)


if __name__ == "__main__":
    with torch.inference_mode():
        main()
