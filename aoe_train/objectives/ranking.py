"""The pairwise ranking loss that cosine (CoSENT) and angle share."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - the usual name
from jaxtyping import Bool, Float
from torch import Tensor

from aoe_train.objectives.parts import Given, Loss
from aoe_train.objectives.similarity import angle_reference, cosine, wide


def cosine_part(given: Given) -> Loss:
    """The part `cosine`: CoSENT."""
    scale = 1 / given.tau("cosine")
    return lambda pairs: ranking_loss(
        cosine(pairs.first, pairs.second), pairs.labels, scale, given.margin, pairs.present
    )


def angle_part(given: Given) -> Loss:
    """The part `angle`."""
    return lambda pairs: ranking_loss(
        angle_reference(pairs.first, pairs.second),
        pairs.labels,
        1 / given.tau("angle"),
        present=pairs.present,
    )


def ranking_loss(
    scores: Float[Tensor, " pair"],
    labels: Float[Tensor, " pair"],
    scale: float,
    margin: float = 0.0,
    present: Bool[Tensor, " pair"] | None = None,
) -> Float[Tensor, ""]:
    """Penalise every pair that scores above, or not far below, a pair of a larger label.

    log(1 + sum over label_i > label_j of exp(scale * (score_j - score_i))): arXiv Eq. 1 and 7, ACL Eq. 3.
    With a margin m, which is ours, scores shall also differ as labels do: m * (label_i - label_j) is added to
    the difference, so a ranking that holds by less still costs.

    The sum over j depends on i only by how many labels are smaller. So with the pairs in order of their
    labels it is a running sum, and B^2 terms take O(B log B) time and O(B) memory, exactly. Computed in
    logarithms, in float32 or wider.
    """
    ordered, order = labels.sort()
    scores = wide(scores)[order]
    # The margin parts into what belongs to i and what belongs to j, so the running sum stays one.
    scaled = scale * (scores - margin * ordered.to(scores.dtype))
    smaller = torch.searchsorted(ordered, ordered)  # how many labels are strictly smaller
    away = torch.zeros_like(order, dtype=torch.bool) if present is None else ~present[order]
    counted = scaled.masked_fill(away, -torch.inf)
    below = F.pad(counted.logcumsumexp(0), (1, 0), value=-torch.inf)  # [n]: over the n smallest labels
    terms = (below[smaller] - scaled).masked_fill(away, -torch.inf)
    return F.pad(terms, (1, 0)).logsumexp(0)  # the padding is the 1 in the logarithm
