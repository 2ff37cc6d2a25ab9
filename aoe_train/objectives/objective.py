"""The training objective: a weighted sum of loss parts (arXiv Eq. 8, ACL Eq. 5, others), or a custom loss.

`objective_checks.py` has the meaning of each part for each kind of data.

Sizes: Matryoshka representation learning (Kusupati et al., 2022, arXiv 2205.13147). The first d numbers of a
vector form a vector of their own, with its own loss. The angle loss takes the second half of these d numbers
as imaginary parts, so the part that belongs to number k is at k + d / 2, while in the full vector it is at
k + dim / 2.

Layers: 2D Matryoshka and Espresso (Li et al., 2024, arXiv 2402.14776). A text's vector after layer n is that
of a model with the first n layers. The objective is the last layer's loss plus the mean of the other layers'
weighted losses. `falling` weights are 1 / (1 + ln n), as in Espresso; `equal` ones are those of 2D
Matryoshka. 2D Matryoshka samples one layer per step; here all layers train in each step, which is
deterministic.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from aoe_train.objectives.labelled_pairs import (
    NO_BATCH_TEACHERS,
    BatchTeachers,
    RowTexts,
    RowVectors,
    as_pairs,
    wide,
)
from aoe_train.objectives.objective_checks import (
    NO_TEACHERS,
    LabelRange,
    LossContext,
    TeacherInfo,
    check_dims,
    check_objective,
    check_teacher_use,
)
from aoe_train.objectives.objective_settings import PARTS, ObjectiveSettings
from aoe_train.objectives.training_rows import ABSENT, Kind
from pairkit.base.errors import ConfigError
from pairkit.base.printable import one_line

LossFunction = Callable[..., Tensor]
"""`(vectors, labels) -> loss`: float32 (row, column, dim) of the whole batch, and (row,) or None.

Absent negatives have vectors of zeros.
"""
# Temperature of the divergence of earlier layers from the last one.
_ALIGN_TAU = 0.3
RowLabels = Float[Tensor, " row"] | None


class Objective(nn.Module):
    """Loss of a whole batch, gathered from all ranks, in float32 or wider even under autocast."""

    def __init__(
        self,
        settings: ObjectiveSettings,
        *,
        dim: int,
        kind: Kind,
        label_range: LabelRange | None = None,
        teachers: TeacherInfo = NO_TEACHERS,
    ) -> None:
        """Prepare for data of one kind."""
        super().__init__()
        context = LossContext(settings, dim, kind, label_range, teachers)
        check_objective(context)
        check_teacher_use(settings, kind=kind, teachers=teachers)
        self.weights = settings.weights.active
        self.parts = {part: PARTS[part].make(context) for part in self.weights}
        for part, loss in self.parts.items():
            if isinstance(loss, nn.Module):
                self.add_module(part, loss)

    def forward(
        self,
        vectors: RowVectors,
        labels: RowLabels,
        texts: RowTexts,
        batch_teachers: BatchTeachers = NO_BATCH_TEACHERS,
    ) -> dict[str, Tensor]:
        """The total "loss", and each unweighted part by its name, detached."""
        with torch.autocast(vectors.device.type, enabled=False):
            vectors = wide(vectors)
            teachers = batch_teachers.map(lambda output: output.to(vectors.dtype))
            pairs = as_pairs(vectors, labels, texts, teachers)
            losses = {}
            weighted = []
            for part, loss_of in self.parts.items():
                loss = loss_of(pairs)
                losses[part] = loss.detach()
                weighted.append(self.weights[part] * loss)
            return {"loss": torch.stack(weighted).sum(), **losses}


class CustomObjective(nn.Module):
    """Wraps a user's function or `nn.Module`, whose weights are trained, too."""

    def __init__(self, function: LossFunction) -> None:
        super().__init__()
        check_loss_function(function)
        self.function = function

    def forward(
        self,
        vectors: RowVectors,
        labels: RowLabels,
        texts: RowTexts,
        *_: BatchTeachers,
    ) -> dict[str, Tensor]:
        """The "loss" only; custom losses get no guide or teacher."""
        with torch.autocast(vectors.device.type, enabled=False):
            vectors = wide(vectors).masked_fill((texts == ABSENT)[..., None], 0)
            try:
                loss = self.function(vectors, labels)
            except Exception as error:  # from the user's code
                shape = None if labels is None else tuple(labels.shape)
                error.add_note(
                    f"objective {qualified_name(self.function)}: called with vectors (row, column, dim) of"
                    f" shape {tuple(vectors.shape)} and labels {shape}; expected one number"
                )
                raise
        return checked_parts(self.function, {"loss": loss})


def checked_parts(
    function: Callable[..., Any], parts: Mapping[str, Any]
) -> dict[str, Tensor]:
    """The loss of a user's function and its parts as scalars; raises ConfigError for other results."""
    loss = parts.get("loss")
    for value in (loss, *parts.values()):
        if not isinstance(value, Tensor) or value.numel() != 1 or value.is_complex():
            returned = type(value).__name__
            if isinstance(value, Tensor):
                returned = f"a {value.dtype} tensor of shape {tuple(value.shape)}"
            raise ConfigError(
                f"objective {qualified_name(function)}: returned {returned}; expected one number"
            )
    if torch.is_grad_enabled() and not parts["loss"].requires_grad:
        raise ConfigError(
            f"objective {qualified_name(function)}: the loss does not depend on the vectors; compute it with"
            " torch, without detach()"
        )
    return {name: value.reshape(()) for name, value in parts.items()}


def check_loss_function(function: LossFunction) -> None:
    """Refuse objects that can't be called with vectors and labels, before any data is read."""
    if not callable(function) or isinstance(function, type):
        raise ConfigError(
            f"objective {function!r}: expected a function of vectors and labels, or a module (an instance,"
            " not a class)"
        )
    called = function.forward if isinstance(function, nn.Module) else function
    try:
        signature = inspect.signature(called).replace(
            return_annotation=inspect.Signature.empty
        )
    except (TypeError, ValueError):  # functions in C have no signature
        return
    try:
        signature.bind("vectors", "labels")
    except TypeError as error:
        raise ConfigError(
            f"objective {qualified_name(function)}: found the parameters {one_line(str(signature), 200)},"
            " expected (vectors, labels)"
        ) from error


def qualified_name(function: Callable[..., Any]) -> str:
    """Module and name, which identify a custom loss in run.json."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


class LayerwiseObjective(nn.Module):
    """An objective of the last layer and earlier ones, which share the weights of trainable parts (sbert)."""

    def __init__(
        self, objective: nn.Module, settings: ObjectiveSettings, layers: Sequence[int]
    ) -> None:
        """Wrap the objective of a single layer."""
        super().__init__()
        self.objective = objective
        self.settings = settings
        self.layers = layers
        self.weights = layer_weights(settings, layers)

    def forward(
        self,
        vectors: Float[Tensor, "row column layer dim"],
        labels: RowLabels,
        texts: RowTexts,
        *batch_teachers: BatchTeachers,
    ) -> dict[str, Tensor]:
        """The total "loss", the last layer's parts, and each earlier layer's loss as "layer_3"."""
        *earlier, last = vectors.unbind(-2)
        parts = self.objective(last, labels, texts, *batch_teachers)
        weighted = []
        for layer, weight, of_layer in zip(
            self.layers, self.weights, earlier, strict=True
        ):
            loss = self.objective(of_layer, labels, texts, *batch_teachers)["loss"]
            parts[f"layer_{layer}"] = loss.detach()
            weighted.append(weight * loss)
        total = parts["loss"] + torch.stack(weighted).mean()

        if self.settings.align:
            present = texts != ABSENT
            targets = last.detach()
            divergences = [divergence(each, targets, present) for each in earlier]
            align = torch.stack(divergences).mean()
            total = total + self.settings.align * align
            parts["align"] = align.detach()
        return {**parts, "loss": total}


def layer_weights(settings: ObjectiveSettings, layers: Sequence[int]) -> list[float]:
    """The weight of each earlier layer's loss."""
    weights = settings.layer_weights
    if weights == "falling":
        return [1 / (1 + math.log(layer)) for layer in layers]
    if weights == "equal":
        return [1.0] * len(layers)
    if len(weights) != len(layers):
        raise ConfigError(
            f"objective.layer_weights: found {len(weights)} for the layers {', '.join(map(str, layers))};"
            " expected one each, or falling or equal"
        )
    return list(weights)


def divergence(
    vectors: RowVectors,
    targets: RowVectors,
    present: Tensor,
    tau: float = _ALIGN_TAU,
) -> Tensor:
    """Mean of tau times the Kullback-Leibler divergence of the vectors' softmax from the targets'."""
    student = (wide(vectors) / tau).log_softmax(-1)
    target = (wide(targets) / tau).log_softmax(-1)
    divergences = (target.exp() * (target - student)).sum(-1)
    return tau * (divergences * present).sum() / present.sum()


SingleObjective = Objective | CustomObjective


class MatryoshkaObjective(nn.Module):
    """The weighted sum of an objective over vector sizes.

    Trainable parts (the softmax of sbert, the map to a teacher's vectors) have separate weights for each
    size; a user's module is shared by all sizes.
    """

    def __init__(
        self, objectives: Mapping[int, SingleObjective], weights: Mapping[int, float]
    ) -> None:
        """Combine the objectives of all sizes."""
        super().__init__()
        self._objectives = objectives
        self._weights = weights
        for size, objective in objectives.items():
            if objective not in self.children():
                self.add_module(str(size), objective)

    def forward(self, vectors: RowVectors, *batch: object) -> dict[str, Tensor]:
        """The total "loss", each part summed over sizes, and each size's loss as "loss_128"."""
        of_sizes: dict[str, Tensor] = {}
        weighted: dict[str, list[Tensor]] = {}
        for size, objective in self._objectives.items():
            parts = objective(vectors[..., :size], *batch)
            of_sizes[f"loss_{size}"] = parts["loss"].detach()
            for name, value in parts.items():
                weighted.setdefault(name, []).append(self._weights[size] * value)
        sums = {name: torch.stack(values).sum() for name, values in weighted.items()}
        return sums | of_sizes


def make_objective(
    settings: ObjectiveSettings,
    *,
    dim: int,
    kind: Kind,
    label_range: LabelRange | None = None,
    custom_loss: LossFunction | None = None,
    teachers: TeacherInfo = NO_TEACHERS,
    layers: Sequence[int] = (),
) -> SingleObjective | MatryoshkaObjective | LayerwiseObjective:
    """The objective of a run."""
    check_dims(settings, dim)
    sizes = settings.dims or (dim,)
    objectives: dict[int, SingleObjective] = {}
    if custom_loss is not None:
        objectives = dict.fromkeys(sizes, CustomObjective(custom_loss))
    else:
        for size in sizes:
            objectives[size] = Objective(
                settings,
                dim=size,
                kind=kind,
                label_range=label_range,
                teachers=teachers,
            )

    objective: SingleObjective | MatryoshkaObjective = objectives[dim]
    if settings.dims:
        weights = settings.dim_weights or (1.0,) * len(sizes)
        objective = MatryoshkaObjective(
            objectives, dict(zip(sizes, weights, strict=True))
        )
    return LayerwiseObjective(objective, settings, layers) if layers else objective
