"""A guide: a model whose similarities tell which candidates of a batch may belong to an anchor.

Solatorio (2024), GISTEmbed, arXiv 2402.16829. In-batch negatives are chosen by chance, so some of them mean
what the anchor means. The guide's similarity of anchor and positive is the measure: what it holds to be
nearer than that is no negative.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor


class Guide(NamedTuple):
    """What a guide says of a batch."""

    first: Float[Tensor, "anchor guide"]
    second: Float[Tensor, "candidate guide"]
    margin: float
    strategy: Literal["absolute", "relative"]

    def too_near(
        self, own: Float[Tensor, "anchor guide"], others: Float[Tensor, "other guide"]
    ) -> Bool[Tensor, "anchor other"]:
        """[i, j]: j is nearer to i than i's anchor to its positive, less the margin."""
        positive = (self.first * self.second[: len(self.first)]).sum(-1)
        slack = positive.abs() * self.margin if self.strategy == "relative" else self.margin
        near: Tensor = own @ others.T > (positive - slack)[:, None]
        return near
