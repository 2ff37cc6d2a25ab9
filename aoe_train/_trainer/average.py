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

from aoe_train._trainer.checkpoints import trained_weights

if TYPE_CHECKING:
    from transformers import TrainerControl, TrainerState, TrainingArguments

_SAMPLES = 100  # of a run at most: more would say the same and take time


class WeightAverage(TrainerCallback):
    """The mean over the last `share` of a run's steps, in as many samples as pay; the last is at its end.

    A share of 0 takes none.

    Attributes:
        mean: By name; None before the first sample.
    """

    def __init__(self, share: float) -> None:
        self._share = share
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

    @contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        """The model has the mean's weights here, and its own again afterwards, to the bit."""
        self._swap(model)
        try:
            yield
        finally:
            self._swap(model)

    @torch.no_grad()
    def _swap(self, model: nn.Module) -> None:
        if self.mean is None:
            return
        for name, weight in trained_weights(model).items():
            own = weight.clone()
            weight.copy_(self.mean[name])
            self.mean[name] = own
