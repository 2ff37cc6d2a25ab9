"""Training in several processes: gathering of rows, and sharding of weights.

Every rank computes the loss of the whole batch. Weights, gradients and optimiser state can be sharded by
PyTorch's FSDP (Zhao et al., VLDB 2023) with one unit per layer: `fully_shard`, with weights as DTensors.
Still, each process loads the whole model first, and under autocast the backward pass keeps a layer's weights
in half precision unless layers are recomputed (`run.gradient_checkpointing`).
"""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import torch.distributed as dist
from jaxtyping import Shaped
from torch import Tensor, nn

from pairkit.base.errors import ConfigError

T = TypeVar("T")
_EXIT_DELAY_S = 0.2


def is_distributed() -> bool:
    """Whether several processes train together."""
    return _has_group() and dist.get_world_size() > 1


def _has_group() -> bool:
    """Whether there is a process group, even of one process."""
    return dist.is_available() and dist.is_initialized()


def is_main() -> bool:
    """Whether this process writes and prints."""
    return not is_distributed() or dist.get_rank() == 0


def on_main(action: Callable[[], T]) -> T:
    """The result of `action` on every rank; only rank 0 calls it."""
    if not is_distributed():
        return action()
    results: list[Any] = [action() if is_main() else None]
    dist.broadcast_object_list(results, src=0)
    return results[0]  # type: ignore[no-any-return]


def wait_for_all() -> None:
    """Wait for all ranks."""
    if is_distributed():
        dist.barrier()


def exit_cleanly() -> None:
    """Delay the exit, so that the process group's threads can finish.

    A thread of gloo needs the interpreter to release tensors shortly after an exchange. If the interpreter is
    shutting down already, the process aborts (PyTorch pull request 179291).
    """
    if _has_group():
        atexit.unregister(time.sleep)  # register it once only
        atexit.register(time.sleep, _EXIT_DELAY_S)  # releases the interpreter


def leave_group() -> None:
    """Leave the process group; only after success, as a process with an error would wait forever."""
    if _has_group():
        dist.destroy_process_group()


def gather_rows(values: Shaped[Tensor, "row *rest"]) -> Shaped[Tensor, "all *rest"]:  # noqa: F821, UP037
    """The rows of all ranks in order of ranks; each rank must have the same number of rows.

    All ranks then compute the same loss. In the backward pass each rank takes the gradient of its own rows,
    times the number of ranks: DistributedDataParallel averages the gradients, and only one rank has the graph
    of a row, so the average is the gradient of one process with the whole batch (except for dropout). Weights
    of the loss itself have the same gradient on every rank. The backward pass sends nothing.
    """
    return _Gather.apply(values) if is_distributed() else values  # type: ignore[no-untyped-call]


def gather_objects(value: object) -> list[Any]:
    """The values of all ranks; each rank must call it."""
    if not is_distributed():
        return [value]
    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


class _Gather(torch.autograd.Function):
    """`gather_rows` and its backward pass."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        ctx.rows = len(values)
        parts = [torch.empty_like(values) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, values.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (gradient,) = gradients
        part = gradient.narrow(0, dist.get_rank() * ctx.rows, ctx.rows)
        return part * dist.get_world_size()


if TYPE_CHECKING or torch.distributed.is_available():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard
    from torch.distributed.tensor import DTensor, distribute_tensor
else:  # builds of torch for a single process, where nothing is sharded

    class DTensor:
        """Placeholder: no tensor is an instance."""

    class FSDPModule:
        """Placeholder: no module is an instance."""


def shard(model: nn.Module) -> None:
    """Shard every weight in place, starting from rank 0's; all processes must call it."""
    for weight in model.parameters():
        if weight.requires_grad:  # frozen weights are equal already
            torch.distributed.broadcast(weight.data, src=0)
    device = next(model.parameters()).device
    mesh = init_device_mesh(device.type, (torch.distributed.get_world_size(),))
    try:
        for layer in repeated_layers(model):
            fully_shard(layer, mesh=mesh)
        whole_model = fully_shard(model, mesh=mesh)
    except ValueError as error:
        raise ConfigError(
            f"run.shard: this model can't be sharded ({error}); leave it out"
        ) from error
    # Only newer releases of torch have the method. All processes must reduce a weight even if only some used it,
    # such as an expert's.
    if hasattr(whole_model, "set_reduce_scatter_unused_params"):
        whole_model.set_reduce_scatter_unused_params(True)


def repeated_layers(model: nn.Module) -> list[nn.Module]:
    """The members of the outermost module lists, and of lists within these."""
    layers: list[nn.Module] = []
    for child in model.children():
        if not isinstance(model, nn.ModuleList) or isinstance(child, nn.ModuleList):
            layers += repeated_layers(child)
        else:
            layers.append(child)
    return layers


def is_sharded(model: nn.Module) -> bool:
    """Whether the model is sharded."""
    return isinstance(model, FSDPModule)


def run_on_main(model: nn.Module, action: Callable[[], T]) -> T:
    """As `on_main` for an `action` that runs parts of the model, which all ranks run if it is sharded.

    A sharded model must have run as a whole before.
    """
    if not isinstance(model, FSDPModule):
        return on_main(action)
    model.unshard()  # gathers weights outside layers
    try:
        result = action()
    finally:
        model.reshard()
    return on_main(lambda: result)


def trained_weights(model: nn.Module) -> dict[str, Tensor]:
    """The trained weights by name; frozen ones come with the backbone."""
    return {
        name: weight.detach()
        for name, weight in model.named_parameters()
        if weight.requires_grad
    }


def copy_weights(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copies of the weights: shards in place, whole weights in host memory."""
    return {
        name: (weight if isinstance(weight, DTensor) else weight.cpu()).clone()
        for name, weight in weights.items()
    }


def gather_weights(weights: dict[str, Tensor], *, main: bool) -> dict[str, Tensor]:
    """The unsharded weights in host memory if `main`, else nothing; all processes must call it."""
    gathered = {}
    for name, weight in weights.items():
        if isinstance(weight, DTensor):
            weight = weight.full_tensor()
        if main:
            gathered[name] = weight.detach().cpu()
    return gathered


def shard_like(value: Tensor, weight: Tensor) -> Tensor:
    """`value` on the device of `weight`, sharded if `weight` is."""
    value = value.to(weight.device)
    if isinstance(weight, DTensor) and not isinstance(value, DTensor):
        return distribute_tensor(
            value, weight.device_mesh, weight.placements, src_data_rank=None
        )
    return value


@torch.no_grad()
def unshard(model: nn.Module) -> None:
    """Gather the whole weights on every process, in host memory; afterwards the model can only be saved."""
    gathered: dict[int, nn.Parameter] = {}  # by id, since modules can share a weight
    for module in model.modules():
        for name, weight in module.named_parameters(recurse=False):
            if not isinstance(weight, DTensor):
                continue
            if id(weight) not in gathered:
                whole = weight.full_tensor().cpu()
                gathered[id(weight)] = nn.Parameter(whole, weight.requires_grad)
            setattr(module, name, gathered[id(weight)])
