"""BERT-flow (Li et al., EMNLP 2020, arXiv 2011.05864): vectors that are distributed as a Gaussian.

An invertible map f, a flow, is fitted to the vectors u of unlabelled texts, while the
encoder stays as it is, so that z = f(u) has the highest likelihood under a standard Gaussian (Section 3
there): the mean of log N(f(u); 0, I) + log |det df/du|. z takes the place of u. As in the authors' code there
are two levels of three steps, whose small networks are 32 wide and only add; their inner normalisation is
left out. Each text is seen once: a flow that sees few texts often learns them by heart.

The flow is Glow (Kingma and Dhariwal, 2018) as BERT-flow has it: a step shifts and scales each number,
reverses their order, and adds to the second half of the numbers what a small network makes of the first half.
After the steps of a level the second half is done, and the first goes on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import torch
from torch import nn

from pairkit.app.errors import ConfigError, DataError

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float
    from torch import Tensor

    from papers.methods.base import Encode

_LEVELS, _DEPTH, _WIDTH = 2, 3, 32
_LR, _BATCH = 1e-3, 64
_LEAST = 4  # numbers of a vector that two levels can halve
_NOTHING = 1e-3  # share of the usual deviation below which a number is constant


def with_flow(encode: Encode, texts: Sequence[str], *, seed: int = 42) -> Encode:
    """`encode` with a flow behind it that is fitted to its vectors of `texts`."""
    flow = fit_flow(encode(list(texts)), seed=seed)

    def latent(texts: list[str]) -> np.ndarray:
        with torch.no_grad():
            found: np.ndarray = flow(torch.from_numpy(encode(texts))).numpy()
        return found

    return latent


def fit_flow(vectors: np.ndarray, *, seed: int = 42) -> Flow:
    """A flow of these vectors, float32 (text, dim)."""
    count, dim = vectors.shape
    if dim < _LEAST or count < 2:
        raise (ConfigError if dim < _LEAST else DataError)(
            f"flow: found {count} vectors of {dim} numbers; expected at least 2 of {_LEAST}"
        )
    given = torch.from_numpy(vectors)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        flow = Flow(dim)
        flow.begin(given)
        _learn(flow, given)
    return flow.eval()


def surprise(flow: Flow, vectors: Float[Tensor, "text dim"]) -> Float[Tensor, ""]:
    """The mean negative log-likelihood of vectors, in nats."""
    latent: Tensor = flow(vectors)
    constant = latent.shape[1] * math.log(2 * math.pi)
    return (latent.square().sum(1).mean() + constant) / 2 - flow.log_volume


def _learn(flow: Flow, vectors: Float[Tensor, "text dim"]) -> None:
    optimiser = torch.optim.Adam(flow.parameters(), lr=_LR)
    batches = torch.split(torch.randperm(len(vectors)), _BATCH)
    for batch in batches:
        optimiser.zero_grad()
        loss = surprise(flow, vectors[batch]) / vectors.shape[1]
        torch.autograd.backward(loss)
        optimiser.step()


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
    """All steps; in float32, as dense layers are."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        sizes = [dim >> level for level in range(_LEVELS)]
        self.levels = nn.ModuleList(
            nn.Sequential(*(FlowStep(size, _WIDTH) for _ in range(_DEPTH))) for size in sizes
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
