"""A loss of one's own in place of the objective's parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from aoe_train.objectives.pairs import NO_ADVICE, Advice
from aoe_train.objectives.similarity import wide
from aoe_train.records import ABSENT
from pairkit.app.errors import ConfigError

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from aoe_train.objectives.settings import ObjectiveSettings

OwnObjective = Callable[..., Tensor]
"""`(vectors, labels) -> loss`: float32 (row, column, dim) of all rows of the batch, and (row,) or None.

A row that has fewer negatives than others has vectors of zeros in their place.
"""


class CustomObjective(nn.Module):
    """Calls a function, or an `nn.Module` whose weights then learn too, as `Objective` computes its parts."""

    def __init__(self, function: OwnObjective) -> None:
        super().__init__()
        if not callable(function) or isinstance(function, type):
            raise ConfigError(
                f"objective {function!r}: expected a function of vectors and labels, or a module (not its"
                " class)"
            )
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
            loss = self.function(vectors, labels)
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


def trained_by(settings: ObjectiveSettings, own: OwnObjective | None) -> dict[str, float]:
    """What a run learns from, by name, with weights: the settings' parts, or what takes their place."""
    if own is not None:
        return {qualified_name(own): 1.0}
    return settings.weights.wanted


def qualified_name(function: Callable[..., Any]) -> str:
    """Module and name, by which a run's record tells one objective from another."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"
