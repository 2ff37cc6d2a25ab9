"""Weights on the way from the backbone's to those trained from it, which forget less of what it knew.

Robust fine-tuning of zero-shot models (WiSE-FT; Wortsman et al., CVPR 2022), Eq. 1.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from aoe_train._trainer.checkpoints import trained_weights

_ADAPTER_IN = ".lora_A."  # an adapter's product is 0 before training, and as linear in the other factor alone


class Soup:
    """Mixes trained weights with those that a model has when this is made.

    Args:
        model: Before training.
        share: Of the trained weights, from 0 to 1.
    """

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
