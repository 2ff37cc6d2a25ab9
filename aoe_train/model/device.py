"""Between the host and the device: transfers that don't wait, threads, and what torch.compile leaves alone.

A plain copy to or from a GPU waits for all that was asked of it before; with pinned memory it queues up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor
from torch._C._dynamo import eval_frame

if TYPE_CHECKING:
    pass


Function = TypeVar("Function", bound=Callable[..., Any])


def uncompiled(function: Function) -> Function:
    """Leave it, and all that it calls, as it is: torch.compile would compile it anew for every batch."""
    return _skipped(function, recursive=True)


def only_callees_compiled(function: Function) -> Function:
    """Leave it as it is, for it works by numbers that differ with each batch; what it calls is compiled."""
    return _skipped(function, recursive=False)


def _skipped(function: Function, *, recursive: bool) -> Function:
    if not hasattr(eval_frame, "set_code_exec_strategy"):  # no promise of torch's
        return cast("Function", torch.compiler.disable(function, recursive=recursive))  # type: ignore[no-untyped-call]
    # What `disable` does in the end; it also imports the whole compiler, which takes as long as torch itself.
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
