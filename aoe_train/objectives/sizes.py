"""The objective at several sizes of the vectors: Matryoshka representation learning (Kusupati et al., 2022).

Vectors are made once. The first d numbers of each are what a reader has who keeps only them, so they are
judged as vectors of their own: their cosine is that of the d numbers, and the angle halves the d numbers. The
imaginary part of number k is then at k + d / 2; in the whole vector it is at k + dim / 2, where it may be cut
off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from aoe_train.objectives.compress import Compressed
from aoe_train.objectives.kinds import LabelRange, check_dims
from aoe_train.objectives.layers import Layers
from aoe_train.objectives.mix import Objective
from aoe_train.objectives.own import Own, OwnObjective
from aoe_train.objectives.pairs import NO_ADVICE, Advice
from aoe_train.objectives.parts import NO_ADVISERS, Advisers
from aoe_train.objectives.settings import ObjectiveSettings
from aoe_train.records import Kind

OneSize = Objective | Own


class Sizes(nn.Module):
    """The weighted sum of an objective over sizes; see `Objective` for what it takes and gives.

    Parts that learn (the softmax of sbert, the map to a teacher's vectors) have weights of their own for each
    size; a module of a user's own is one for all sizes.
    """

    def __init__(self, objectives: Mapping[int, OneSize], weights: Mapping[int, float]) -> None:
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
) -> OneSize | Sizes | Compressed | Layers:
    """The objective of a run."""
    check_dims(settings, dim, own=own is not None)
    make = _make(settings, kind, label_range, own, advisers)
    found: OneSize | Sizes | Compressed
    if settings.dims:
        weights = settings.dim_weights or (1.0,) * len(settings.dims)
        sizes = {size: make(size) for size in settings.dims}
        found = Sizes(sizes, dict(zip(settings.dims, weights, strict=True)))
    else:
        found = make(dim)
    if settings.compress:
        found = Compressed(found, settings)
    return Layers(found, settings, layers) if layers else found


def _make(
    settings: ObjectiveSettings,
    kind: Kind,
    label_range: LabelRange | None,
    own: OwnObjective | None,
    advisers: Advisers,
) -> Callable[[int], OneSize]:
    if own is not None:
        once = Own(own)
        return lambda _: once
    return lambda size: Objective(settings, dim=size, kind=kind, label_range=label_range, advisers=advisers)
