"""The mean of the weights that a run passes through, which often does better than any of them.

Averaging Weights Leads to Wider Optima and Better Generalization (Izmailov et al., UAI 2018).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from transformers import TrainerCallback

from aoe_train.training.trainer.checkpoints import trained_weights

if TYPE_CHECKING:
    from transformers import TrainerControl, TrainerState, TrainingArguments


_ADAPTER_IN = ".lora_A."  # an adapter's product is 0 before training, and as linear in the other factor alone


class WeightMix:
    """Mixes trained weights with those that a model has when this is made."""

    def __init__(self, model: nn.Module, share: float) -> None:
        self._share = share
        self._first = {name: weight.clone() for name, weight in trained_weights(model).items()}

    @torch.no_grad()
    def mixed(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """Weights `share` of the way from those before training; of adapters, their products are mixed."""
        return {
            name: weight if _ADAPTER_IN in name else self._first[name].lerp(weight, self._share)
            for name, weight in weights.items()
        }


_SAMPLES = 100  # of a run at most: more would say the same and take time


class WeightAverage(TrainerCallback):
    """The mean over the last `share` of a run's steps, in as many samples as pay; the last is at its end.

    A share of 0 takes none.
    """

    def __init__(self, share: float, mix: WeightMix | None = None) -> None:
        self._share, self._mix = share, mix
        self.mean: dict[str, Tensor] | None = None

    def samples(self, step: int, steps: int) -> int:
        """How many have been taken after `step` of `steps` steps."""
        if not self._share:
            return 0
        window = max(1, round(self._share * steps))
        every = math.ceil(window / _SAMPLES)
        first = steps - (window - 1) // every * every
        return 0 if step < first else (step - first) // every + 1

    @torch.no_grad()
    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **seen: Any
    ) -> None:
        """Take a sample where this step has one."""
        del args, control
        taken = self.samples(state.global_step, state.max_steps)
        if taken == self.samples(state.global_step - 1, state.max_steps):
            return
        weights = trained_weights(seen["model"])
        if self.mean is None:
            self.mean = {name: weight.clone() for name, weight in weights.items()}
        else:
            torch._foreach_lerp_([self.mean[name] for name in weights], list(weights.values()), 1 / taken)

    def chosen(self, model: nn.Module) -> dict[str, Tensor] | None:
        """The weights to judge and keep in place of the model's own; None where these are."""
        if self.mean is None and self._mix is None:
            return None
        weights = self.mean or trained_weights(model)
        return weights if self._mix is None else self._mix.mixed(weights)

    @contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        """The model has the weights to keep here, and its own again afterwards, to the bit."""
        chosen = self.chosen(model)
        if chosen is None:
            yield
            return
        _swap(chosen, model)
        try:
            yield
        finally:
            _swap(chosen, model)


@torch.no_grad()
def _swap(weights: dict[str, Tensor], model: nn.Module) -> None:
    """Let them and the model's change places, one by one, so that no third copy of a model is held."""
    for name, weight in trained_weights(model).items():
        own = weight.clone()
        weight.copy_(weights[name])
        weights[name] = own
