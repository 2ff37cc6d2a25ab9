"""An invertible flow behind the pooling: what BERT-flow makes of vectors.

Glow (Kingma and Dhariwal, 2018) as BERT-flow has it (Li et al., EMNLP 2020, arXiv 2011.05864): a step shifts
and scales each number, turns their order round, and adds to the second half of the numbers what a small
network says of the first half. After the steps of a level the second half is done, and the first goes on.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch
from torch import nn

from aoe_train._heads import read_weights, write_weights
from aoe_train._settings import FlowSettings

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

_FOLDER = "flow"
_NOTHING = 1e-3  # share of the usual deviation below which a number says nothing


class FlowStep(nn.Module):
    """One step; it begins as the identity in another order."""

    def __init__(self, dim: int, width: int) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(dim))
        self.scale = nn.Parameter(torch.zeros(dim))
        first = dim // 2
        self.coupling = nn.Sequential(
            *(nn.Linear(first, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()),
            nn.Linear(width, dim - first),
        )
        for weight in self.coupling[-1].parameters():
            nn.init.zeros_(weight)

    def forward(self, vectors: Float[Tensor, "*text dim"]) -> Float[Tensor, "*text dim"]:
        """Vectors after the step."""
        scaled = ((vectors + self.shift) * self.scale.exp()).flip(-1)
        first = scaled.shape[-1] // 2
        one, other = scaled[..., :first], scaled[..., first:]
        return torch.cat([one, other + self.coupling(one)], dim=-1)

    @torch.no_grad()
    def begin(self, vectors: Float[Tensor, "text dim"]) -> Float[Tensor, "text dim"]:
        """Shift and scale so that these vectors' numbers have mean 0 and variance 1; gives what comes out.

        A number that hardly differs, as one of all-MiniLM-L6-v2's, is scaled as the others are on average.
        """
        self.shift.copy_(-vectors.mean(0))
        spread = vectors.std(0, correction=0)
        usual = spread.mean().clamp_min(torch.finfo(spread.dtype).tiny)
        self.scale.copy_(-torch.where(spread > _NOTHING * usual, spread, usual).log())
        return self(vectors)  # type: ignore[no-any-return]


class Flow(nn.Module):
    """All steps; in float32, as dense layers are.

    Args:
        settings: How many, and how wide the small networks are.
        dim: Numbers of a vector, before and after.
    """

    def __init__(self, settings: FlowSettings, dim: int) -> None:
        super().__init__()
        sizes = [dim >> level for level in range(settings.levels)]
        self.levels = nn.ModuleList(
            nn.Sequential(*(FlowStep(size, settings.width) for _ in range(settings.depth))) for size in sizes
        )

    def forward(self, vectors: Float[Tensor, "*text dim"]) -> Float[Tensor, "*text dim"]:
        """Their latent vectors."""
        done: list[Tensor] = []
        with torch.autocast(vectors.device.type, enabled=False):
            rest = vectors.float()
            for level in self.levels:
                whole = level(rest)
                rest = whole[..., : whole.shape[-1] // 2]
                done.append(whole[..., whole.shape[-1] // 2 :])
        return torch.cat([*done, rest], dim=-1)

    @property
    def log_volume(self) -> Float[Tensor, ""]:
        """Log |det| of the map's derivative, the same everywhere: only scales change volumes."""
        steps = [part for part in self.modules() if isinstance(part, FlowStep)]
        return torch.stack([step.scale.sum() for step in steps]).sum()

    @torch.no_grad()
    def begin(self, vectors: Float[Tensor, "text dim"]) -> None:
        """Let each step begin by what comes into it."""
        for level in self.levels:
            for step in level.children():
                vectors = cast("FlowStep", step).begin(vectors)
            vectors = vectors[:, : vectors.shape[1] // 2]


def read_flow(folder: Path, settings: FlowSettings, dim: int) -> Flow:
    """The flow of a model folder of ours.

    Raises:
        DataError: Weights that are damaged, not there, or of another shape.
    """
    with torch.device("meta"):
        found = Flow(settings, dim)
    read_weights(found, folder / _FOLDER)
    return found


def write_flow(folder: Path, flow: Flow) -> None:
    """Write it into a model's folder."""
    write_weights(flow, folder / _FOLDER)
