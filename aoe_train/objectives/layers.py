"""The objective at several layers: 2D Matryoshka and Espresso (Li et al., 2024, arXiv 2402.14776).

A text's vector after layer n is what a model of its first n layers gives. The whole model's loss counts 1;
the mean of the layers' weighted losses is added to it. With `falling` weights layer n counts 1 / (1 + ln n),
as in Espresso's learn-to-express; `equal` ones are those of 2D Matryoshka. Where the latter draws one layer a
step, all that are wanted learn in each here, so that a run depends on nothing but its batches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from aoe_train.objectives.pairs import NO_ADVICE, Advice
from aoe_train.objectives.similarity import wide
from aoe_train.records import ABSENT
from pairkit.app.errors import ConfigError

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from aoe_train.objectives.settings import ObjectiveSettings


class Layers(nn.Module):
    """An objective of the last layer and of earlier ones.

    Parts that learn (the softmax of sbert) have one set of weights for all layers.
    """

    def __init__(self, objective: nn.Module, settings: ObjectiveSettings, layers: Sequence[int]) -> None:
        """Put together."""
        super().__init__()
        self.objective, self.settings, self.layers = objective, settings, tuple(layers)
        self.weights = layer_weights(settings, self.layers)

    def forward(
        self,
        vectors: Float[Tensor, "row column layer dim"],
        labels: Float[Tensor, " row"] | None,
        texts: Int[Tensor, "row column"],
        advice: Advice = NO_ADVICE,
    ) -> dict[str, Tensor]:
        """The loss to minimise as "loss", the last layer's parts, and each layer's loss as "layer_3"."""
        *earlier, last = vectors.unbind(-2)
        found = self.objective(last, labels, texts, advice)
        losses = [self.objective(each, labels, texts, advice)["loss"] for each in earlier]
        loss = found["loss"]
        loss = loss + torch.stack([w * each for w, each in zip(self.weights, losses, strict=True)]).mean()
        told = {f"layer_{n}": each.detach() for n, each in zip(self.layers, losses, strict=True)}
        if self.settings.align:
            tau, there = self.settings.align_tau, texts != ABSENT
            apart = torch.stack([divergence(each, last.detach(), there, tau) for each in earlier]).mean()
            loss, told = loss + self.settings.align * apart, {**told, "align": apart.detach()}
        return {**found, "loss": loss, **told}


def layer_weights(settings: ObjectiveSettings, layers: Sequence[int]) -> list[float]:
    """What the loss of each layer counts."""
    given = settings.layer_weights
    if given == "falling":
        return [1 / (1 + math.log(layer)) for layer in layers]
    if given == "equal":
        return [1.0] * len(layers)
    if len(given) != len(layers):
        raise ConfigError(
            f"objective.layer_weights: found {len(given)} for the layers {', '.join(map(str, layers))};"
            " expected one each, or falling or equal"
        )
    return list(given)


def divergence(
    found: Float[Tensor, "row column dim"],
    wanted: Float[Tensor, "row column dim"],
    there: Tensor,
    tau: float,
) -> Tensor:
    """How far vectors are from others: tau times the Kullback-Leibler divergence of their softmax, a mean."""
    with torch.autocast(found.device.type, enabled=False):
        logs = (wide(found) / tau).log_softmax(-1)
        target = (wide(wanted) / tau).log_softmax(-1)
        each = (target.exp() * (target - logs)).sum(-1)
        return tau * (each * there).sum() / there.sum()
