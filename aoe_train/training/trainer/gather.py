"""Rows of all ranks in one tensor, so that the loss of every rank is the loss of the whole batch."""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Shaped
from torch import Tensor

_LET_GO_S = 0.2  # long for a thread, short for a run


def is_distributed() -> bool:
    """Whether this process is one of several that train together."""
    return _is_in_group() and dist.get_world_size() > 1


def is_main() -> bool:
    """Whether this process is the one that writes and prints."""
    return not is_distributed() or dist.get_rank() == 0


def on_main(action: Callable[[], Any]) -> Any:
    """The result of `action`, which rank 0 alone calls, on every rank."""
    found = [action() if is_main() else None]
    if is_distributed():
        dist.broadcast_object_list(found, src=0)
    return found[0]


def exit_cleanly() -> None:
    """Leave the threads of the process group, where there is one, time to finish once this process ends.

    One of gloo's lets go of an exchange's tensors a moment after the exchange, for which it needs the
    interpreter; where that is ending already, the whole process aborts (PyTorch pull request 179291).
    """
    if _is_in_group():
        atexit.unregister(_let_go)  # once is enough
        atexit.register(_let_go)


def leave_group() -> None:
    """Part from the other processes, at the end of what went well; each must call it.

    After an error nobody should: it would wait for exchanges that the others never join.
    """
    if _is_in_group():
        dist.destroy_process_group()


def gather_rows(values: Shaped[Tensor, "row *rest"]) -> Shaped[Tensor, "all *rest"]:  # noqa: F821, UP037
    """The rows of every rank, in order of the ranks; each rank must hold as many rows as the others.

    All ranks then compute one and the same loss. A rank's rows get back their share of its gradient times the
    number of ranks: DistributedDataParallel takes the *mean* of the ranks' gradients, and each rank holds the
    only copy of its texts' graph, so the mean is exactly the gradient of one process with the whole batch
    (but for dropout, which each rank draws for its own rows).
    What comes after the gathering (a loss's own weights) has the same gradient on every rank, and keeps it.
    Nothing needs to be sent in the backward pass.
    """
    return _Gather.apply(values) if is_distributed() else values  # type: ignore[no-untyped-call]


def gather_numbers(numbers: Sequence[int]) -> list[int]:
    """The numbers of every rank on the host; each rank must call it."""
    parts: list[Any] = [numbers]
    if is_distributed():
        parts = [None] * dist.get_world_size()
        dist.all_gather_object(parts, list(numbers))
    return [number for part in parts for number in part]


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        ctx.rows = len(values)
        parts = [torch.empty_like(values) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, values.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (gradient,) = gradients
        own = gradient.narrow(0, dist.get_rank() * ctx.rows, ctx.rows)
        return own * dist.get_world_size()


def _is_in_group() -> bool:
    return dist.is_available() and dist.is_initialized()


def _let_go() -> None:
    time.sleep(_LET_GO_S)  # the interpreter is free meanwhile
