"""The pairwise ranking loss: sorted, as shipped, against all B^2 differences at once.

    python benchmarks/ranking_loss.py [--sizes 32 512 4096] [--repeats 20]

Each form runs forward and backward in a process of its own, on one thread, with labels of 0 to 5 in steps of
0.2 as STS-B has them. Time is the median; memory is by how much the process's peak grew over that before the
first run. The gradients of the two are compared, too: largest difference over largest entry. Prints one
Markdown row per batch size.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from aoe_train.objectives.ranking import ranking_loss

SCALE = 20.0


def main() -> None:
    """Read the flags, measure each size, print a row for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[32, 512, 4096])
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    print(
        "| B | plain ms | sorted ms | ratio | plain MiB | sorted MiB | gradients differ by |\n"
        + "|---" * 7
        + "|"
    )
    processes = multiprocessing.get_context("spawn")
    for size in options.sizes:
        measured = {}
        for form in (plain, ranking_loss):
            with processes.Pool(1) as pool:
                measured[form] = pool.apply(measure, (form, size, options.repeats))
        (slow, much, expected), (fast, little, gradient) = measured.values()
        difference = max(abs(a - b) for a, b in zip(expected, gradient, strict=True)) / max(
            map(abs, expected)
        )
        cells = (
            f"{size:,}",
            f"{slow:.2f}",
            f"{fast:.2f}",
            f"{slow / fast:.1f}",
            f"{much:.1f}",
            f"{little:.1f}",
        )
        print(f"| {' | '.join(cells)} | {difference:.0e} |", flush=True)


def plain(scores: Tensor, labels: Tensor, scale: float) -> Tensor:
    """The loss as the papers write it."""
    differences = scale * (scores[None, :] - scores[:, None])
    kept = differences.masked_fill(labels[:, None] <= labels[None, :], -torch.inf)
    return torch.cat([kept.new_zeros(1), kept.flatten()]).logsumexp(0)


def measure(
    loss: Callable[[Tensor, Tensor, float], Tensor], size: int, repeats: int
) -> tuple[float, float, list[float]]:
    """Median milliseconds, MiB on top of what was there before, and the gradient."""
    torch.set_num_threads(1)
    loss(torch.zeros(2, requires_grad=True), torch.tensor([0.0, 1.0]), SCALE).backward()  # loads the kernels
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(26, (size,), generator=generator) / 5
    scores = torch.rand(size, generator=generator).requires_grad_()
    before, seconds = peak_mib(), []
    for _ in range(repeats):
        scores.grad = None
        start = time.perf_counter()
        loss(scores, labels, SCALE).backward()
        seconds.append(time.perf_counter() - start)
    gradient: list[float] = [] if scores.grad is None else scores.grad.tolist()
    return 1e3 * statistics.median(seconds), peak_mib() - before, gradient


def peak_mib() -> float:
    """The most memory this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
