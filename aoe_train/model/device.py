"""What torch.compile shall not read, as it would compile it anew for every batch.

`torch.compiler.disable` imports the whole compiler, which takes as long as torch itself. What it does in the
end is done here: the interpreter is told of the function, and the compiler finds a mark on it.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor
from torch._C._dynamo import eval_frame

from pairkit.app.errors import ConfigError
from pairkit.system.machine import is_out_of_memory

if TYPE_CHECKING:
    from torch import nn


Function = TypeVar("Function", bound=Callable[..., Any])


def uncompiled(function: Function) -> Function:
    """Leave it, and all that it calls, as it is."""
    return _skipped(function, recursive=True)


def only_callees_compiled(function: Function) -> Function:
    """Leave it as it is, for it works by numbers that differ with each batch; what it calls is compiled."""
    return _skipped(function, recursive=False)


def _skipped(function: Function, *, recursive: bool) -> Function:
    if not hasattr(eval_frame, "set_code_exec_strategy"):  # no promise of torch's
        return cast("Function", torch.compiler.disable(function, recursive=recursive))  # type: ignore[no-untyped-call]
    actions, marked = eval_frame._FrameAction, cast("Any", function)
    callees = actions.SKIP if recursive else actions.DEFAULT
    eval_frame.set_code_exec_strategy(marked.__code__, eval_frame._FrameExecStrategy(actions.SKIP, callees))
    marked._torchdynamo_disable = True
    return function


def upload(values: Tensor, device: torch.device) -> Tensor:
    """`values`, made on the host, on `device`."""
    if device.type != "cuda":
        return values.to(device)
    return values.pin_memory().to(device, non_blocking=True)


def upload_batch(batch: Mapping[str, Any], device: torch.device) -> dict[str, Any]:
    """The batch with its tensors on `device`, whose loader pinned them where that is a GPU."""
    return {
        name: value.to(device, non_blocking=True) if isinstance(value, Tensor) else value
        for name, value in batch.items()
    }


def arrived(
    coming: Iterable[tuple[np.ndarray, Tensor]],
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Texts and their vectors on the host, each once the device has the next batch to work on."""
    before: list[tuple[np.ndarray, Callable[[], np.ndarray]]] = []
    for texts, vectors in coming:
        before.append((texts, _download(vectors)))
        if len(before) > 1:
            done, wait = before.pop(0)
            yield done, wait()
    yield from ((texts, wait()) for texts, wait in before)


def _download(values: Tensor) -> Callable[[], np.ndarray]:
    """Send `values` to the host; what is returned waits until they are there."""
    if values.device.type != "cuda":
        return values.cpu().numpy
    found = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
    found.copy_(values, non_blocking=True)
    sent = torch.cuda.Event()  # type: ignore[no-untyped-call]
    sent.record(torch.cuda.current_stream(values.device))

    def arrived() -> np.ndarray:
        sent.synchronize()
        return found.numpy()

    return arrived


@contextmanager
def one_thread() -> Iterator[None]:
    """On one thread, for work so small that threads would wait for each other longer than they compute.

    They wait busily: beside other programs two threads take ten times the CPU time for a text of six words.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # glibc's mallopt(3)
_LARGEST = 32 << 20  # the largest threshold that glibc takes
# Tokens that run at once. On a CPU their widest activation stays below the size from which the C library has
# the kernel zero fresh pages each time (`keep_freed_memory`).
_TOKENS_CPU, TOKENS_ACCELERATOR = 8_192, 65_536
_ACTIVATION_BYTES = 24 << 20


@contextmanager
def memory_errors(advice: Callable[[], str]) -> Iterator[None]:
    """Turn a refused allocation, on the host or a device, into a ConfigError that says what to lower."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise ConfigError(f"out of memory: {advice()}") from error
        raise


def keep_freed_memory() -> bool:
    """Tell glibc not to hand freed memory back to the kernel, which returns it page by page, zeroed.

    Without it a CPU spends up to a fifth of a training step on page faults, and of encoding long texts a
    third. It holds for the whole process from then on: its resident memory stays at its peak, except for what
    was asked for in pieces of 32 MiB and more. Elsewhere than on glibc it does nothing, and says so by False.
    """
    return _told({_MMAP_THRESHOLD: _LARGEST, _TRIM_THRESHOLD: 2**31 - 1})


def share_memory_among_threads() -> bool:
    """Tell glibc to serve threads that begin from now on from the memory of the first one.

    A thread otherwise gets memory of its own, which glibc hands back in pieces of 64 MiB whatever
    `keep_freed_memory` says: a model in such a thread takes 20 times as many page faults, and a tenth more
    time. Elsewhere than on glibc it does nothing, and says so by False.
    """
    return _told({_ARENA_MAX: 1})


def _told(options: dict[int, int]) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(option, value) for option, value in options.items())


def tokens_at_once(model: nn.Module) -> int:
    """As many as run fastest on a CPU; memory is hardly ever the limit."""
    from torch import nn  # a server of another's vectors needs no torch

    widest = max(
        (
            max(weight.shape[-2:])
            for layer in model.modules()
            if not isinstance(layer, nn.Embedding)
            for weight in layer.parameters(recurse=False)
            if weight.ndim > 1
        ),
        default=1,
    )
    size = next(model.parameters()).element_size()
    return min(_TOKENS_CPU, max(1, _ACTIVATION_BYTES // (widest * size)))


def batches(lengths: np.ndarray, budget: int) -> Iterator[np.ndarray]:
    """Numbers of texts, longest first, so many at a time as stay within the budget of tokens."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        within = int(np.searchsorted(np.cumsum(lengths[order[start : start + budget]]), budget, side="right"))
        stop = start + max(1, within)
        yield order[start:stop][::-1]  # ascending, as packed sequences are
        start = stop
