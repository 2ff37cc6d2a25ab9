"""A backbone's layers: keep only the first ones, train only the last ones, find the final norm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from aoe_train.model.text_model import PackedBackbone
from pairkit.base.errors import ConfigError

_PROBE_TOKENS = 4


def keep_layers(backbone: Any, count: int) -> None:
    """Remove all but the first `count` layers, from the backbone and its configuration, in place."""
    _, layers = _find_layers(backbone)
    whole, config = len(layers), backbone.config
    if not 1 <= count <= whole:
        raise ConfigError(f"layers {count}: this backbone has {whole} layers; expected 1 to {whole}")
    if count == whole:
        return
    del layers[count:]
    config.num_hidden_layers = count
    for name, value in vars(config).items():  # lists with an entry per layer
        if "layer" in name and isinstance(value, list) and len(value) == whole:
            setattr(config, name, value[:count])


def train_top_layers(backbone: Any, count: int) -> None:
    """Freeze all but the last `count` layers and the final norm, in place; frozen layers need no backward."""
    _, layers = _find_layers(backbone)
    if count > len(layers):
        raise ConfigError(
            f"optim.top_layers {count}: this backbone has {len(layers)} layers; expected 1 to {len(layers)}"
        )
    trained = [*layers[-count:]]
    if (norm := after_layers(backbone)) is not None:
        trained.append(norm)
    trainable = {id(weight) for part in trained for weight in part.parameters()}
    for weight in backbone.parameters():
        if id(weight) not in trainable:
            weight.requires_grad_(requires_grad=False)


def count_layers(backbone: Any) -> int:
    """The number of layers."""
    return len(_find_layers(backbone)[1])


def has_deep_layers(backbone: Any) -> bool:
    """Whether there are layers below the last two, which the preset domain freezes."""
    try:
        return count_layers(backbone) > 2
    except ConfigError:
        return False


@torch.no_grad()
def after_layers(backbone: Any) -> nn.Module | None:
    """The norm between the last layer and the backbone's output, or None; found by running the backbone."""
    parent, layers = _find_layers(backbone)
    outputs: list[Tensor] = []
    hook = layers[-1].register_forward_hook(
        lambda _layer, _inputs, output: outputs.append(output[0] if isinstance(output, tuple) else output)
    )
    training = backbone.training
    backbone.eval()
    try:
        ids = torch.arange(_PROBE_TOKENS, device=next(backbone.parameters()).device)[None]
        final = backbone(input_ids=ids).last_hidden_state
        if _equal(outputs[0], final):
            return None
        for part in parent.children():
            if "norm" in type(part).__name__.lower() and _equal(part(outputs[0]), final):
                return part
    finally:
        hook.remove()
        backbone.train(training)
    raise ConfigError(
        f"{type(backbone).__name__}: its last layer is followed by more than a norm, so earlier layers can't"
        " replace it; leave layers out"
    )


def _equal(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.allclose(a, b)


def _find_layers(backbone: Any) -> tuple[nn.Module, nn.ModuleList]:
    """The list of layers, and the module that contains it."""
    count = getattr(backbone.config, "num_hidden_layers", None)
    candidates = [(parent, layers) for parent, layers in _module_lists(backbone) if len(layers) == count]
    if len(candidates) != 1 or isinstance(backbone, PackedBackbone):
        raise ConfigError(
            f"{type(backbone).__name__}: has no single list of layers that run one after the other; leave"
            " layers out"
        )
    return candidates[0]


def _module_lists(module: nn.Module) -> Iterator[tuple[nn.Module, nn.ModuleList]]:
    for child in module.children():
        if isinstance(child, nn.ModuleList):
            yield module, child
        else:
            yield from _module_lists(child)
