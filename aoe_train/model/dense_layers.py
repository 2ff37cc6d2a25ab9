"""Dense layers after the pooling, as in sentence-transformers' `Dense`.

Each layer has a folder with `config.json` and `model.safetensors` in sentence-transformers' format. In our
model folders these are called `dense_1`, `dense_2` and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import torch
from torch import Tensor, nn

from aoe_train.settings.run_settings import Activation, DenseSettings
from pairkit.base.errors import ConfigError, DataError
from pairkit.base.system.files import write_bytes, write_json

if TYPE_CHECKING:
    from jaxtyping import Float

_WEIGHTS = "model.safetensors"
# Classes by their names in settings; sentence-transformers' files contain the class names.
_ACTIVATIONS: dict[str, type[nn.Module]] = {
    name.lower(): layer
    for name, layer in vars(nn).items()
    if name.lower() in get_args(Activation)
}


class DenseLayer(nn.Module):
    """A linear layer with an activation and an optional residual connection."""

    def __init__(self, settings: DenseSettings, inputs: int) -> None:
        super().__init__()
        self.settings = settings
        self.linear = nn.Linear(inputs, settings.size, bias=settings.bias)
        self.activation = _ACTIVATIONS[settings.activation]()
        if settings.residual and inputs != settings.size:
            self.residual = nn.Linear(inputs, settings.size, bias=False)

    def forward(self, vectors: Float[Tensor, "text in"]) -> Float[Tensor, "text out"]:
        """Apply the layer."""
        output: Tensor = self.activation(self.linear(vectors))
        if not self.settings.residual:
            return output
        if hasattr(self, "residual"):
            vectors = self.residual(vectors)
        return output + vectors


class DenseLayers(nn.ModuleList):
    """A sequence of dense layers; their output is float32 even under autocast."""

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[DenseLayer]: ...

    def __init__(self, layers: Sequence[DenseSettings], inputs: int) -> None:
        super().__init__()
        self.dim = inputs
        for settings in layers:
            self.append(DenseLayer(settings, self.dim))
            self.dim = settings.size

    def forward(self, vectors: Float[Tensor, "text in"]) -> Float[Tensor, "text out"]:
        """Apply all layers."""
        with torch.autocast(vectors.device.type, enabled=False):
            for layer in self:
                vectors = layer(vectors.to(layer.linear.weight.dtype))
        return vectors.float()


def new_dense_layers(layers: Sequence[DenseSettings], inputs: int) -> DenseLayers:
    """Untrained layers with random orthogonal weights, which preserve cosines as far as their size allows."""
    dense = DenseLayers(layers, inputs)
    for part in dense.modules():
        if isinstance(part, nn.Linear):
            nn.init.orthogonal_(part.weight)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
    return dense


def dense_names(count: int) -> list[str]:
    """The layers' folders in one of our model folders."""
    return [f"dense_{number}" for number in range(1, count + 1)]


def read_dense_layers(
    folders: Sequence[Path],
    layers: Sequence[DenseSettings],
    inputs: int,
) -> DenseLayers:
    """Read trained layers."""
    with torch.device("meta"):
        dense = DenseLayers(layers, inputs)
    for layer, folder in zip(dense, folders, strict=True):
        _read_weights(layer, folder)
    return dense


def _read_weights(layer: nn.Module, folder: Path) -> None:
    """Load a folder's weights into a layer, which may be on the meta device, and make it trainable."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = folder / _WEIGHTS
    pickled = sorted(folder.glob("*.bin"))
    if pickled and not path.is_file():
        raise ConfigError(
            f"{folder}: its only weights are {pickled[0].name}, a pickle, which can run code when loaded; if"
            " you trust it, load and save the model with a new release of sentence-transformers"
        )
    try:
        stored = load_file(path)
    except (OSError, SafetensorError) as error:
        raise DataError(
            f"not readable ({error}); copy or download the model again", path=path
        ) from error
    shapes, expected = (
        {name: tuple(weight.shape) for name, weight in weights.items()}
        for weights in (stored, layer.state_dict())
    )
    if shapes != expected:
        raise DataError(
            f"expected weights of the shapes {expected}, which follow from config.json and the previous layer;"
            " copy or download the model again",
            path=path,
        )
    weights = {name: weight.float() for name, weight in stored.items()}
    layer.load_state_dict(weights, assign=True)
    layer.requires_grad_(requires_grad=True)


def write_dense_layers(folder: Path, dense: DenseLayers) -> None:
    """Write a folder for each layer into a model folder."""
    from safetensors.torch import save

    for name, layer in zip(dense_names(len(dense)), dense, strict=True):
        settings = layer.settings
        activation = type(layer.activation)
        config = {
            "in_features": layer.linear.in_features,
            "out_features": settings.size,
            "bias": settings.bias,
            "activation_function": f"{activation.__module__}.{activation.__qualname__}",
        }
        if settings.residual:  # older releases don't know the key
            config["use_residual"] = True
        write_json(folder / name / "config.json", config)
        weights = {
            key: weight.detach().cpu().contiguous()
            for key, weight in layer.state_dict().items()
        }
        write_bytes(folder / name / _WEIGHTS, save(weights))
