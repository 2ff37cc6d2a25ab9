"""Maps of a frozen encoder's vectors that are fitted to texts without labels: whitening and flows.

BERT-whitening (Su et al., 2021, arXiv 2103.15316) is a linear map to vectors of unit covariance. Algorithm 1
there: mu and Sigma are the mean and covariance of the vectors of a corpus, Sigma = U Lambda U^T with
eigenvalues in descending order. A vector x becomes (x - mu) W, where W has the first k columns of U
Lambda^(-1/2).

BERT-flow (Li et al., EMNLP 2020, arXiv 2011.05864) is an invertible map f (a flow) of the vectors u. It
maximises the likelihood of z = f(u) under a standard Gaussian (Section 3 there), the mean of
log N(f(u); 0, I) + log |det df/du|; z then replaces u. As in the authors' code there are two levels of three
steps with additive coupling networks of width 32, but without their inner normalisation. Each text is seen
once, because a flow overfits if it sees few texts often.

The flow is Glow (Kingma and Dhariwal, 2018) as in BERT-flow: a step shifts and scales each dimension,
reverses the order of dimensions, and adds a function of the first half to the second half. After the steps of
a level the second half is final; the next level continues with the first half.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import nn

from pairkit.base.errors import ConfigError, DataError

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from papers.methods.base import Encode

# Eigenvalues below this share of the largest one are rounding errors; scaling their directions to unit
# variance would add noise to the vectors. all-MiniLM-L6-v2 has three such directions.
_ROUNDING = 1e-7
_LEVELS = 2
_DEPTH = 3  # steps of a level
_WIDTH = 32
_LR = 1e-3
_BATCH = 64
_MIN_DIM = 4  # so that two levels can halve it
_CONSTANT = 1e-3  # deviation of a constant dimension, as a share of the mean deviation


def whitened(encode: Encode, texts: Sequence[str], dim: int | None = None) -> Encode:
    """`encode` followed by a whitening that is fitted to the vectors of `texts`."""
    weight, bias = whitening(encode(list(texts)), dim)
    return lambda texts: encode(texts) @ weight.T + bias


def whitening(
    vectors: np.ndarray,
    dim: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """The map's weight W^T (dim, in) and bias (dim,), float32.

    The sign of each direction is arbitrary; its largest element is made positive, so that machines agree.
    """
    width = vectors.shape[1]
    if dim is not None and dim > width:
        raise ConfigError(
            f"whitening: dim = {dim}, expected at most {width}, the dimension of the vectors"
        )
    centred = vectors.astype(np.float64)
    mean = centred.mean(axis=0)
    centred -= mean
    covariance = centred.T @ centred / len(centred)
    ascending, eigenvectors = np.linalg.eigh(covariance)
    values = ascending[::-1]
    directions = eigenvectors[:, ::-1]
    is_spanned = values > max(_ROUNDING * values[0], 0)
    spanned = int(is_spanned.sum())
    kept = spanned if dim is None else dim
    if spanned < max(kept, 1):
        raise DataError(
            f"whitening: the vectors of {len(vectors):,} texts span {spanned} directions, expected"
            f" {max(kept, 1)}; use more texts or a smaller dim"
        )
    largest = np.abs(directions).argmax(axis=0)
    signs = np.sign(directions[largest, np.arange(width)])
    signed = directions * signs
    weight = signed[:, :kept].T / np.sqrt(values[:kept, None])
    bias = -weight @ mean
    return weight.astype(np.float32), bias.astype(np.float32)


def with_flow(encode: Encode, texts: Sequence[str], *, seed: int) -> Encode:
    """`encode` followed by a flow that is fitted to the vectors of `texts`."""
    flow = fit_flow(encode(list(texts)), seed=seed)

    @torch.no_grad()
    def encode_latent(texts: list[str]) -> np.ndarray:
        latent: np.ndarray = flow(torch.from_numpy(encode(texts))).numpy()
        return latent

    return encode_latent


def fit_flow(vectors: np.ndarray, *, seed: int = 42) -> Flow:
    """A flow fitted to vectors, float32 (text, dim)."""
    count, dim = vectors.shape
    unusable = f"flow: found {count} vectors of {dim} dimensions; expected 2 or more of at least {_MIN_DIM}"
    if dim < _MIN_DIM:
        raise ConfigError(unusable)
    if count < 2:
        raise DataError(unusable)
    data = torch.from_numpy(vectors)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        flow = Flow(dim)
        flow.initialise(data)

        optimiser = torch.optim.Adam(flow.parameters(), lr=_LR)
        for batch in torch.split(torch.randperm(count), _BATCH):
            optimiser.zero_grad()
            loss = negative_log_likelihood(flow, data[batch]) / dim
            torch.autograd.backward(loss)
            optimiser.step()
    return flow.eval()


def negative_log_likelihood(
    flow: Flow, vectors: Float[Tensor, "text dim"]
) -> Float[Tensor, ""]:
    """The mean over vectors, in nats."""
    latent: Tensor = flow(vectors)
    constant = latent.shape[1] * math.log(2 * math.pi)
    mean_square = latent.square().sum(1).mean()
    return (mean_square + constant) / 2 - flow.log_volume


def _halves(vectors: Float[Tensor, "*text dim"]) -> tuple[Tensor, Tensor]:
    half = vectors.shape[-1] // 2
    return vectors[..., :half], vectors[..., half:]


class FlowStep(nn.Module):
    """One step; before training it only reverses the dimensions."""

    def __init__(self, dim: int, width: int) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(dim))
        self.scale = nn.Parameter(torch.zeros(dim))
        first = dim // 2
        self.coupling = nn.Sequential(
            nn.Linear(first, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, dim - first),
        )
        for weight in self.coupling[-1].parameters():
            nn.init.zeros_(weight)

    def forward(
        self, vectors: Float[Tensor, "*text dim"]
    ) -> Float[Tensor, "*text dim"]:
        """Apply the step."""
        scaled = (vectors + self.shift) * self.scale.exp()
        first, second = _halves(scaled.flip(-1))
        return torch.cat([first, second + self.coupling(first)], dim=-1)

    @torch.no_grad()
    def initialise(
        self, vectors: Float[Tensor, "text dim"]
    ) -> Float[Tensor, "text dim"]:
        """Set shift and scale so that the dimensions of these vectors get mean 0 and variance 1; return them.

        A constant dimension (all-MiniLM-L6-v2 has one) is scaled by the mean deviation instead.
        """
        self.shift.copy_(-vectors.mean(0))
        deviation = vectors.std(0, correction=0)
        mean = deviation.mean().clamp_min(torch.finfo(deviation.dtype).tiny)
        is_constant = deviation <= _CONSTANT * mean
        self.scale.copy_(-torch.where(is_constant, mean, deviation).log())
        return self(vectors)  # type: ignore[no-any-return]


class Flow(nn.Module):
    """All levels, in float32."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.levels = nn.ModuleList()
        for level in range(_LEVELS):
            steps = [FlowStep(dim >> level, _WIDTH) for _ in range(_DEPTH)]
            self.levels.append(nn.Sequential(*steps))

    def forward(
        self, vectors: Float[Tensor, "*text dim"]
    ) -> Float[Tensor, "*text dim"]:
        """The latent vectors."""
        final: list[Tensor] = []
        with torch.autocast(vectors.device.type, enabled=False):
            rest = vectors.float()
            for level in self.levels:
                rest, second = _halves(level(rest))
                final.append(second)
        return torch.cat([*final, rest], dim=-1)

    @property
    def log_volume(self) -> Float[Tensor, ""]:
        """Log |det df/du|. It is the same for all vectors, because only the scales change volumes."""
        steps = [part for part in self.modules() if isinstance(part, FlowStep)]
        return torch.stack([step.scale.sum() for step in steps]).sum()

    @torch.no_grad()
    def initialise(self, vectors: Float[Tensor, "text dim"]) -> None:
        """Initialise each step with its own input."""
        for level in self.levels:
            for step in level.children():
                vectors = cast("FlowStep", step).initialise(vectors)
            vectors, _ = _halves(vectors)
