"""Variants of the papers' objectives, as functions of vectors and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn.functional import normalize

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

_SMOOTH = 0.01  # sine of half the angle; below it the distance is quadratic
_TAU = 0.05


class Phase:
    """Ranks pairs by `phase_similarity`."""

    def __init__(self, tau: float | str = 1.0) -> None:
        self.tau = float(tau)

    def __call__(
        self, vectors: Float[Tensor, "row 2 dim"], labels: Float[Tensor, " row"]
    ) -> Float[Tensor, ""]:
        """The loss of a batch."""
        first, second = vectors.unbind(1)
        return ranked(phase_similarity(first, second) / self.tau, labels)


def phase_similarity(
    first: Float[Tensor, "pair dim"], second: Float[Tensor, "pair dim"]
) -> Float[Tensor, " pair"]:
    """1 - the root mean square of sin(delta_k / 2): in [0, 1], symmetric, and 1 if all phases agree.

    delta_k is the angle between the complex numbers z_k and w_k. The mean is weighted by |z_k| |w_k|, because
    the phase of a number near 0 is noise. In terms of cosines it is (1 - cos(X, Y) / cos(|z|, |w|)) / 2. The
    root is smoothed below one degree, so that equal texts have a gradient.
    """
    z = _complex_numbers(first)
    w = _complex_numbers(second)
    length_z = torch.linalg.vector_norm(z, dim=-2)
    length_w = torch.linalg.vector_norm(w, dim=-2)
    weight = length_z * length_w
    total_weight = weight.sum(-1).clamp_min(1e-6)
    mean_cosine = (z * w).sum((-2, -1)) / total_weight
    mean_square = (1 - mean_cosine) / 2
    distance: Tensor = (mean_square + _SMOOTH**2).sqrt()
    return 1 + _SMOOTH - distance


def _complex_numbers(
    vectors: Float[Tensor, "pair dim"],
) -> Float[Tensor, "pair 2 half"]:
    """Real and imaginary parts of normalised vectors."""
    halves = normalize(vectors, dim=-1).chunk(2, dim=-1)
    return torch.stack(halves, dim=-2)


def ranked(
    scores: Float[Tensor, " pair"], labels: Float[Tensor, " pair"]
) -> Float[Tensor, ""]:
    """log(1 + sum over label_i > label_j of exp(score_j - score_i)): arXiv Eq. 1 at tau 1."""
    is_higher = labels[:, None] > labels[None, :]
    differences = scores[None, :] - scores[:, None]
    counted = differences[is_higher]
    terms = torch.cat([counted.new_zeros(1), counted])
    return terms.logsumexp(0)


def in_batch_of_rows(
    vectors: Float[Tensor, "row 2 dim"], labels: Float[Tensor, " row"]
) -> Float[Tensor, ""]:
    """`in_batch_angle_emb` for rows labelled 0 and 1, with tau 0.05."""
    first, second = vectors.unbind(1)
    return in_batch_angle_emb(first, second, labels > 0, _TAU)


def in_batch_angle_emb(
    first: Float[Tensor, "pair dim"],
    second: Float[Tensor, "pair dim"],
    positive: Bool[Tensor, " pair"],
    tau: float,
) -> Float[Tensor, ""]:
    """In-batch negatives as in the library angle-emb. If all rows are positive, this is NT-Xent.

    Each text u of a positive pair has to find its partner v among the other 2B - 1 texts of the batch:
    - (1 / 2B) * sum of log(exp(cos(u, v) / tau) / sum over w != u of exp(cos(u, w) / tau)). Unlike arXiv
    Eq. 2 it works in both directions, averages over all 2B texts, and treats copies of a text as negatives.
    """
    texts = normalize(torch.cat([first, second]), dim=-1)
    logits = texts @ texts.T / tau
    to_partner = logits.diagonal(len(first)).repeat(2)
    is_itself = torch.eye(len(texts), dtype=torch.bool, device=texts.device)
    to_others = logits.masked_fill(is_itself, -torch.inf)
    losses = to_others.logsumexp(1) - to_partner
    return (losses * positive.repeat(2)).mean()
