"""Dense layers behind the pooling, as sentence-transformers' `Dense` has them: weights, files, fresh ones.

A layer's folder has its `config.json` and `model.safetensors`, as sentence-transformers wants them. In model
folders of ours it is called `dense_1`, `dense_2` and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from aoe_train.settings.training import DenseSettings
from pairkit.app.errors import ConfigError, DataError
from pairkit.system.files import write_bytes, write_json

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

_WEIGHTS = "model.safetensors"
# By their names in settings; the classes' own names are what sentence-transformers' files have.
_ACTIVATIONS: dict[str, type[nn.Module]] = {
    kind.__name__.lower(): kind
    for kind in (
        *(nn.Identity, nn.ELU, nn.GELU, nn.LeakyReLU, nn.Mish, nn.ReLU, nn.ReLU6, nn.SELU, nn.SiLU),
        *(nn.Sigmoid, nn.Softplus, nn.Tanh),
    )
}


class DenseLayer(nn.Module):
    """A linear layer, its activation, and perhaps its input added to what comes out."""

    def __init__(self, settings: DenseSettings, inputs: int) -> None:
        super().__init__()
        self.settings = settings
        self.linear = nn.Linear(inputs, settings.size, bias=settings.bias)
        self.activation = _ACTIVATIONS[settings.activation]()
        if settings.residual and inputs != settings.size:
            self.residual = nn.Linear(inputs, settings.size, bias=False)

    def forward(self, vectors: Float[Tensor, "text in"]) -> Float[Tensor, "text out"]:
        """Vectors of `settings.size` numbers."""
        found: Tensor = self.activation(self.linear(vectors))
        if self.settings.residual:
            found = found + (self.residual(vectors) if hasattr(self, "residual") else vectors)
        return found


class DenseLayers(nn.ModuleList):
    """Dense layers one after the other; in float32 also where the backbone is not, as they are small."""

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[DenseLayer]: ...

    def __init__(self, layers: Sequence[DenseSettings], inputs: int) -> None:
        sizes = [inputs, *(layer.size for layer in layers)]
        super().__init__([DenseLayer(layer, size) for layer, size in zip(layers, sizes, strict=False)])
        self.dim = sizes[-1]

    def forward(self, vectors: Float[Tensor, "text in"]) -> Float[Tensor, "text out"]:
        """The last layer's vectors."""
        with torch.autocast(vectors.device.type, enabled=False):
            for head in self:
                vectors = head(vectors.to(head.linear.weight.dtype))
        return vectors.float()


def new_dense_layers(layers: Sequence[DenseSettings], inputs: int) -> DenseLayers:
    """Layers that have learnt nothing, drawn with torch's generator.

    Their rows are at right angles, so that cosines are kept as well as so many numbers can.
    """
    heads = DenseLayers(layers, inputs)
    for part in heads.modules():
        if isinstance(part, nn.Linear):
            nn.init.orthogonal_(part.weight)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
    return heads


def own_places(count: int) -> list[str]:
    """The layers' folders in a model folder of ours."""
    return [f"dense_{number}" for number in range(1, count + 1)]


def read_dense_layers(folders: Sequence[Path], layers: Sequence[DenseSettings], inputs: int) -> DenseLayers:
    """Layers with the weights that a model's folder has for them."""
    with torch.device("meta"):
        heads = DenseLayers(layers, inputs)
    for head, folder in zip(heads, folders, strict=True):
        read_weights(head, folder)
    return heads


def read_weights(layer: nn.Module, folder: Path) -> None:
    """Give a layer, which may be on the meta device, the weights of its folder; it can learn then."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = folder / _WEIGHTS
    if not path.is_file() and (pickled := sorted(folder.glob("*.bin"))):
        raise ConfigError(
            f"{folder}: weights only as {pickled[0].name}, a pickle, which can run code when loaded;"
            f" convert it to {_WEIGHTS} if you trust it"
        )
    try:
        found = load_file(path)
    except (OSError, SafetensorError) as error:
        raise DataError(f"not readable ({error}); copy or download the model again", path=path) from error
    shapes = {name: tuple(weight.shape) for name, weight in layer.state_dict().items()}
    if {name: tuple(weight.shape) for name, weight in found.items()} != shapes:
        raise DataError(
            f"weights of another shape than {shapes}, which config.json and the layer before it ask for;"
            " copy or download the model again",
            path=path,
        )
    layer.load_state_dict({name: weight.float() for name, weight in found.items()}, assign=True)
    layer.requires_grad_(requires_grad=True)


def write_weights(layer: nn.Module, folder: Path) -> None:
    """Write a layer's weights into its folder."""
    from safetensors.torch import save

    weights = {name: weight.detach().cpu().contiguous() for name, weight in layer.state_dict().items()}
    write_bytes(folder / _WEIGHTS, save(weights))


def write_dense_layers(folder: Path, heads: DenseLayers) -> None:
    """Write the layers' folders into a model's folder."""
    for place, head in zip(own_places(len(heads)), heads, strict=True):
        settings = head.settings
        config = {
            "in_features": head.linear.in_features,
            "out_features": settings.size,
            "bias": settings.bias,
            "activation_function": _full_name(type(head.activation)),
            **({"use_residual": True} if settings.residual else {}),  # unknown to older releases
        }
        write_json(folder / place / "config.json", config)
        write_weights(head, folder / place)


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
