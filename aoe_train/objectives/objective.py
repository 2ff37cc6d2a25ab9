"""The weighted sum that training minimises: arXiv Eq. 8, ACL Eq. 5, or any other mix, or a loss of one's own.

What each part means for each kind of data is in `kinds.py`, which also refuses what means nothing.

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

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from aoe_train.objectives.kinds import (
    NO_ADVISERS,
    Advisers,
    LabelRange,
    LossContext,
    check_advisers,
    check_dims,
    check_objective,
    positive_threshold,
)
from aoe_train.objectives.pairs import NO_ADVICE, Advice, as_pairs, wide
from aoe_train.objectives.settings import IN_BATCH, PARTS, ObjectiveSettings
from aoe_train.records import ABSENT, Kind
from pairkit.app.errors import ConfigError
from pairkit.app.printable import one_line


class Objective(nn.Module):
    """Loss of a batch, in float32 or wider even under autocast.

    It compares rows with each other. So it wants the batch as a whole, gathered from all ranks; the order of
    the rows does not matter.
    """

    def __init__(
        self,
        settings: ObjectiveSettings,
        *,
        dim: int,
        kind: Kind,
        label_range: LabelRange | None = None,
        advisers: Advisers = NO_ADVISERS,
    ) -> None:
        """Prepare for data of one kind."""
        super().__init__()
        check_objective(settings, dim=dim, kind=kind, label_range=label_range)
        check_advisers(settings, dim=dim, kind=kind, advisers=advisers)
        self.settings = settings
        wanted = settings.weights.wanted
        low, high = scale = (label_range if kind == "graded" else None) or (0.0, 1.0)
        in_batch = bool(IN_BATCH & wanted.keys())
        self.context = LossContext(
            settings,
            dim,
            kind,
            scale,
            margin=settings.margin and settings.margin / (high - low),
            positive_from=positive_threshold(settings, kind, label_range) if in_batch else 0.0,
            advisers=advisers,
        )
        self.parts = {part: PARTS[part].make(self.context) for part in wanted}
        for part, loss in self.parts.items():
            if isinstance(loss, nn.Module):
                self.add_module(part, loss)

    def forward(
        self,
        vectors: Float[Tensor, "row column dim"],
        labels: Float[Tensor, " row"] | None,
        texts: Int[Tensor, "row column"],
        advice: Advice = NO_ADVICE,
    ) -> dict[str, Tensor]:
        """The loss to minimise as "loss", and each part by its name, unweighted and detached."""
        with torch.autocast(vectors.device.type, enabled=False):
            vectors = wide(vectors)
            pairs = as_pairs(vectors, labels, texts, advice.each(lambda told: told.to(vectors.dtype)))
            weights = self.settings.weights.wanted
            parts = {part: loss(pairs) for part, loss in self.parts.items()}
            loss = torch.stack([weights[part] * value for part, value in parts.items()]).sum()
        return {"loss": loss, **{part: value.detach() for part, value in parts.items()}}


OwnObjective = Callable[..., Tensor]
"""`(vectors, labels) -> loss`: float32 (row, column, dim) of all rows of the batch, and (row,) or None.

A row that has fewer negatives than others has vectors of zeros in their place.
"""


class CustomObjective(nn.Module):
    """Calls a function, or an `nn.Module` whose weights then learn too, as `Objective` computes its parts."""

    def __init__(self, function: OwnObjective) -> None:
        super().__init__()
        check_own_objective(function)
        self.function = function

    def forward(
        self,
        vectors: Float[Tensor, "row column dim"],
        labels: Float[Tensor, " row"] | None,
        texts: Int[Tensor, "row column"],
        advice: Advice = NO_ADVICE,
    ) -> dict[str, Tensor]:
        """The loss to minimise as "loss"; functions of one's own are given no advice."""
        del advice
        with torch.autocast(vectors.device.type, enabled=False):
            vectors = wide(vectors).masked_fill((texts == ABSENT)[..., None], 0)
            try:
                loss = self.function(vectors, labels)
            except Exception as error:  # whatever the user's code raises, with what it was called with
                given = "labels None" if labels is None else f"labels {tuple(labels.shape)}"
                error.add_note(
                    f"objective {qualified_name(self.function)}: called with vectors {tuple(vectors.shape)},"
                    f" which are (row, column, dim), and {given}; expected one number"
                )
                raise
        if not isinstance(loss, Tensor) or loss.numel() != 1 or loss.is_complex():
            found = (
                f"a {loss.dtype} tensor of shape {tuple(loss.shape)}"
                if isinstance(loss, Tensor)
                else type(loss).__name__
            )
            raise ConfigError(f"objective {qualified_name(self.function)}: gave {found}; expected one number")
        if torch.is_grad_enabled() and not loss.requires_grad:
            raise ConfigError(
                f"objective {qualified_name(self.function)}: its loss does not depend on the vectors; compute"
                " it with torch, and without detach()"
            )
        return {"loss": loss.reshape(())}


def check_own_objective(function: OwnObjective) -> None:
    """Refuse what can't be called with vectors and labels, before any data is read."""
    if not callable(function) or isinstance(function, type):
        raise ConfigError(
            f"objective {function!r}: expected a function of vectors and labels, or a module (not its class)"
        )
    called = function.forward if isinstance(function, nn.Module) else function
    if inspect.iscoroutinefunction(called):
        raise ConfigError(f"objective {qualified_name(function)}: is async; expected a plain function")
    try:
        signature = inspect.signature(called).replace(return_annotation=inspect.Signature.empty)
    except (TypeError, ValueError):  # of a function in C, which has none
        return
    try:
        signature.bind("vectors", "labels")
    except TypeError as error:
        raise ConfigError(
            f"objective {qualified_name(function)}: takes {one_line(str(signature), 200)}, but is called with"
            " (vectors, labels); expected a function or module of these two that returns one number"
        ) from error


def trained_by(settings: ObjectiveSettings, own: OwnObjective | None) -> dict[str, float]:
    """What a run learns from, by name, with weights: the settings' parts, or what takes their place."""
    if own is not None:
        return {qualified_name(own): 1.0}
    return settings.weights.wanted


def qualified_name(function: Callable[..., Any]) -> str:
    """Module and name, by which a run's record tells one objective from another."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


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
