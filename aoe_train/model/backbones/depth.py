"""A backbone's layers: the first of them alone, and what comes after the last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from pairkit.app.errors import ConfigError

_PROBE = 4  # tokens


def keep_layers(backbone: Any, count: int) -> None:
    """Leave the first `count` layers, in place; the configuration says so, and is saved with them."""
    _, layers = _listed(backbone)
    whole, config = len(layers), backbone.config
    if not 1 <= count <= whole:
        raise ConfigError(f"layers {count}: this backbone has {whole} layers; expected 1 to {whole}")
    if count == whole:
        return
    del layers[count:]
    config.num_hidden_layers = count
    for name, value in vars(config).items():  # what it says of each layer
        if "layer" in name and isinstance(value, list) and len(value) == whole:
            setattr(config, name, value[:count])


def train_top_layers(backbone: Any, count: int) -> None:
    """Let only the last `count` layers learn, and what comes after them, in place.

    Layers below the first that learns need no backward pass.
    """
    _, layers = _listed(backbone)
    if count > len(layers):
        raise ConfigError(
            f"optim.top_layers {count}: this backbone has {len(layers)} layers; expected 1 to {len(layers)}"
        )
    learn = [*layers[-count:]]
    if (last := after_layers(backbone)) is not None:
        learn.append(last)
    wanted = {id(weight) for part in learn for weight in part.parameters()}
    for weight in backbone.parameters():
        if id(weight) not in wanted:
            weight.requires_grad_(requires_grad=False)


def count_layers(backbone: Any) -> int:
    """How many layers there are."""
    return len(_listed(backbone)[1])


@torch.no_grad()
def after_layers(backbone: Any) -> nn.Module | None:
    """What makes the last layer's output the backbone's: a norm, or nothing (None), asked of the backbone."""
    parent, layers = _listed(backbone)
    found: list[Tensor] = []
    hook = layers[-1].register_forward_hook(
        lambda *given: found.append(given[2][0] if isinstance(given[2], tuple) else given[2])
    )
    training = backbone.training
    backbone.eval()
    try:
        ids = torch.arange(_PROBE, device=next(backbone.parameters()).device)[None]
        last = backbone(input_ids=ids).last_hidden_state
        if _same(found[0], last):
            return None
        norms = [part for part in parent.children() if "norm" in type(part).__name__.lower()]
        for norm in norms:
            if _same(norm(found[0]), last):
                return norm
    finally:
        hook.remove()
        backbone.train(training)
    raise ConfigError(
        f"{type(backbone).__name__}: does more than a norm after its last layer, so that earlier ones can't"
        " stand in for it; leave layers out"
    )


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.allclose(one, other)


def _listed(backbone: Any) -> tuple[nn.Module, nn.ModuleList]:
    """The list of layers, and the part that runs it."""
    count = getattr(backbone.config, "num_hidden_layers", None)
    found = [(parent, layers) for parent, layers in _lists(backbone) if len(layers) == count]
    if len(found) != 1 or hasattr(backbone, "forward_packed"):
        raise ConfigError(
            f"{type(backbone).__name__}: has no list of layers that run one after the other, each by itself;"
            " leave layers out"
        )
    return found[0]


def _lists(module: nn.Module) -> Iterator[tuple[nn.Module, nn.ModuleList]]:
    for child in module.children():
        if isinstance(child, nn.ModuleList):
            yield module, child
        else:
            yield from _lists(child)
