"""BERT-flow (Li et al., EMNLP 2020, arXiv 2011.05864): vectors that are distributed as a Gaussian.

An invertible map f, a flow (`aoe_train._flow`), is fitted to the vectors u of unlabelled texts, while the
encoder stays as it is, so that z = f(u) has the highest likelihood under a standard Gaussian (Section 3
there): the mean of log N(f(u); 0, I) + log |det df/du|. z takes the place of u. As in the authors' code there
are two levels of three steps, whose small networks are 32 wide and only add; their inner normalisation is
left out. Each text is seen once: a flow that sees few texts often learns them by heart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from aoe_train._flow import Flow
from aoe_train._settings import FlowSettings
from pairkit.errors import ConfigError, DataError
from pairkit.progress import Display, Listener, Progress

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from aoe_train._encoder import Encoder

_LR, _BATCH = 1e-3, 64
_LEAST = 4  # numbers of a vector that two levels can halve


@dataclass(frozen=True)
class Flowed:
    """What a flow was fitted on, and how well.

    Attributes:
        texts: How many distinct ones.
        dim: Numbers of a vector.
        before: Mean negative log-likelihood of a number, in nats, where the flow only shifts and scales.
        after: The same when it is fitted.
        gain: How many times as large, relative to a vector, a small difference of two vectors may become,
            rounding errors among them.
    """

    texts: int
    dim: int
    before: float
    after: float
    gain: float


def fit_flow(
    encoder: Encoder, texts: Sequence[str], *, seed: int = 42, progress: bool | Listener = False
) -> Flowed:
    """Put a flow of the vectors of `texts` behind a model, in place.

    Args:
        encoder: In float32.
        texts: Unlabelled ones, of the kind that the model is for; with the model's default prompt.
        seed: Of the weights that it begins with, and the order of texts.
        progress: Shown on stderr, or told to a function.

    Raises:
        ConfigError: The model has a flow already, cuts its vectors, or has too short ones.
        DataError: Fewer than two texts.
    """
    dim = encoder.model.dim
    if encoder.settings.flow is not None or encoder.settings.dim is not None or dim < _LEAST:
        raise ConfigError(
            f"flow: expected a model without encoder.flow and encoder.dim, and vectors of {_LEAST} numbers or"
            " more; give another one"
        )
    if len(texts) < 2:
        raise DataError(f"flow: found {len(texts)} texts; give more, a few hundred at least")
    with Display(progress) as show:
        vectors = torch.from_numpy(encoder.encode(texts, normalize=False, progress=show))
        settings = FlowSettings()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            flow = Flow(settings, dim)
            flow.begin(vectors)
            before = surprise(flow, vectors).item()
            _learn(flow, vectors, show)
    with torch.no_grad():
        after, gain = surprise(flow, vectors).item(), _gain(flow, vectors)
    encoder.model.flow = flow.eval().to(encoder.device)
    encoder.settings = encoder.settings.model_copy(update={"flow": settings})
    return Flowed(len(vectors), dim, before / dim, after / dim, gain)


def surprise(flow: Flow, vectors: Float[Tensor, "text dim"]) -> Float[Tensor, ""]:
    """The mean negative log-likelihood of vectors, in nats."""
    latent: Tensor = flow(vectors)
    constant = latent.shape[1] * math.log(2 * math.pi)
    return (latent.square().sum(1).mean() + constant) / 2 - flow.log_volume


def _learn(flow: Flow, vectors: Float[Tensor, "text dim"], show: Listener) -> None:
    optimiser = torch.optim.Adam(flow.parameters(), lr=_LR)
    batches = torch.split(torch.randperm(len(vectors)), _BATCH)
    for step, batch in enumerate(batches, start=1):
        optimiser.zero_grad()
        loss = surprise(flow, vectors[batch]) / vectors.shape[1]
        torch.autograd.backward(loss)
        optimiser.step()
        show(Progress("fit the flow", step, len(batches), ended=step == len(batches)))


def _gain(flow: Flow, vectors: Float[Tensor, "text dim"]) -> float:
    """By the derivative at the vectors' mean."""
    derivative = torch.func.jacrev(flow)(vectors.mean(0))
    lengths = [part.square().sum(1).mean().sqrt() for part in (vectors, flow(vectors))]
    return max(1.0, float(torch.linalg.matrix_norm(derivative, 2) * lengths[0] / lengths[1]))
