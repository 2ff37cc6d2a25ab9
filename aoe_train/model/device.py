"""Devices, transfers, memory, modes of a module, and functions excluded from torch.compile.

A plain copy to or from a GPU waits until the GPU is idle; with pinned memory the copy is queued instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, pairwise
from typing import Any, TypeVar, cast

import torch
from numpy import ndarray
from torch import Tensor
from torch._C._dynamo import eval_frame

from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line
from pairkit.base.system.machine import is_out_of_memory

Function = TypeVar("Function", bound=Callable[..., Any])


def find_device(name: str | torch.device | None) -> torch.device:
    """The device with this name; by default the accelerator if there is one, else the CPU."""
    if not name:
        accelerator = torch.accelerator.current_accelerator(check_available=True)
        return accelerator or torch.device("cpu")
    # A torch that was built without a device raises an AssertionError or ImportError.
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()  # not on `meta`, which has no numbers
    except (RuntimeError, AssertionError, ImportError) as error:
        raise ConfigError(
            f"device {name} isn't available ({one_line(str(error), 100)}); use {find_device(None)}"
        ) from error
    return device


def uncompiled(function: Function) -> Function:
    """Exclude a function and its callees from torch.compile, which would recompile them for every batch."""
    return _exclude(function, recursive=True)


def only_callees_compiled(function: Function) -> Function:
    """Exclude a function whose control flow differs with each batch; its callees are compiled."""
    return _exclude(function, recursive=False)


def _exclude(function: Function, *, recursive: bool) -> Function:
    if not hasattr(eval_frame, "set_code_exec_strategy"):  # not a public API of torch
        return cast("Function", torch.compiler.disable(function, recursive=recursive))  # type: ignore[no-untyped-call]
    # `torch.compiler.disable` does the same, but its import of the compiler takes as long as that of torch.
    actions = eval_frame._FrameAction
    marked: Any = function
    callees = actions.SKIP if recursive else actions.DEFAULT
    strategy = eval_frame._FrameExecStrategy(actions.SKIP, callees)
    eval_frame.set_code_exec_strategy(marked.__code__, strategy)
    marked._torchdynamo_disable = True
    return function


@uncompiled
def upload(values: Tensor | ndarray, device: torch.device) -> Tensor:
    """Copy `values` from the host to `device`."""
    on_host = torch.as_tensor(values)
    if device.type != "cuda":
        return on_host.to(device)
    return on_host.pin_memory().to(device, non_blocking=True)


def upload_batch(
    batch: Mapping[str, object], device: torch.device
) -> dict[str, object]:
    """Copy a batch to `device`; for a GPU, the data loader has pinned it."""
    tensors = {
        name: value.to(device, non_blocking=True)
        for name, value in batch.items()
        if isinstance(value, Tensor)
    }
    return {**batch, **tensors}


def downloaded(
    batches: Iterable[tuple[ndarray, Tensor]],
) -> Iterator[tuple[ndarray, ndarray]]:
    """Copy vectors to the host; each batch is awaited only after the next one was started."""
    started = ((texts, _start_download(vectors)) for texts, vectors in batches)
    end: Any = None  # the last batch has no next one
    for (texts, wait), _ in pairwise(chain(started, [end])):
        yield texts, wait()


def _start_download(values: Tensor) -> Callable[[], ndarray]:
    """Start copying `values` to the host; the returned function waits for them."""
    if values.device.type != "cuda":
        return values.cpu().numpy
    on_host = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
    on_host.copy_(values, non_blocking=True)
    copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
    copied.record(torch.cuda.current_stream(values.device))

    def wait() -> ndarray:
        copied.synchronize()
        return on_host.numpy()

    return wait


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread for small work, as waiting threads spin: they take up to ten times the CPU time."""
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(num_threads)


@contextmanager
def evaluation_mode(module: torch.nn.Module) -> Iterator[None]:
    """Run a module without dropout inside, and restore its mode even after an exception."""
    is_training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(is_training)


@contextmanager
def memory_errors(advice: str) -> Iterator[None]:
    """Turn an out-of-memory error of the host or a device into a ConfigError with advice."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise ConfigError(f"out of memory: {advice}") from error
        raise
