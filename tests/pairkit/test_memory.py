"""Memory that was refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pairkit.memory import is_out_of_memory, peak_rss_mb


def test_what_torch_itself_says_of_too_large_a_tensor() -> None:
    with pytest.raises(RuntimeError) as refused:
        torch.empty(2**50)
    assert is_out_of_memory(refused.value)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        RuntimeError("could not create a memory object"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ],
)
def test_it_is_told_by_kind_and_by_words(error: BaseException) -> None:
    assert is_out_of_memory(error)


@pytest.mark.parametrize("error", [RuntimeError("size mismatch"), ValueError("out of memory")])
def test_other_errors_are_not_it(error: BaseException) -> None:
    assert not is_out_of_memory(error)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the kernel says so on Linux only")
def test_the_peak_is_what_the_kernel_says() -> None:
    said = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    assert peak_rss_mb() == pytest.approx(int(said[0].split()[1]) / 1024, rel=0.5)
