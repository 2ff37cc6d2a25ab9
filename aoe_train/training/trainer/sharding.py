"""Weights, gradients and optimiser state shared out among the processes: PyTorch's FSDP, one unit a layer.

PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel (Zhao et al., VLDB 2023); here its second
version, `fully_shard`, in which a shared weight is a DTensor and keeps its name.

What it does not save: each process loads the whole model before it is cut, and under autocast the backward
pass keeps a layer's weights in half precision, unless layers are recomputed (`run.gradient_checkpointing`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from pairkit.app.errors import ConfigError

if TYPE_CHECKING or torch.distributed.is_available():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard
    from torch.distributed.tensor import DTensor, distribute_tensor
else:  # some builds of torch know one process only, in which nothing is ever shared out

    class DTensor:
        """No tensor is one."""

    class FSDPModule:
        """No module is one."""


def shard(model: nn.Module) -> None:
    """Leave each process its share of every weight, in place; each layer's are gathered while it runs.

    All processes must call it; they all get rank 0's weights.
    """
    for weight in model.parameters():
        if weight.requires_grad:  # the others came from the same file
            torch.distributed.broadcast(weight.data, src=0)
    device = next(model.parameters()).device
    mesh = init_device_mesh(device.type, (torch.distributed.get_world_size(),))
    try:
        for layer in repeated_layers(model):
            fully_shard(layer, mesh=mesh)
        whole_model = fully_shard(model, mesh=mesh)
    except ValueError as error:
        raise ConfigError(f"run.shard: this model can't be shared ({error}); leave it out") from error
    if hasattr(whole_model, "set_reduce_scatter_unused_params"):  # newer releases of torch
        # A weight that only some processes used this time, such as an expert's, is reduced by all of them.
        whole_model.set_reduce_scatter_unused_params(True)


def repeated_layers(model: nn.Module) -> list[nn.Module]:
    """The members of the outermost lists of modules, and of lists within them: what a model has many of."""
    found: list[nn.Module] = []
    for child in model.children():
        if not isinstance(model, nn.ModuleList) or isinstance(child, nn.ModuleList):
            found += repeated_layers(child)
        else:
            found.append(child)
    return found


def is_sharded(model: nn.Module) -> bool:
    """Whether `shard` was called."""
    return isinstance(model, FSDPModule)


@contextmanager
def unsharded_root(model: nn.Module) -> Iterator[None]:
    """Parts of the model may be called here by themselves, by all processes together, once the whole has run.

    A part's layers gather their weights; those that belong to no layer are gathered when the whole is called,
    or here.
    """
    if not isinstance(model, FSDPModule):
        yield
        return
    model.unshard()
    try:
        yield
    finally:
        model.reshard()


def copy_weights(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """A copy: of shares where they are, of whole weights in host memory."""
    return {
        name: weight.clone() if isinstance(weight, DTensor) else weight.cpu().clone()
        for name, weight in weights.items()
    }


def gather_weights(weights: dict[str, Tensor], *, main: bool) -> dict[str, Tensor]:
    """The weights in host memory, put together again.

    All processes must call it; `main` ones get the weights, and the others nothing.
    """
    found = {}
    for name, weight in weights.items():
        together = weight.full_tensor() if isinstance(weight, DTensor) else weight
        if main:
            found[name] = together.detach().cpu()
    return found


def shard_like(value: Tensor, weight: Tensor) -> Tensor:
    """`value` where `weight` is, and this process's share of it where `weight` is shared out."""
    value = value.to(weight.device)
    if isinstance(weight, DTensor) and not isinstance(value, DTensor):
        return distribute_tensor(value, weight.device_mesh, weight.placements, src_data_rank=None)
    return value


@torch.no_grad()
def unshard(model: nn.Module) -> None:
    """Give every process the whole weights again, in host memory; the model is only to be saved after it."""
    again: dict[int, nn.Parameter] = {}  # a weight that two modules share stays one
    for module in model.modules():
        for name, weight in module.named_parameters(recurse=False):
            if isinstance(weight, DTensor):
                if id(weight) not in again:
                    again[id(weight)] = nn.Parameter(
                        weight.full_tensor().cpu(), requires_grad=weight.requires_grad
                    )
                setattr(module, name, again[id(weight)])
