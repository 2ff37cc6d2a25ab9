"""The small parts that RAN's recurrence and memory review are made of."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its usual name

from aoe_train.model.backbones.ran.configuration import LayerNormStyle, RanConfig

Rotary = tuple[Float[Tensor, "slot half"], Float[Tensor, "slot half"]]


def normalise(x: Float[Tensor, "... dim"], eps: float, style: LayerNormStyle) -> Float[Tensor, "... dim"]:
    """Layer normalisation without parameters.

    `second-moment` is (x - mean) / sqrt(mean(x²) + eps): what the published checkpoints were trained with.
    """
    if style == "standard":
        return F.layer_norm(x, x.shape[-1:], eps=eps)
    wide = x.float()
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return ((wide - wide.mean(-1, keepdim=True)) * scale).to(x.dtype)


class RanLayerNorm(nn.Module):
    """Layer normalisation in the configured style; the name tells transformers how to initialise it."""

    def __init__(self, config: RanConfig) -> None:
        super().__init__()
        self.eps, self.style = config.layer_norm_eps, config.ln_style
        self.weight = nn.Parameter(torch.ones(config.hidden_size))
        self.bias = nn.Parameter(torch.zeros(config.hidden_size))

    def forward(self, x: Float[Tensor, "... dim"]) -> Float[Tensor, "... dim"]:
        """Normalise each vector."""
        if self.style == "standard":
            return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)
        return normalise(x, self.eps, self.style) * self.weight + self.bias


class GatedLinearUnit(nn.Module):
    """(x W1 + b1) * sigmoid(x W2 + b2), both products in one."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.value_gate = nn.Linear(dim, 2 * dim)

    def forward(self, x: Float[Tensor, "... dim"]) -> Float[Tensor, "... dim"]:
        """Gate each vector by itself."""
        return F.glu(self.value_gate(x), dim=-1)


def rotary_table(slots: int, head_dim: int, base: float, device: torch.device) -> Rotary:
    """Cosine and sine of each slot's angles, one for each pair of neighbouring dimensions."""
    frequencies = base ** (-torch.arange(0, head_dim, 2, device=device, dtype=torch.float32) / head_dim)
    angles = torch.arange(slots, device=device)[:, None] * frequencies
    return angles.cos(), angles.sin()


def rotate(
    x: Float[Tensor, "row head slot head_dim"], rotary: Rotary
) -> Float[Tensor, "row head slot head_dim"]:
    """Turn the dimensions (2k, 2k + 1) of every slot by that slot's k-th angle."""
    cos, sin = (table[: x.shape[2]] for table in rotary)
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, odd * cos + even * sin], dim=-1).flatten(-2).to(x.dtype)
