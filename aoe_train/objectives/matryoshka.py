"""The objective at several sizes of the vectors and at several layers of the model.

Sizes: Matryoshka representation learning (Kusupati et al., 2022, arXiv 2205.13147). Vectors are made once.
The first d numbers of each are what a reader has who keeps only them, so they are judged as vectors of
their own: their cosine is that of the d numbers, and the angle halves the d numbers. The imaginary part of
number k is then at k + d / 2; in the whole vector it is at k + dim / 2, where it may be cut off.

Layers: 2D Matryoshka and Espresso (Li et al., 2024, arXiv 2402.14776). A text's vector after layer n is
what a model of its first n layers gives. The whole model's loss counts 1; the mean of the layers' weighted
losses is added to it. With `falling` weights layer n counts 1 / (1 + ln n), as in Espresso's learn-to-
express; `equal` ones are those of 2D Matryoshka. It draws one layer a step; here all wanted layers learn in
each step, so that a run depends on nothing but its batches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from aoe_train.objectives.kinds import LabelRange, check_dims
from aoe_train.objectives.objective import Objective
from aoe_train.objectives.own import CustomObjective, OwnObjective
from aoe_train.objectives.pairs import NO_ADVICE, Advice
from aoe_train.objectives.parts import NO_ADVISERS, Advisers
from aoe_train.objectives.settings import ObjectiveSettings
from aoe_train.objectives.similarity import wide
from aoe_train.records import ABSENT, Kind
from pairkit.app.errors import ConfigError


class LayerwiseObjective(nn.Module):
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


SingleObjective = Objective | CustomObjective


class MatryoshkaObjective(nn.Module):
    """The weighted sum of an objective over sizes; see `Objective` for what it takes and gives.

    Parts that learn (the softmax of sbert, the map to a teacher's vectors) have weights of their own for each
    size; a module of a user's own is one for all sizes.
    """

    def __init__(self, objectives: Mapping[int, SingleObjective], weights: Mapping[int, float]) -> None:
        """Put together."""
        super().__init__()
        self._objectives, self._weights = objectives, weights
        for size, objective in objectives.items():
            if objective not in self.children():
                self.add_module(str(size), objective)

    def forward(
        self,
        vectors: Float[Tensor, "row column dim"],
        labels: Float[Tensor, " row"] | None,
        texts: Int[Tensor, "row column"],
        advice: Advice = NO_ADVICE,
    ) -> dict[str, Tensor]:
        """The loss to minimise as "loss", each part summed over sizes, and each size's loss as "loss_128"."""
        found = {
            size: objective(vectors[..., :size], labels, texts, advice)
            for size, objective in self._objectives.items()
        }
        names = dict.fromkeys(name for parts in found.values() for name in parts)
        sums = {
            name: torch.stack([self._weights[size] * parts[name] for size, parts in found.items()]).sum()
            for name in names
        }
        return {**sums, **{f"loss_{size}": parts["loss"].detach() for size, parts in found.items()}}


def make_objective(
    settings: ObjectiveSettings,
    *,
    dim: int,
    kind: Kind,
    label_range: LabelRange | None = None,
    own: OwnObjective | None = None,
    advisers: Advisers = NO_ADVISERS,
    layers: Sequence[int] = (),
) -> SingleObjective | MatryoshkaObjective | LayerwiseObjective:
    """The objective of a run."""
    check_dims(settings, dim, own=own is not None)
    make = _make(settings, kind, label_range, own, advisers)
    found: SingleObjective | MatryoshkaObjective
    if settings.dims:
        weights = settings.dim_weights or (1.0,) * len(settings.dims)
        sizes = {size: make(size) for size in settings.dims}
        found = MatryoshkaObjective(sizes, dict(zip(settings.dims, weights, strict=True)))
    else:
        found = make(dim)
    return LayerwiseObjective(found, settings, layers) if layers else found


def _make(
    settings: ObjectiveSettings,
    kind: Kind,
    label_range: LabelRange | None,
    own: OwnObjective | None,
    advisers: Advisers,
) -> Callable[[int], SingleObjective]:
    if own is not None:
        once = CustomObjective(own)
        return lambda _: once
    return lambda size: Objective(settings, dim=size, kind=kind, label_range=label_range, advisers=advisers)
