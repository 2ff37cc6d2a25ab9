"""Learn-to-compress of Espresso (Li et al., 2024, arXiv 2402.14776): the first numbers say what all say.

The first k numbers of the batch's vectors X are drawn to X U_k S_k. U and S are the left singular vectors and
the singular values of softmax(X'X / sqrt(d)), largest first. The distance is the mean square and the
Kullback-Leibler divergence, as the authors' code has them. Which way a singular vector points is open; here
it is the way that agrees with the number it is compared with, so that targets don't turn round between steps.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from aoe_train.objectives.layers import divergence
from aoe_train.objectives.pairs import NO_ADVICE, Advice
from aoe_train.objectives.similarity import wide
from aoe_train.records import ABSENT

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from aoe_train.objectives.settings import ObjectiveSettings


class Compressed(nn.Module):
    """An objective, and how far the vectors' first numbers are from their principal components."""

    def __init__(self, objective: nn.Module, settings: ObjectiveSettings) -> None:
        super().__init__()
        self.objective, self.settings = objective, settings

    def forward(
        self,
        vectors: Float[Tensor, "row column dim"],
        labels: Float[Tensor, " row"] | None,
        texts: Int[Tensor, "row column"],
        advice: Advice = NO_ADVICE,
    ) -> dict[str, Tensor]:
        """The loss to minimise as "loss", the parts, and as "compress" what is added, times its weight."""
        found = self.objective(vectors, labels, texts, advice)
        settings, there = self.settings, texts != ABSENT
        with torch.autocast(vectors.device.type, enabled=False):
            vectors = wide(vectors)
            apart = torch.stack(
                [
                    _apart(vectors[..., :size], target, there, settings.compress_tau)
                    for size, target in principal(vectors, settings.dims, there).items()
                ]
            ).sum()
        loss = found["loss"] + settings.compress * apart
        return {**found, "loss": loss, "compress": apart.detach()}


@torch.no_grad()
def principal(
    vectors: Float[Tensor, "row column dim"], sizes: tuple[int, ...], there: Tensor
) -> dict[int, Tensor]:
    """What the first numbers of each size below the whole one are drawn to, (row, column, size)."""
    dim = vectors.shape[-1]
    rows = (vectors * there[..., None]).reshape(-1, dim)
    weights = (rows.T @ rows / math.sqrt(dim)).softmax(-1)
    values, directions = torch.linalg.eigh(weights @ weights.T)  # ascending; the squares of S, and U
    scaled = directions.flip(-1) * values.flip(-1).clamp(min=0).sqrt()
    projected = vectors @ scaled
    agree = ((projected * vectors) * there[..., None]).sum((0, 1)) < 0
    projected = projected * (1 - 2 * agree.to(projected.dtype))
    return {size: projected[..., :size] for size in sizes if size < dim}


def _apart(found: Tensor, wanted: Tensor, there: Tensor, tau: float) -> Tensor:
    squares = ((found - wanted).square().mean(-1) * there).sum() / there.sum()
    return squares + divergence(found, wanted, there, tau)
