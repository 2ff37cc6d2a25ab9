"""WhitenedCSE (Zhuo et al., ACL 2023, arXiv 2305.17746): contrastive learning of whitened views.

A text is read three times, with other dropout. The vectors of each reading are whitened over the batch by
*shuffled group whitening*: their numbers are dealt at random into groups, and within each group vectors
become (x - mean) Sigma^(-1/2), so that the groups' covariance is the identity. Each reading has a deal of its
own. A linear layer with tanh follows, which is not kept. The first reading then has to find its text in the
second and in the third: the sum of two InfoNCE losses with tau = 0.05. Groups have six numbers, as in the
authors' code (768 in 128 groups), whose square root is by eigenvalues; here it is iterated, as the gradient
of eigenvectors is none where two values are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize

from papers.methods.base import Method

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from aoe_train import Encoder, TextBatch

_TAU = 0.05
_LARGEST = 6  # numbers of a group
_VIEWS = 3
_RIDGE = 1e-4  # of a group's mean variance, for batches too small to span it
_ITERATIONS = 20


class WhitenedCse(Method):
    """The layer behind the whitening."""

    lr = 3e-5

    def begin(self, encoder: Encoder, kind: str) -> None:
        """See `TextObjective`."""
        super().begin(encoder, kind)
        dim = encoder.model.dim
        self.group = next(size for size in range(_LARGEST, 0, -1) if dim % size == 0)
        self.layer = nn.Sequential(nn.Linear(dim, dim), nn.Tanh())

    def forward(self, model: Any, batch: TextBatch) -> dict[str, Tensor]:
        """See `TextObjective`."""
        first, *others = (self._view(batch.vectors(model).float()) for _ in range(_VIEWS))
        wanted = torch.arange(len(first), device=first.device)
        losses = [cross_entropy(first @ other.T / _TAU, wanted) for other in others]
        return {"loss": torch.stack(losses).sum()}

    def _view(self, vectors: Float[Tensor, "text dim"]) -> Float[Tensor, "text dim"]:
        order = torch.randperm(vectors.shape[1]).to(vectors.device)
        with torch.autocast(vectors.device.type, enabled=False):
            whitened: Tensor = self.layer(group_whitened(vectors, order, self.group))
        return normalize(whitened, dim=-1)


def group_whitened(
    vectors: Float[Tensor, "text dim"], order: Int[Tensor, " dim"], size: int
) -> Float[Tensor, "text dim"]:
    """Vectors whose numbers are whitened in groups, and stand where they stood."""
    centred = vectors - vectors.mean(dim=0)
    groups = centred[:, order].reshape(len(vectors), -1, size).transpose(0, 1)
    covariance = groups.transpose(1, 2) @ groups / len(vectors)
    found: Tensor = (groups @ inverse_root(covariance)).transpose(0, 1).flatten(1)
    return found[:, torch.argsort(order)]


def inverse_root(matrices: Float[Tensor, "group size size"]) -> Float[Tensor, "group size size"]:
    """A^(-1/2) of symmetric matrices by Newton's iteration (Higham, 2008, Eq. 6.35), after a small ridge.

    With A / trace(A) in place of A all eigenvalues are within (0, 1], where it converges.
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
