"""WhitenedCSE (Zhuo et al., ACL 2023, arXiv 2305.17746): contrastive learning of whitened views.

Each text is encoded three times with different dropout. *Shuffled group whitening* whitens the vectors of
each view over the batch: their dimensions are assigned to random groups, and in each group vectors become (x
- mean) Sigma^(-1/2), so that its covariance is the identity. A linear layer with tanh follows, which is
discarded after training. The loss is the sum of InfoNCE between views 1 and 2 and between views 1 and 3, with
tau = 0.05. Groups have six dimensions, as in the authors' code (768 in 128 groups). That code uses
eigenvectors for Sigma^(-1/2), whose gradient is undefined for equal eigenvalues; here it is Newton's
iteration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.functional import normalize

from papers.methods.base import Method, info_nce

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from aoe_train import Encoder, TextBatch

_TAU = 0.05
_MAX_GROUP = 6  # dimensions of a group
_VIEWS = 3
_RIDGE = 1e-4  # share of a group's mean variance, for batches too small to span the group
_ITERATIONS = 20


class WhitenedCse(Method):
    """Trains the model and the linear layer."""

    lr = 3e-5

    def begin(self, encoder: Encoder, kind: str) -> None:
        """See `TextObjective`."""
        super().begin(encoder, kind)
        dim = encoder.model.dim
        self.group = next(size for size in range(_MAX_GROUP, 0, -1) if dim % size == 0)
        self.layer = nn.Sequential(nn.Linear(dim, dim), nn.Tanh())

    def forward(self, model: Any, batch: TextBatch) -> dict[str, Tensor]:
        """See `TextObjective`."""
        first, *others = (self._view(batch.vectors(model).float()) for _ in range(_VIEWS))
        return {"loss": torch.stack([info_nce(first, other, _TAU) for other in others]).sum()}

    def _view(self, vectors: Float[Tensor, "text dim"]) -> Float[Tensor, "text dim"]:
        order = torch.randperm(vectors.shape[1]).to(vectors.device)
        with torch.autocast(vectors.device.type, enabled=False):
            whitened: Tensor = self.layer(group_whitened(vectors, order, self.group))
        return normalize(whitened, dim=-1)


def group_whitened(
    vectors: Float[Tensor, "text dim"], order: Int[Tensor, " dim"], size: int
) -> Float[Tensor, "text dim"]:
    """Whiten groups of dimensions; `order` lists the dimensions group by group."""
    centred = vectors - vectors.mean(dim=0)
    groups = centred[:, order].reshape(len(vectors), -1, size).transpose(0, 1)
    covariance = groups.transpose(1, 2) @ groups / len(vectors)
    whitened: Tensor = (groups @ inverse_root(covariance)).transpose(0, 1).flatten(1)
    return whitened[:, torch.argsort(order)]


def inverse_root(matrices: Float[Tensor, "group size size"]) -> Float[Tensor, "group size size"]:
    """A^(-1/2) of symmetric matrices plus a small ridge, by Newton's iteration (Higham, 2008, Eq. 6.35).

    It works on A / trace(A), whose eigenvalues are in (0, 1], where the iteration converges.
    """
    identity = torch.eye(matrices.shape[-1], dtype=matrices.dtype, device=matrices.device)
    trace = matrices.diagonal(dim1=-2, dim2=-1).sum(-1)[:, None, None]
    ridged = matrices + (_RIDGE * trace / len(identity) + torch.finfo(matrices.dtype).tiny) * identity
    trace = ridged.diagonal(dim1=-2, dim2=-1).sum(-1)[:, None, None]
    root, inverse = ridged / trace, identity.expand_as(ridged)
    for _ in range(_ITERATIONS):
        step = (3 * identity - inverse @ root) / 2
        root, inverse = root @ step, step @ inverse
    return inverse / trace.sqrt()
